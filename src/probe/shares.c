// SPDX-License-Identifier: MIT
#include "probe/shares.h"

#include "bpf/wire.h"

#define HOOKS_MAX (WIRE_HOOKS_MAX - 1) /* the last number is cost.c's */

struct shares shares_init(void)
{
	static const struct quota hooks = {
		.user = { SHARE_USER, "the files of one user can have 8,192 hooks at most" },
		.others = { HOOKS_MAX - SHARE_ROOT,
		            "files of users other than root can have 12,287 hooks at most" },
		.all = { HOOKS_MAX, "there are 16,384 hooks in all" },
	};

	return (struct shares){
		.hooks = hooks,
		.live = hooks,
		.files = { .user = { SHARE_USER_FILES,
		                     "of one user, 1,024 CUDA libraries and programs can be hooked "
		                     "at most" },
		           .others = { SHARE_USERS_FILES, "of users other than root, 3,072 CUDA "
		                                          "libraries and programs "
		                                          "can be hooked at most" } },
	};
}

const char *shares_file_limit(size_t wanted)
{
	return wanted > SHARE_FILE ? "one file has 2,048 hooks at most" : NULL;
}

size_t shares_take(struct shares *shares, uint64_t owner, size_t wanted, const char **why)
{
	const char *limit = shares_file_limit(wanted);
	size_t get = limit ? SHARE_FILE : wanted;

	*why = quota_take(&shares->hooks, owner, 0, get);
	if (*why)
		return 0;
	quota_add(&shares->live, owner, 0, get);
	*why = limit;
	return get;
}

void shares_give(struct shares *shares, uint64_t owner)
{
	quota_give(&shares->hooks, owner, 0, 1);
}

void shares_keep(struct shares *shares, uint64_t owner)
{
	quota_add(&shares->hooks, owner, 0, 1);
}

const char *shares_take_file(struct shares *shares, uint64_t owner)
{
	return quota_take(&shares->files, owner, 0, 1);
}

void shares_file_gone(struct shares *shares, uint64_t owner, size_t hooks)
{
	quota_give(&shares->live, owner, 0, hooks);
	quota_give(&shares->files, owner, 0, 1);
}

void shares_file_back(struct shares *shares, uint64_t owner, size_t hooks)
{
	quota_add(&shares->live, owner, 0, hooks);
	quota_add(&shares->files, owner, 0, 1);
}

bool shares_are_crowded(const struct shares *shares, uint64_t owner)
{
	return quota_is_crowded(&shares->live, owner) || quota_is_crowded(&shares->files, owner);
}

void shares_free(struct shares *shares)
{
	quota_free(&shares->hooks);
	quota_free(&shares->files);
	quota_free(&shares->live);
}
