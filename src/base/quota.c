// SPDX-License-Identifier: MIT
#include "base/quota.h"

#include <stdlib.h>

#include "base/map.h"

#define PROCESS (1ull << 62) /* and the pid: no user's number */

struct quota_owner {
	uint64_t id;
	size_t taken;
	UT_hash_handle hh;
};

static size_t owner_has(const struct quota *quota, uint64_t id)
{
	const struct quota_owner *owner = MAP_FIND(quota->owners, &id);

	return owner ? owner->taken : 0;
}

static void owner_add(struct quota *quota, uint64_t id, size_t n)
{
	struct quota_owner *owner = MAP_FIND(quota->owners, &id);

	if (!owner)
		owner = MAP_ADD(quota->owners, id, &id);
	owner->taken += n;
}

/* Who has nothing is forgotten, so owners are no more than what there is. */
static void owner_give(struct quota *quota, uint64_t id, size_t n)
{
	struct quota_owner *owner = MAP_FIND(quota->owners, &id);

	if (!owner)
		return;
	owner->taken -= n < owner->taken ? n : owner->taken;
	if (owner->taken)
		return;
	MAP_DROP(quota->owners, owner);
}

static bool limit_fits(const struct quota_limit *limit, size_t taken, size_t n)
{
	return !limit->most || (n <= limit->most && taken <= limit->most - n);
}

/* The one of all first: it is the one that nobody can do anything about. */
static const struct quota_limit *refusing(const struct quota *quota, uint64_t user, uint32_t pid,
                                          size_t n)
{
	bool is_limited = user != QUOTA_ROOT || quota->root_too;

	if (!limit_fits(&quota->all, quota->taken, n))
		return &quota->all;
	if (pid && quota->process.most &&
	    !limit_fits(&quota->process, owner_has(quota, PROCESS | pid), n))
		return &quota->process;
	if (is_limited && quota->user.most && !limit_fits(&quota->user, owner_has(quota, user), n))
		return &quota->user;
	if (user != QUOTA_ROOT && !limit_fits(&quota->others, quota->taken_by_others, n))
		return &quota->others;
	return NULL;
}

const char *quota_refuses(const struct quota *quota, uint64_t user, uint32_t pid, size_t n)
{
	const struct quota_limit *limit = refusing(quota, user, pid, n);

	if (!limit)
		return NULL;
	return limit->why ? limit->why : "there is no room";
}

void quota_add(struct quota *quota, uint64_t user, uint32_t pid, size_t n)
{
	if (!n)
		return;
	quota->taken += n;
	quota->taken_by_others += user != QUOTA_ROOT ? n : 0;
	owner_add(quota, user, n);
	if (pid && quota->process.most)
		owner_add(quota, PROCESS | pid, n);
}

const char *quota_take(struct quota *quota, uint64_t user, uint32_t pid, size_t n)
{
	const char *why = quota_refuses(quota, user, pid, n);

	if (why)
		quota->refused++;
	else
		quota_add(quota, user, pid, n);
	return why;
}

bool quota_take_beside(struct quota *quota, uint64_t user, size_t most)
{
	size_t free = quota->taken < most ? most - quota->taken : 0;
	bool fits = user == QUOTA_ROOT ? free > 0 : owner_has(quota, user) < 3 * free;

	if (fits)
		quota_add(quota, user, 0, 1);
	else
		quota->refused++;
	return fits;
}

void quota_give(struct quota *quota, uint64_t user, uint32_t pid, size_t n)
{
	size_t has = owner_has(quota, user);

	n = n < has ? n : has;
	if (!n)
		return;
	quota->taken -= n;
	quota->taken_by_others -= user != QUOTA_ROOT ? n : 0;
	owner_give(quota, user, n);
	if (pid && quota->process.most)
		owner_give(quota, PROCESS | pid, n);
}

size_t quota_of_user(const struct quota *quota, uint64_t user)
{
	return owner_has(quota, user);
}

static bool is_process(const struct quota_owner *owner)
{
	return owner->id >> 32 == PROCESS >> 32;
}

uint64_t quota_most(const struct quota *quota)
{
	const struct quota_owner *most = NULL;

	for (const struct quota_owner *owner = quota->owners; owner; owner = owner->hh.next)
		if (!is_process(owner) && (!most || owner->taken > most->taken))
			most = owner;
	return most ? most->id : QUOTA_ROOT;
}

static bool is_over_half(const struct quota_limit *limit, size_t taken)
{
	return limit->most && taken > limit->most / 2;
}

bool quota_is_crowded(const struct quota *quota, uint64_t user)
{
	size_t all = 0, others = 0;

	for (const struct quota_owner *owner = quota->owners; owner; owner = owner->hh.next) {
		bool other = owner->id != QUOTA_ROOT && owner->id != user;
		size_t half = quota->user.most / 2, counts = owner->taken;

		if (is_process(owner))
			continue;
		if (other && quota->user.most && counts > half)
			counts = half;
		all += counts;
		others += owner->id != QUOTA_ROOT ? counts : 0;
	}
	return is_over_half(&quota->all, all) ||
	       (user != QUOTA_ROOT && (is_over_half(&quota->user, owner_has(quota, user)) ||
	                               is_over_half(&quota->others, others)));
}

struct quota quota_of_places(size_t places)
{
	size_t most = places * 2 / 5;

	return (struct quota){ .user = { .most = most ? most : 1 } };
}

void quota_free(struct quota *quota)
{
	MAP_FREE(quota->owners, free);
	quota->taken = quota->taken_by_others = 0;
}
