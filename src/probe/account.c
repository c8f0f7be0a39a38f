// SPDX-License-Identifier: MIT
#include "probe/account.h"

#include <stdlib.h>

#include "base/map.h"

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
