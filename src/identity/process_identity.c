// SPDX-License-Identifier: MIT
#include "identity/process_identity.h"

#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "probe/person.h"

#define LONGEST 1024 /* of a text that is looked at */

/* One character, or one byte that is none, as it is to be shown; bytes of it that were taken. */
static size_t shown(const char *from, char out[20])
{
	unsigned code = 0;
	size_t len = text_utf8(from, &code), put = 0;

	if (len && !text_is_hostile(code)) {
		memcpy(out, from, len);
		out[len] = '\0';
		return len;
	}
	len = len ? len : 1;
	for (size_t i = 0; i < len; i++)
		put += (size_t)snprintf(out + put, 20 - put, "\\x%02x", (unsigned char)from[i]);
	return len;
}

void process_text(char *to, size_t room, const char *from, size_t bytes)
{
	char text[LONGEST + 1], one[20];
	size_t len = strnlen(from, bytes < LONGEST ? bytes : LONGEST), put = 0;

	memcpy(text, from, len);
	text[len] = '\0'; /* where that cuts a character, what is shown of it fits no more */
	for (const char *at = text; *at;) {
		size_t width;

		at += shown(at, one);
		width = strlen(one);
		if (put + width >= room)
			break;
		memcpy(to + put, one, width);
		put += width;
	}
	to[put] = '\0';
}

static bool is_called(const char *entry, size_t len, const char *name)
{
	size_t n = strlen(name);

	return len > n && entry[n] == '=' && !memcmp(entry, name, n);
}

static void take(const char *entry, size_t len, const struct process_variable *wanted, size_t n,
                 bool *found)
{
	for (size_t i = 0; i < n; i++) {
		size_t name = strlen(wanted[i].name) + 1;

		if (found[i] || !is_called(entry, len, wanted[i].name))
			continue;
		found[i] = true;
		process_text(wanted[i].value, wanted[i].room, entry + name, len - name);
	}
}

void process_environ_find(const char *block, size_t bytes, const struct process_variable *wanted,
                          size_t n)
{
	bool found[PROCESS_VARIABLES] = { false };
	size_t len;

	if (n > PROCESS_VARIABLES)
		n = PROCESS_VARIABLES;
	for (size_t i = 0; i < n; i++)
		wanted[i].value[0] = '\0';
	for (size_t at = 0; at < bytes; at += len + 1) {
		len = strnlen(block + at, bytes - at);
		take(block + at, len, wanted, n, found);
	}
}

#define KEPT_NS 300000000000ull

struct process_user {
	uint32_t uid;
	uint64_t read_ns;
	char name[IDENTITY_NAME];
	UT_hash_handle hh;
};

struct process_users {
	const char *passwd;
	struct process_user *by_uid; /* the oldest first */
};

struct process_users *process_users_new(const char *passwd)
{
	struct process_users *users = xcalloc(1, sizeof(*users));

	users->passwd = passwd;
	return users;
}

static void forget(struct process_users *users, struct process_user *user)
{
	MAP_DROP(users->by_uid, user);
}

void process_users_free(struct process_users *users)
{
	if (!users)
		return;
	while (users->by_uid)
		forget(users, users->by_uid);
	free(users);
}

/*
 * Of the machine's first process, which is root's: in a container of our own, /etc/passwd is that
 * of an image. By the file itself, since asking name services could take as long as they like.
 */
static FILE *open_users(const struct process_users *users)
{
	FILE *file;

	if (users->passwd)
		return fopen(users->passwd, "re");
	file = fopen("/proc/1/root/etc/passwd", "re");
	return file ? file : fopen("/etc/passwd", "re");
}

static bool find_in_file(const struct process_users *users, uint32_t uid, char *name, size_t room)
{
	FILE *file = open_users(users);
	const struct passwd *entry;
	bool found = false;

	while (file && !found && (entry = fgetpwent(file))) {
		found = entry->pw_uid == uid && entry->pw_name[0];
		if (found)
			process_text(name, room, entry->pw_name, strlen(entry->pw_name));
	}
	if (file)
		fclose(file);
	return found;
}

static void look_up(struct process_users *users, struct process_user *user)
{
	uint64_t owner;

	if (find_in_file(users, user->uid, user->name, sizeof(user->name)))
		return;
	owner = person_of_uid(user->uid);
	if (owner != user->uid && owner <= UINT32_MAX &&
	    find_in_file(users, (uint32_t)owner, user->name, sizeof(user->name)))
		return;
	snprintf(user->name, sizeof(user->name), "%u", user->uid);
}

void process_users_name(struct process_users *users, uint32_t uid, uint64_t now_ns, char *name,
                        size_t room)
{
	struct process_user *user = MAP_FIND(users->by_uid, &uid);

	if (user && now_ns - user->read_ns > KEPT_NS) {
		forget(users, user);
		user = NULL;
	}
	if (!user) {
		if (HASH_COUNT(users->by_uid) >= PROCESS_USERS_MAX)
			forget(users, users->by_uid);
		user = MAP_ADD(users->by_uid, uid, &uid);
		user->read_ns = now_ns;
		look_up(users, user);
	}
	snprintf(name, room, "%s", user->name);
}

/* ---- process labels ------------------------------------------------------------------------ */

#define PREFIX    "env_"
#define ID_DIGITS 64
#define ID_SHOWN  12

static bool is_variable(const char *name)
{
	if (!isalpha((unsigned char)name[0]) && name[0] != '_')
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && *name != '_')
			return false;
	return true;
}

