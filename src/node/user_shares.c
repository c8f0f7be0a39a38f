// SPDX-License-Identifier: MIT
#include "node/user_shares.h"

#include <stdlib.h>

#include "base/xalloc.h"
#include "probe/person.h"

#define PERCENT 40

size_t user_shares_of(size_t places)
{
	size_t share = places * PERCENT / 100;

	return share ? share : 1;
}

static struct user_share *find(const struct user_shares *shares, uint64_t person)
{
	for (size_t i = 0; i < shares->n; i++) {
		if (shares->persons[i].person == person)
			return &shares->persons[i];
	}
	return NULL;
}

bool user_shares_take(struct user_shares *shares, uint64_t person)
{
	struct user_share *found;

	if (person == PERSON_ROOT)
		return true;
	found = find(shares, person);
	if (!found) {
		shares->persons =
			xrealloc(shares->persons, (shares->n + 1) * sizeof(*shares->persons));
		found = &shares->persons[shares->n++];
		*found = (struct user_share){ .person = person };
	}
	if (found->taken >= shares->most)
		return false;
	found->taken++;
	return true;
}

/* Who has none left is forgotten, so persons are no more than places. */
void user_shares_give_back(struct user_shares *shares, uint64_t person)
{
	struct user_share *found = find(shares, person);

	if (found && !--found->taken)
		*found = shares->persons[--shares->n];
}

void user_shares_free(struct user_shares *shares)
{
	free(shares->persons);
	*shares = (struct user_shares){ .most = shares->most };
}
