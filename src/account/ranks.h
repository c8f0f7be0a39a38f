/* SPDX-License-Identifier: MIT */
/*
 * Ranks by what collectives say: who comes last, by how much, how long the others wait for it, and
 * what it does meanwhile, which is the account's of the GPUs that wait.
 *
 * A kernel that waits beside others that compute costs nothing, as in a backward pass whose
 * gradients are reduced meanwhile. So waiting is the time in which a waiting GPU runs nothing but
 * what communicates. Of ranks that come by their calls it is all of it.
 */
#pragma once

#include "account/account.h"
#include "analysis/spread.h"

#define RANKS_LATE    4     /* users whose late rank is named */
#define RANKS_LAST_NS 10000 /* who comes less than this behind the one before is not late */

/* Of a process in a communicator. Where kernels of some of its collectives were measured, those
 * alone are told of: the others' calls come as far ahead of their kernels as the host is. */
struct rank_row {
	const struct collective_rank *rank;
	uint64_t n, n_last;        /* collectives that it was in, and came last to, for certain */
	uint64_t first_ns, end_ns; /* of these */
	uint64_t time_ns;          /* from the one to the other what was measured */
	uint64_t most_ns;          /* the most of this of its communicator's: others waited longer */
	bool by_gpu;               /* kernels were measured, so that waiting is as above */
	uint64_t waited_ns;        /* for others, in one collective at least */
	uint64_t held_ns;          /* others that were seen waited for it alone, on average */
	uint64_t beside_ns;        /* and computed meanwhile, so that it cost them nothing */
	uint64_t waited_until_ns, held_until_ns;
	uint64_t *late_ns; /* of the n_last how long the others waited alone, least first; */
	size_t n_late;     /* the last so many of these are nine tenths of their sum: */
	double lateness_ns;
	/* What it does for longer than the others that were recorded, or (not `beside`) most of
	 * what it does while they wait; NULL: not known. See ranks_causes.h. */
	const struct account_part *why;
	bool beside;
	double why_ns, why_of_ns; /* its time, and of all that it does so: of no unit `beside` */
};

/* Collectives of one kind in a communicator. */
struct rank_kind {
	uint32_t comm;
	uint8_t kind;
	uint32_t most;     /* ranks that were seen in one */
	uint64_t n, n_gpu; /* n_gpu: whose kernels were measured, as all that follows */
	uint64_t transfer_ns, waiting_ns; /* from the last one's begin to the end; before it, of all
	                                     but the last on average */
	struct spread bytes;
};

struct ranks {
	struct rank_row *rows; /* by communicator, then by number; those without collectives too */
	struct rank_kind *kinds;
	size_t n_rows, n_kinds;
	/* For whom the others wait most, one of each user who has one to be named: most first. */
	struct rank_row *late[RANKS_LATE];
	size_t n_late;
	uint64_t held_ns;   /* of all ranks */
	uint64_t n_unclear; /* collectives whose last rank was less late than clocks are good for */
};

/* After facts_end(); `accounts` of the same facts. They live as long. */
void ranks_make(struct ranks *ranks, const struct facts *facts, const struct accounts *accounts);
void ranks_clear(struct ranks *ranks);

/* The share of its time, 0 to 1, in which others waited for it alone; that it waited for others. */
double rank_held(const struct rank_row *row);
double rank_waited(const struct rank_row *row);

enum rank_class { RANKS_UNCLEAR, RANKS_TRANSFER, RANKS_WAITING, RANKS_MIXED };

/* Of the n_late: the value that a share of them, 0 to 1, do not exceed, and how far from the middle
 * one half of them are. 0 where there are none. */
uint64_t rank_late_ns(const struct rank_row *row, double share);
uint64_t rank_late_mean_ns(const struct rank_row *row);
uint64_t rank_late_deviation_ns(const struct rank_row *row);

/* What most of the time of such collectives is. */
enum rank_class rank_kind_class(const struct rank_kind *kind);