int process_labels_choose(struct process_label_choice *choice, const char *variable,
                          struct err *err)
{
	if (!is_variable(variable) || strlen(PREFIX) + strlen(variable) >= PROCESS_LABEL_NAME)
		return err_set(
			err, EINVAL,
			"'%s' is no name of a variable that could be a label: letters, digits "
			"and _, at most %zu",
			variable, PROCESS_LABEL_NAME - strlen(PREFIX) - 1);
	for (size_t i = 0; i < choice->n; i++)
		if (!strcmp(process_labels_variable(choice, i), variable))
			return 0;
	if (choice->n == IDENTITY_CHOSEN)
		return err_set(err, E2BIG, "more than %d variables as labels, '%s' is one too many",
		               IDENTITY_CHOSEN, variable);
	snprintf(choice->labels[choice->n++], PROCESS_LABEL_NAME, PREFIX "%s", variable);
	return 0;
}

const char *process_labels_variable(const struct process_label_choice *choice, size_t i)
{
	return choice->labels[i] + strlen(PREFIX);
}

void process_labels_container(const struct process_identity *identity, char text[IDENTITY_ID])
{
	const char *id = identity->container_id;

	if (identity->container_name[0])
		snprintf(text, IDENTITY_ID, "%s", identity->container_name);
	else
		snprintf(text, IDENTITY_ID, "%.*s",
		         strlen(id) == ID_DIGITS ? ID_SHOWN : IDENTITY_ID, id);
}

static size_t labels_add(struct process_label *labels, size_t n, const char *name,
                         const char *value)
{
	if (!value[0])
		return n;
	labels[n] = (struct process_label){ name, value };
	return n + 1;
}

size_t process_labels(const struct process_identity *identity,
                      const struct process_label_choice *choice, struct process_label_texts *texts,
                      struct process_label labels[PROCESS_LABELS])
{
	size_t n = 0;

	snprintf(texts->pid, sizeof(texts->pid), "%d", identity->pid);
	process_labels_container(identity, texts->container);
	n = labels_add(labels, n, "process", identity->name);
	n = labels_add(labels, n, "pid", texts->pid);
	n = labels_add(labels, n, "user", identity->user);
	n = labels_add(labels, n, "container", texts->container);
	n = labels_add(labels, n, "pod", identity->pod);
	n = labels_add(labels, n, "namespace", identity->namespace);
	n = labels_add(labels, n, "slurm_job", identity->slurm_job);
	n = labels_add(labels, n, "slurm_step", identity->slurm_step);
	n = labels_add(labels, n, "rank", identity->rank);
	for (size_t i = 0; i < choice->n; i++)
		n = labels_add(labels, n, choice->labels[i], identity->chosen[i]);
	return n;
}

/* ---- process pod --------------------------------------------------------------------------- */

#define FILE_BYTES 512 /* a name and its newline are shorter */

bool process_pod_is_name(const char *text, size_t most, bool parts)
{
	size_t len = strlen(text);

	if (!len || len > most || text[0] == '-' || text[0] == '.' || text[len - 1] == '-' ||
	    text[len - 1] == '.')
		return false;
	return strspn(text, parts ? "abcdefghijklmnopqrstuvwxyz0123456789-."
	                          : "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

static bool pod_take(char *to, size_t room, const char *text, bool parts)
{
	if (!process_pod_is_name(text, room - 1, parts))
		return false;
	memcpy(to, text, strlen(text) + 1);
	return true;
}

/* A file with a name and nothing else. *gave_up: who serves the files of this process does not
 * answer, or was not asked for that reason. */
static bool take_file(const struct process_pod_files *files, const char *path, char *to,
                      size_t room, bool *gave_up)
{
	char text[FILE_BYTES + 1];
	ssize_t n = *gave_up ? -ETIMEDOUT : files->read(files->data, path, text, FILE_BYTES);

	*gave_up = n == -ETIMEDOUT;
	if (n <= 0)
		return false;
	text[n] = '\0';
	if (text[n - 1] == '\n')
		text[n - 1] = '\0';
	return strlen(text) + 1 >= (size_t)n && pod_take(to, room, text, room == IDENTITY_POD);
}

/* The folders are links that the kubelet exchanges; the files in them are links, too. */
void process_pod_find(const struct process_pod_words *words, const struct process_pod_files *files,
                      const char *node, struct process_identity *identity)
{
	char *pod = identity->pod, *space = identity->namespace;
	bool gave_up = false;

	if (!pod_take(space, IDENTITY_LABEL, words->namespace, false) &&
	    !take_file(files, "/var/run/secrets/kubernetes.io/serviceaccount/..data/namespace",
	               space, IDENTITY_LABEL, &gave_up))
		take_file(files, "/etc/podinfo/..data/namespace", space, IDENTITY_LABEL, &gave_up);
	if (!pod_take(pod, IDENTITY_POD, words->name, true) &&
	    !take_file(files, "/etc/podinfo/..data/name", pod, IDENTITY_POD, &gave_up) &&
	    !take_file(files, "/etc/hostname", pod, IDENTITY_POD, &gave_up))
		pod_take(pod, IDENTITY_POD, words->hostname, true);
	if (!strcmp(pod, node))
		pod[0] = '\0'; /* it has the node's network, and its name */
	if (pod[0] || space[0])
		identity->pod_by = IDENTITY_OWN_WORD;
}
