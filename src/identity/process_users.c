// SPDX-License-Identifier: MIT
#include "identity/process_users.h"

#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/xalloc.h"
#include "identity/process_environ.h"
#include "identity/process_identity.h"
#include "probe/person.h"

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
