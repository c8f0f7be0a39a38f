// SPDX-License-Identifier: MIT
#include "probe/account.h"

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
