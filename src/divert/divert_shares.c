// SPDX-License-Identifier: MIT
#include "divert/divert_shares.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/process.h"
#include "probe/person.h"

struct divert_child {
	int pid;
	uint64_t start_time, owner;
	size_t places;
	UT_hash_handle hh;
};

struct divert_shares divert_shares_init(void)
{
	static const char of_all[] = "1,024 modules with 524,288 functions are diverted at most",
			  of_user[] = "of one user's processes 256 modules with 65,536 functions "
				      "are diverted at most";

	return (struct divert_shares){
		.places = { .user = { SHARE_USER_PLACES, of_user },
		            .all = { SHARE_PLACES, of_all } },
		.entries = { .user = { SHARE_USER_ENTRIES, of_user },
		             .all = { SHARE_ENTRIES, of_all } },
		.of_children = { .user = { .most = SHARE_USER_CHILDREN },
		                 .all = { .most = SHARE_CHILDREN } },
	};
}

/* ---- modules --------------------------------------------------------------------------------- */

const char *shares_put(struct divert_shares *shares, uint64_t owner, uint32_t entries)
{
	const char *why = quota_take(&shares->places, owner, 0, 1);

	if (why)
		return why;
	why = quota_take(&shares->entries, owner, 0, entries);
	if (why)
		quota_give(&shares->places, owner, 0, 1);
	return why;
}

void shares_put_free(struct divert_shares *shares, uint64_t owner, uint32_t entries)
{
	quota_give(&shares->places, owner, 0, 1);
	quota_give(&shares->entries, owner, 0, entries);
}

/* ---- children -------------------------------------------------------------------------------- */

static struct divert_child *find(const struct divert_shares *shares, pid_t pid)
{
	return MAP_FIND(shares->children, &pid);
}

bool shares_child(struct divert_shares *shares, uint64_t owner, pid_t pid, size_t places)
{
	struct divert_child *child = find(shares, pid);

	if (child || quota_take(&shares->of_children, owner, 0, places))
		return false;
	child = MAP_ADD(shares->children, pid, &pid);
	child->start_time = process_start_time(pid);
	child->owner = owner;
	child->places = places;
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
	quota_give(&shares->of_children, child->owner, 0, child->places);
	MAP_DROP(shares->children, child);
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
	quota_free(&shares->places);
	quota_free(&shares->entries);
}
