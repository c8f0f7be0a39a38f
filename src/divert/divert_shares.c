// SPDX-License-Identifier: MIT
#include "divert/divert_shares.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/process.h"
#include "base/xalloc.h"
#include "probe/person.h"

struct divert_child {
	int pid;
	uint64_t start_time, owner;
	size_t places;
	UT_hash_handle hh;
};

/* Users are as many as have something: those before may be taken over. */
static struct divert_user *user_of(struct divert_shares *shares, uint64_t owner)
{
	struct divert_user *free_one = NULL;

	for (size_t i = 0; i < shares->n_users; i++) {
		struct divert_user *user = &shares->users[i];

		if (user->owner == owner)
			return user;
		if (!user->places && !user->children)
			free_one = user;
	}
	if (!free_one) {
		shares->users =
			xrealloc(shares->users, (shares->n_users + 1) * sizeof(*shares->users));
		free_one = &shares->users[shares->n_users++];
	}
	*free_one = (struct divert_user){ .owner = owner };
	return free_one;
}

/* ---- modules --------------------------------------------------------------------------------- */

const char *shares_put(struct divert_shares *shares, uint64_t owner, uint32_t entries)
{
	struct divert_user *user = user_of(shares, owner);

	if (shares->places == SHARE_PLACES || shares->entries + entries > SHARE_ENTRIES)
		return "1,024 modules with 524,288 functions are diverted at most";
	if (owner != PERSON_ROOT &&
	    (user->places == SHARE_USER_PLACES || user->entries + entries > SHARE_USER_ENTRIES))
		return "of one user's processes 256 modules with 65,536 functions are diverted at "
		       "most";
	user->places++;
	user->entries += entries;
	shares->places++;
	shares->entries += entries;
	return NULL;
}

void shares_put_free(struct divert_shares *shares, uint64_t owner, uint32_t entries)
{
	struct divert_user *user = user_of(shares, owner);

	user->places--;
	user->entries -= entries;
	shares->places--;
	shares->entries -= entries;
}

/* ---- children -------------------------------------------------------------------------------- */

static struct divert_child *find(const struct divert_shares *shares, pid_t pid)
{
	struct divert_child *child;

	HASH_FIND_INT(shares->children, &pid, child);
	return child;
}

bool shares_has_room(const struct divert_shares *shares, uint64_t owner, size_t places)
{
	size_t taken = 0;

	for (size_t i = 0; i < shares->n_users; i++)
		if (shares->users[i].owner == owner)
			taken = shares->users[i].children;
	return shares->child_places + places <= SHARE_CHILDREN &&
	       (owner == PERSON_ROOT || taken + places <= SHARE_USER_CHILDREN);
}

bool shares_child(struct divert_shares *shares, uint64_t owner, pid_t pid, size_t places)
{
	struct divert_user *user = user_of(shares, owner);
	struct divert_child *child = find(shares, pid);

	if (child)
		return false;
	if (!shares_has_room(shares, owner, places)) {
		shares->refused++;
		return false;
	}
	child = xcalloc(1, sizeof(*child));
	child->pid = pid;
	child->start_time = process_start_time(pid);
	child->owner = owner;
	child->places = places;
	HASH_ADD_INT(shares->children, pid, child);
	user->children += places;
	shares->child_places += places;
	return true;
}

size_t shares_child_has(const struct divert_shares *shares, pid_t pid, uint64_t *owner)
{
	const struct divert_child *child = find(shares, pid);

	if (!child)
		return 0;
	*owner = child->owner;
	return child->places;
}

static void free_child(struct divert_shares *shares, struct divert_child *child)
{
	user_of(shares, child->owner)->children -= child->places;
	shares->child_places -= child->places;
	HASH_DEL(shares->children, child);
	free(child);
}

bool shares_child_free(struct divert_shares *shares, pid_t pid)
{
	struct divert_child *child = find(shares, pid);

	if (child)
		free_child(shares, child);
	return child != NULL;
}

/* That one has ended is told by the kernel, but that record can be lost. */
size_t shares_sweep(struct divert_shares *shares, uint64_t now_ns)
{
	struct divert_child *child, *next;
	size_t gone = 0;

	if (now_ns - shares->swept_ns < SHARE_SWEEP_NS)
		return 0;
	shares->swept_ns = now_ns;
	HASH_ITER (hh, shares->children, child, next) {
		if (process_start_time(child->pid) == child->start_time && child->start_time)
			continue;
		free_child(shares, child);
		gone++;
	}
	return gone;
}

void divert_shares_free(struct divert_shares *shares)
{
	struct divert_child *child, *next;

	HASH_ITER (hh, shares->children, child, next)
		free_child(shares, child);
	free(shares->users);
	shares->users = NULL;
	shares->n_users = 0;
}
