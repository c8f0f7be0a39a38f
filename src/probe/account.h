/* SPDX-License-Identifier: MIT */
/*
 * How long somebody has made cuscope wait. What is waited is put in and leaks out again; who has
 * too much of it is not waited for until half of that has gone. A server that answers each time
 * just before the limit gets a tenth of the time by that, and no more than ACCOUNT_MOST_NS at once.
 *
 * What is honest fits in. Waits for this machine's disks and root's file servers are not put in
 * where they can be told (helper_inside.h). 200 pages that a bad disk needs 20 ms for can be waited
 * for at once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define ACCOUNT_MOST_NS  4000000000ull
#define ACCOUNT_AGAIN_NS 2000000000ull
#define ACCOUNT_LEAK     10 /* of ten seconds, one */

struct account {
	uint64_t waited_ns, at_ns;
	bool over;
	bool told; /* its owner's */
};

/* True: that was too much, and was not before. */
bool account_charge(struct account *account, uint64_t waited_ns, uint64_t now_ns);

/* Whether nothing is to be waited for now. */
bool account_is_over(struct account *account, uint64_t now_ns);

bool account_is_empty(struct account *account, uint64_t now_ns);

/* One of each user (person.h). */
struct accounts {
	struct account_user *users;
};

struct account *accounts_of(struct accounts *accounts, uint64_t person, uint64_t now_ns);
void accounts_free(struct accounts *accounts);

/*
 * The time that looks at what processes have mapped, and at their threads, take of the capture, an
 * account (account.h) for each user but root, of each kind of them. A process can have 65,530
 * mappings, and map another file each moment: each look goes through all of them. Who has used a
 * half to four seconds of a processor has a small part of the time from then on. On any thread.
 */

enum look_time {
	LOOK_AT_MAPS,    /* listing them, because one more file is mapped */
	LOOK_AT_RUNNING, /* and of all processes that are there when tracing begins */
	LOOK_BEFOREHAND, /* the same for CUDA libraries of root's, which others may map later */
	LOOK_INTO_FILES, /* that are new, and hooking them */
	LOOK_FOR_JUMPS,  /* where probes would be */
	LOOK_FOR_NAMES,  /* of what is on stacks */
	LOOK_AT_SYMBOLS, /* of the files that these are in */
	LOOK_AT_THREADS, /* and processes and their descriptors: what /proc says of each; and for
	                    communicators in memory */
	LOOK_AT_TABLES,  /* by which stacks are walked, of the files that are mapped */
	LOOK_INTO_CALLS, /* texts in pages that are not there, and threads that agents tell of */
	LOOK_TIMES
};

/* Whether this user's processes are not to be looked at now. */
bool look_time_is_over(enum look_time what, uint64_t person);

/* Whether that has been so of anybody; it costs nothing to ask. */
bool look_time_was_over(enum look_time what);

/* `busy_ns`: as by helper_busy_ns(). */
void look_time_charge(enum look_time what, uint64_t person, uint64_t busy_ns);
