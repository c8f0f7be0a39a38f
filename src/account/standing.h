/* SPDX-License-Identifier: MIT */
/*
 * Communicators that stand still: none of their ranks has launched a collective for a while, and
 * not all have launched the same. Those that have not are waited for by those that have.
 *
 * Each recording says what NCCL's RAS told there of all ranks, or else how many calls of its own
 * ranks were seen. Several are put together without times: of a rank what says most launches is
 * last, whichever clock it is of.
 */
#pragma once

#include "account/account.h"
#include "base/quota.h"

#define STANDING_MAX   8          /* communicators that are told of; others leave two fifths */
#define STANDING_NS    1500000000 /* less, and it is a step that takes long */
#define STANDING_RANKS 64         /* of one, those behind first */

/* A rank, as one recording tells of it. */
struct standing_rank {
	struct collective_told told; /* its process lives as long as the facts */
	uint32_t source;             /* facts of one time have one number */
	bool counted;                /* by its calls: RAS did not tell */
	bool behind;                 /* has not launched what others have */
	uint32_t thread;             /* its first one; FACTS_NONE: it is not recorded, */
	enum account_cause does;     /* what that is in; ACCOUNT_UNKNOWN: not known */
	uint32_t chain;              /* 0: not known */
	/* The same in words, for when the facts are gone: set by whoever has them, and freed here.
	 */
	char *name, *where, *thread_name;
	uint32_t pid, tid; /* 0: it is not recorded */
};

struct standing {
	uint64_t id[2]; /* the communicator's */
	uint64_t person;
	bool claimed; /* others say that theirs has this id as well */
	uint32_t n_told, n_behind, n_missing;
	uint8_t kind;      /* enum collective_kind: those behind have not launched this one, */
	uint64_t number;   /* the so-manieth, from 1: the first that one of them lacks */
	uint64_t most;     /* that a rank has launched of it */
	uint64_t still_ns; /* for how long at least nobody has launched any */
	const struct standing_rank *ranks[STANDING_RANKS];
	uint32_t n;
};

struct standings {
	struct standing_rank *rows;
	size_t n_rows;
	struct quota of_rows; /* what is refused is left out */
	uint32_t n_sources;
	struct standing *of;
	size_t n, n_more; /* n_more: that there was no place for */
};

/* After facts_end(), and before facts_forget(): its rows come behind those that are there. */
void standings_add(struct standings *standings, const struct facts *facts);

/* Once, behind all of them. */
void standings_judge(struct standings *standings);

/* Whether a communicator of this person stands still (collectives_person()). */
bool standings_are_of(const struct standings *standings, uint64_t person);
void standings_clear(struct standings *standings);
