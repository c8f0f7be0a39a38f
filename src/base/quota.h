/* SPDX-License-Identifier: MIT */
/*
 * How much of something one may have: a process, its user, all users but root, all. So nobody takes
 * what is there for everybody. What it is of, whoever uses a quota says: hooks, files, bytes.
 *
 * A quota is a struct that begins as its limits, with all else 0; a limit of 0 is none. Users are
 * numbers (probe/person.h), and 0 is root, who has the limit of all alone, unless `root_too` says
 * otherwise. What is refused is counted here, and told by the sentence of the limit that refused.
 *
 * Not for several threads at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QUOTA_ROOT 0ull

struct quota_limit {
	size_t most;
	const char *why; /* "there are 16,384 hooks in all"; NULL: nobody is told */
};

struct quota {
	struct quota_limit process, user, others, all;
	bool root_too; /* has the user's limit as well */

	size_t taken, taken_by_others; /* by all; by all but root */
	uint64_t refused;              /* how often, ever */
	struct quota_owner *owners;    /* who has something */
};

/*
 * Takes so many for a process of a user; pid 0 is no process in particular. NULL, or why not
 * (static): then nothing is taken, and it is counted.
 */
const char *quota_take(struct quota *quota, uint64_t user, uint32_t pid, size_t n);

/* The same where it is there already and has to be counted, whatever the limits are. */
void quota_add(struct quota *quota, uint64_t user, uint32_t pid, size_t n);

/*
 * One more of `most`, of which a user but root may have three times as many as are free: alone
 * three quarters, two of them three sevenths each, so that there is always some for the next. The
 * limits of the quota are not asked. False, and counted: there is no room for that user.
 */
bool quota_take_beside(struct quota *quota, uint64_t user, size_t most);

/* Gives back what the same user and process took. */
void quota_give(struct quota *quota, uint64_t user, uint32_t pid, size_t n);

/* Why so many could not be taken; NULL: they could. Nothing is taken or counted. */
const char *quota_refuses(const struct quota *quota, uint64_t user, uint32_t pid, size_t n);

/* Who has most, root as well; where nobody has anything, root. */
uint64_t quota_most(const struct quota *quota);

/* What a user has. */
size_t quota_of_user(const struct quota *quota, uint64_t user);

/*
 * Whether half of what this user may have, or of what he shares, is taken. Of another user but root
 * no more counts than half of his limit: else one who has all of it would make it crowded for
 * everybody.
 */
bool quota_is_crowded(const struct quota *quota, uint64_t user);

/*
 * Of a list of so many places that is gone through twice, best first: at first each user but root
 * has two fifths at most, then those who are left take what nobody wanted. So a user who is alone
 * has all places, and one with thousands of processes leaves room for others'.
 */
struct quota quota_of_places(size_t places);

/* All that was taken is given back. */
void quota_free(struct quota *quota);
