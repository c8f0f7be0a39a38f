// SPDX-License-Identifier: MIT
#include "base/budget.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/xalloc.h"

#define NEWS_MAX     64
#define ACCOUNTS_MAX 16384 /* beyond, the first one is closed: nobody said that its owner ended */

struct budget_account {
	uint32_t owner;
	bool told;
	size_t used;
	size_t beyond; /* of this, what all had no room for */
	UT_hash_handle hh;
};

struct budget_news {
	uint32_t owner;
	bool all;
};

struct budget {
	size_t each, all, used;
	uint64_t refused;
	struct budget_account *accounts;
	struct budget_news news[NEWS_MAX];
	size_t n_news, told;
	uint64_t unnamed;
};

struct budget *budget_new(size_t each, size_t all)
{
	struct budget *budget = xcalloc(1, sizeof(*budget));

	budget->each = each;
	budget->all = all;
	return budget;
}

static void account_drop(struct budget *budget, struct budget_account *account)
{
	MAP_DROP(budget->accounts, account);
}

void budget_free(struct budget *budget)
{
	if (!budget)
		return;
	while (budget->accounts)
		account_drop(budget, budget->accounts);
	free(budget);
}

static struct budget_account *get(struct budget *budget, uint32_t owner)
{
	struct budget_account *account = MAP_FIND(budget->accounts, &owner);

	if (account)
		return account;
	if (HASH_COUNT(budget->accounts) >= ACCOUNTS_MAX)
		budget_end(budget, budget->accounts->owner);
	return MAP_ADD(budget->accounts, owner, &owner);
}

static void refuse(struct budget *budget, struct budget_account *account, bool all)
{
	budget->refused++;
	if (account->told)
		return;
	account->told = true;
	if (budget->n_news == NEWS_MAX) {
		budget->unnamed++;
		return;
	}
	budget->news[budget->n_news++] = (struct budget_news){ account->owner, all };
}

bool budget_take(struct budget *budget, uint32_t owner, size_t bytes)
{
	struct budget_account *account;
	bool all, own;

	if (!budget)
		return true;
	account = get(budget, owner);
	own = bytes <= budget->each && account->used <= budget->each - bytes;
	all = bytes <= budget->all && budget->used <= budget->all - bytes;
	if (own && !all && account->used + bytes <= BUDGET_SMALL &&
	    HASH_COUNT(budget->accounts) <= BUDGET_OWNERS) {
		account->used += bytes;
		account->beyond += bytes;
		return true;
	}
	if (!own || !all) {
		refuse(budget, account, own);
		return false;
	}
	account->used += bytes;
	budget->used += bytes;
	return true;
}

void budget_give(struct budget *budget, uint32_t owner, size_t bytes)
{
	struct budget_account *account = budget ? MAP_FIND(budget->accounts, &owner) : NULL;
	size_t beyond = 0;

	if (!budget)
		return;
	if (account) {
		beyond = bytes < account->beyond ? bytes : account->beyond;
		account->beyond -= beyond;
		account->used -= bytes < account->used ? bytes : account->used;
	}
	bytes -= beyond;
	budget->used -= bytes < budget->used ? bytes : budget->used;
}

void budget_end(struct budget *budget, uint32_t owner)
{
	struct budget_account *account = budget ? MAP_FIND(budget->accounts, &owner) : NULL;

	if (!account)
		return;
	budget->used += account->beyond; /* it is there as long as what it was taken for */
	account_drop(budget, account);
}

size_t budget_used(const struct budget *budget)
{
	return budget ? budget->used : 0;
}

uint64_t budget_refused(const struct budget *budget)
{
	return budget ? budget->refused : 0;
}

bool budget_news(struct budget *budget, uint32_t *owner, bool *all)
{
	if (!budget || budget->told == budget->n_news)
		return false;
	*owner = budget->news[budget->told].owner;
	*all = budget->news[budget->told++].all;
	return true;
}

uint64_t budget_unnamed(const struct budget *budget)
{
	return budget ? budget->unnamed : 0;
}
