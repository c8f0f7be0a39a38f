// SPDX-License-Identifier: MIT
#include "base/budget.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/quota.h"
#include "base/xalloc.h"

#define NEWS_MAX     64
#define ACCOUNTS_MAX 16384 /* beyond, the first one is closed: nobody said that its owner ended */

struct budget_account {
	uint32_t owner;
	uint64_t person, began; /* 0: nobody said when */
	bool told;
	bool ended; /* what it still holds may be given back */
	size_t used;
	size_t beyond; /* of this, what all had no room for */
	UT_hash_handle hh;
};

struct budget_news {
	uint32_t owner;
	enum budget_limit limit;
};

struct budget {
	size_t each, all, used;
	uint64_t (*person_of)(uint32_t owner);            /* NULL: all are root's */
	struct quota of_persons, of_unknown, small_parts; /* of bytes */
	uint64_t refused;
	size_t used_as_new;
	uint64_t refused_as_new;
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
	budget->of_persons.user.most = all / 8 * 5;
	budget->of_unknown.user.most = all / 8;
	budget->small_parts.user.most = (size_t)BUDGET_OWNERS / 4 * BUDGET_SMALL;
	budget->small_parts.all.most = (size_t)BUDGET_OWNERS * BUDGET_SMALL;
	return budget;
}

void budget_of_persons(struct budget *budget, uint64_t (*person_of)(uint32_t owner))
{
	budget->person_of = person_of;
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
	quota_free(&budget->of_persons);
	quota_free(&budget->of_unknown);
	quota_free(&budget->small_parts);
	free(budget);
}

static struct quota *quota_of(struct budget *budget, const struct budget_account *account)
{
	return account->person == BUDGET_UNKNOWN ? &budget->of_unknown : &budget->of_persons;
}

/* *limit: where it does not fit. */
static bool fits(struct budget *budget, const struct budget_account *account, size_t bytes,
                 enum budget_limit *limit)
{
	*limit = BUDGET_LIMIT_ALL;
	if (bytes > budget->all || budget->used > budget->all - bytes)
		return false;
	*limit = BUDGET_LIMIT_PERSON;
	return !quota_refuses(quota_of(budget, account), account->person, 0, bytes);
}

static void add(struct budget *budget, const struct budget_account *account, size_t bytes)
{
	budget->used += bytes;
	quota_add(quota_of(budget, account), account->person, 0, bytes);
}

static void give_beyond(struct budget *budget, struct budget_account *account, size_t bytes)
{
	quota_give(&budget->small_parts, account->person, 0, bytes);
	account->beyond -= bytes;
}

/* An ended owner's small part is others' again, if there is room by now for what it left there. */
static void settle(struct budget *budget, struct budget_account *account)
{
	enum budget_limit limit;

	if (!fits(budget, account, account->beyond, &limit))
		return;
	add(budget, account, account->beyond);
	give_beyond(budget, account, account->beyond);
}

/* What it holds stays its person's for good. */
static void close_account(struct budget *budget, struct budget_account *account)
{
	settle(budget, account);
	account_drop(budget, account);
}

static struct budget_account *get(struct budget *budget, uint32_t owner)
{
	struct budget_account *account = MAP_FIND(budget->accounts, &owner);

	if (account && !account->ended) {
		if (!account->used && budget->person_of) /* its number may be another's by now */
			account->person = budget->person_of(owner);
		return account;
	}
	if (account)
		close_account(budget, account);
	if (HASH_COUNT(budget->accounts) >= ACCOUNTS_MAX)
		close_account(budget, budget->accounts);
	account = MAP_ADD(budget->accounts, owner, &owner);
	account->person = budget->person_of ? budget->person_of(owner) : QUOTA_ROOT;
	return account;
}

void budget_person(struct budget *budget, uint32_t owner, uint64_t person)
{
	struct budget_account *account = get(budget, owner);

	if (!account->used)
		account->person = person;
}

void budget_began(struct budget *budget, uint32_t owner, uint64_t began)
{
	struct budget_account *account = MAP_FIND(budget->accounts, &owner);

	if (!began || (account && account->began == began))
		return;
	if (account)
		close_account(budget, account);
	get(budget, owner)->began = began;
}

static void refuse(struct budget *budget, struct budget_account *account, enum budget_limit limit)
{
	budget->refused++;
	if (account->told)
		return;
	account->told = true;
	if (budget->n_news == NEWS_MAX) {
		budget->unnamed++;
		return;
	}
	budget->news[budget->n_news++] = (struct budget_news){ account->owner, limit };
}

/* Of those that are everybody's own. */
static bool take_small(struct budget *budget, struct budget_account *account, size_t bytes)
{
	if (account->used + bytes > BUDGET_SMALL)
		return false;
	if (quota_take(&budget->small_parts, account->person, 0, bytes))
		return false;
	account->used += bytes;
	account->beyond += bytes;
	return true;
}

bool budget_take(struct budget *budget, uint32_t owner, size_t bytes)
{
	struct budget_account *account;
	enum budget_limit limit;

	if (!budget || !bytes)
		return true;
	account = get(budget, owner);
	if (bytes > budget->each || account->used > budget->each - bytes) {
		refuse(budget, account, BUDGET_LIMIT_OWN);
		return false;
	}
	if (fits(budget, account, bytes, &limit)) {
		account->used += bytes;
		add(budget, account, bytes);
		return true;
	}
	if (take_small(budget, account, bytes))
		return true;
	refuse(budget, account, limit);
	return false;
}

void budget_give(struct budget *budget, uint32_t owner, size_t bytes)
{
	struct budget_account *account = budget ? MAP_FIND(budget->accounts, &owner) : NULL;
	size_t beyond = 0;

	if (!budget)
		return;
	if (account) {
		beyond = bytes < account->beyond ? bytes : account->beyond;
		give_beyond(budget, account, beyond);
		account->used -= bytes < account->used ? bytes : account->used;
		quota_give(quota_of(budget, account), account->person, 0, bytes - beyond);
	}
	bytes -= beyond;
	budget->used -= bytes < budget->used ? bytes : budget->used;
	if (account && account->ended && !account->used)
		account_drop(budget, account);
}

void budget_end(struct budget *budget, uint32_t owner)
{
	struct budget_account *account = budget ? MAP_FIND(budget->accounts, &owner) : NULL;

	if (!account)
		return;
	settle(budget, account);
	account->ended = true;
	if (!account->used)
		account_drop(budget, account);
}

size_t budget_used(const struct budget *budget)
{
	return budget ? budget->used : 0;
}

bool budget_is_worn(const struct budget *budget)
{
	return budget->used > budget->used_as_new + (budget->all - budget->used_as_new) / 4 ||
	       budget->refused > budget->refused_as_new;
}

void budget_as_new(struct budget *budget)
{
	budget->used_as_new = budget->used;
	budget->refused_as_new = budget->refused;
}

uint64_t budget_refused(const struct budget *budget)
{
	return budget ? budget->refused : 0;
}

bool budget_news(struct budget *budget, uint32_t *owner, enum budget_limit *limit)
{
	if (!budget || budget->told == budget->n_news)
		return false;
	*owner = budget->news[budget->told].owner;
	*limit = budget->news[budget->told++].limit;
	return true;
}

uint64_t budget_unnamed(const struct budget *budget)
{
	return budget ? budget->unnamed : 0;
}
