/* SPDX-License-Identifier: MIT */
/*
 * Who has how many of a bounded number of places. A list is gone through twice, best first: at
 * first each person takes a share at most, then those who are left take what nobody wanted. So a
 * user who is alone has all places, and one with thousands of processes leaves room for others'.
 * Root has no share: what root starts is the machine's. Persons are those of probe/person.h.
 */
#ifndef CUSCOPE_NODE_USER_SHARES_H
#define CUSCOPE_NODE_USER_SHARES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct user_share {
	uint64_t person;
	size_t taken;
};

/* All 0 but `most`: nobody has taken any. */
struct user_shares {
	size_t most; /* of one person; user_shares_of() */
	struct user_share *persons;
	size_t n;
};

/* Of so many places. */
size_t user_shares_of(size_t places);

/* Whether a place is left in this person's share; it is taken then. */
bool user_shares_take(struct user_shares *shares, uint64_t person);
void user_shares_give_back(struct user_shares *shares, uint64_t person);

void user_shares_free(struct user_shares *shares); /* what it points to */

#endif
