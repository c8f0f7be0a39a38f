// SPDX-License-Identifier: MIT
#include "probe/shares.h"

#include <stdlib.h>

#include "base/xalloc.h"
#include "bpf/wire.h"

#define HOOKS_MAX (WIRE_HOOKS_MAX - 1) /* the last number is cost.c's */

static struct share *share_of(struct shares *shares, uint64_t owner)
{
	for (size_t i = 0; i < shares->n_users; i++) {
		if (shares->users[i].owner == owner)
			return &shares->users[i];
	}
	shares->users = xrealloc(shares->users, (shares->n_users + 1) * sizeof(*shares->users));
	shares->users[shares->n_users] = (struct share){ .owner = owner };
	return &shares->users[shares->n_users++];
}

/* Nothing rather than a part: who has little left would leave others' files with a hook or two. */
static void refuse(size_t *get, size_t left, const char *reason, const char **why)
{
	if (*get <= left)
		return;
	*get = 0;
	*why = reason;
}

size_t shares_take(struct shares *shares, uint64_t owner, size_t wanted, const char **why)
{
	struct share *share = share_of(shares, owner);
	size_t get = wanted;

	*why = shares_file_limit(wanted);
	if (*why)
		get = SHARE_FILE;
	refuse(&get, HOOKS_MAX - shares->taken, "there are 16,384 hooks in all", why);
	if (owner) {
		refuse(&get, SHARE_USER - share->taken,
		       "the files of one user can have 8,192 hooks at most", why);
		refuse(&get, HOOKS_MAX - SHARE_ROOT - shares->taken_by_users,
		       "files of users other than root can have 12,287 hooks at most", why);
		shares->taken_by_users += get;
	}
	share->taken += get;
	share->live += get;
	shares->taken += get;
	return get;
}

const char *shares_file_limit(size_t wanted)
{
	return wanted > SHARE_FILE ? "one file has 2,048 hooks at most" : NULL;
}

void shares_give(struct shares *shares, uint64_t owner)
{
	share_of(shares, owner)->taken--;
	shares->taken--;
	shares->taken_by_users -= owner != 0;
}

void shares_keep(struct shares *shares, uint64_t owner)
{
	share_of(shares, owner)->taken++;
	shares->taken++;
	shares->taken_by_users += owner != 0;
}

const char *shares_take_file(struct shares *shares, uint64_t owner)
{
	struct share *share = share_of(shares, owner);

	if (!owner)
		return NULL;
	if (share->files >= SHARE_USER_FILES)
		return "of one user, 1,024 CUDA libraries and programs can be hooked at most";
	if (shares->files_of_users >= SHARE_USERS_FILES)
		return "of users other than root, 3,072 CUDA libraries and programs can be hooked "
		       "at most";
	share->files++;
	shares->files_of_users++;
	return NULL;
}

void shares_file_gone(struct shares *shares, uint64_t owner, size_t hooks)
{
	struct share *share = share_of(shares, owner);

	share->live -= hooks;
	if (!owner)
		return;
	share->files--;
	shares->files_of_users--;
}

void shares_file_back(struct shares *shares, uint64_t owner, size_t hooks)
{
	struct share *share = share_of(shares, owner);

	share->live += hooks;
	if (!owner)
		return;
	share->files++;
	shares->files_of_users++;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

bool shares_are_crowded(const struct shares *shares, uint64_t owner)
{
	size_t live = 0, live_of_users = 0, files_of_users = 0;
	const struct share *own = NULL;

	for (size_t i = 0; i < shares->n_users; i++) {
		const struct share *share = &shares->users[i];
		bool other = share->owner && share->owner != owner;
		size_t counts = other ? least(share->live, SHARE_USER / 2) : share->live;
		size_t files = other ? least(share->files, SHARE_USER_FILES / 2) : share->files;

		live += counts;
		live_of_users += share->owner ? counts : 0;
		files_of_users += share->owner ? files : 0;
		own = share->owner == owner ? share : own;
	}
	if (live > HOOKS_MAX / 2)
		return true;
	return owner && own &&
	       (own->live > SHARE_USER / 2 || own->files > SHARE_USER_FILES / 2 ||
	        live_of_users > (HOOKS_MAX - SHARE_ROOT) / 2 ||
	        files_of_users > SHARE_USERS_FILES / 2);
}

void shares_free(struct shares *shares)
{
	free(shares->users);
}
