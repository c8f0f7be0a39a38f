// SPDX-License-Identifier: MIT
#include "identity/process_pod.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

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

static bool take(char *to, size_t room, const char *text, bool parts)
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
	return strlen(text) + 1 >= (size_t)n && take(to, room, text, room == IDENTITY_POD);
}

/* The folders are links that the kubelet exchanges; the files in them are links, too. */
void process_pod_find(const struct process_pod_words *words, const struct process_pod_files *files,
                      const char *node, struct process_identity *identity)
{
	char *pod = identity->pod, *space = identity->namespace;
	bool gave_up = false;

	if (!take(space, IDENTITY_LABEL, words->namespace, false) &&
	    !take_file(files, "/var/run/secrets/kubernetes.io/serviceaccount/..data/namespace",
	               space, IDENTITY_LABEL, &gave_up))
		take_file(files, "/etc/podinfo/..data/namespace", space, IDENTITY_LABEL, &gave_up);
	if (!take(pod, IDENTITY_POD, words->name, true) &&
	    !take_file(files, "/etc/podinfo/..data/name", pod, IDENTITY_POD, &gave_up) &&
	    !take_file(files, "/etc/hostname", pod, IDENTITY_POD, &gave_up))
		take(pod, IDENTITY_POD, words->hostname, true);
	if (!strcmp(pod, node))
		pod[0] = '\0'; /* it has the node's network, and its name */
	if (pod[0] || space[0])
		identity->pod_by = IDENTITY_OWN_WORD;
}
