// SPDX-License-Identifier: MIT
#include "probe/account.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/map.h"
#include "probe/person.h"

#define USERS_MAX 512 /* before those are forgotten whose accounts are empty */

struct account_user {
	uint64_t person;
	struct account account;
	UT_hash_handle hh;
};

static void leak(struct account *account, uint64_t now_ns)
{
	uint64_t gone = now_ns > account->at_ns ? (now_ns - account->at_ns) / ACCOUNT_LEAK : 0;

	account->waited_ns -= gone < account->waited_ns ? gone : account->waited_ns;
	account->at_ns = now_ns;
	account->over = account->over && account->waited_ns > ACCOUNT_AGAIN_NS;
}

bool account_charge(struct account *account, uint64_t waited_ns, uint64_t now_ns)
{
	bool was_over;

	leak(account, now_ns);
	was_over = account->over;
	account->waited_ns += waited_ns;
	account->over = was_over || account->waited_ns > ACCOUNT_MOST_NS;
	return account->over && !was_over;
}

bool account_is_over(struct account *account, uint64_t now_ns)
{
	leak(account, now_ns);
	return account->over;
}

bool account_is_empty(struct account *account, uint64_t now_ns)
{
	leak(account, now_ns);
	return !account->waited_ns;
}

/* ---- of each user -------------------------------------------------------------------------- */

static void forget_users(struct accounts *accounts, uint64_t now_ns)
{
	struct account_user *user, *next;

	HASH_ITER (hh, accounts->users, user, next) {
		if (account_is_empty(&user->account, now_ns))
			MAP_DROP(accounts->users, user);
	}
}

struct account *accounts_of(struct accounts *accounts, uint64_t person, uint64_t now_ns)
{
	struct account_user *user = MAP_FIND(accounts->users, &person);

	if (user)
		return &user->account;
	if (HASH_COUNT(accounts->users) >= USERS_MAX)
		forget_users(accounts, now_ns);
	user = MAP_ADD(accounts->users, person, &person);
	return &user->account;
}

void accounts_free(struct accounts *accounts)
{
	MAP_FREE(accounts->users, free);
}

/*
 * What accounts are made for is waited for beside other work. This keeps the capture itself. What
 * has another way, or can be left out with no harm to others, gets least: 0.5 s at once. Tables of
 * two million functions take 0.07 s each, and are read once.
 */
static const unsigned weights[LOOK_TIMES] = {
	[LOOK_AT_RUNNING] = 1, [LOOK_BEFOREHAND] = 2, [LOOK_AT_MAPS] = 8,    [LOOK_INTO_FILES] = 4,
	[LOOK_FOR_JUMPS] = 2,  [LOOK_FOR_NAMES] = 4,  [LOOK_AT_SYMBOLS] = 2, [LOOK_AT_THREADS] = 1,
	[LOOK_AT_TABLES] = 1,  [LOOK_INTO_CALLS] = 4,
};

static struct {
	pthread_mutex_t lock;
	struct accounts users[LOOK_TIMES];
	atomic_bool was_over[LOOK_TIMES];
} looks = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool is_limited(uint64_t person)
{
	return person != PERSON_ROOT && person != PERSON_UNKNOWN;
}

bool look_time_was_over(enum look_time what)
{
	return atomic_load(&looks.was_over[what]);
}

bool look_time_is_over(enum look_time what, uint64_t person)
{
	uint64_t now_ns = clock_now_ns();

	if (!is_limited(person) || !look_time_was_over(what))
		return false;
	LOCKED(&looks.lock);
	return account_is_over(accounts_of(&looks.users[what], person, now_ns), now_ns);
}

void look_time_charge(enum look_time what, uint64_t person, uint64_t busy_ns)
{
	uint64_t now_ns = clock_now_ns();

	if (!is_limited(person))
		return;
	LOCKED(&looks.lock);
	if (account_charge(accounts_of(&looks.users[what], person, now_ns), weights[what] * busy_ns,
	                   now_ns))
		atomic_store(&looks.was_over[what], true);
}
