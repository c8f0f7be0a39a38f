/* SPDX-License-Identifier: MIT */
/* What matches are made of. Private to collectives.c, collectives_match.c and _settle.c. */
#ifndef CUSCOPE_ANALYSIS_COLLECTIVES_INSIDE_H
#define CUSCOPE_ANALYSIS_COLLECTIVES_INSIDE_H

#include "analysis/collectives.h"

/* A rank had launched so many at a time between these. */
struct told_counts {
	uint64_t id[2], begin_ns, end_ns, counts[COLLECTIVES_TOLD];
	uint32_t process;
	int32_t number;
};

/* A kernel that communicates. */
struct collective_kernel {
	uint64_t correlation, begin_ns, end_ns;
	uint32_t process;
};

/* A rank that alone has launched less than all others, while nobody launched any. */
struct behind_rank {
	uint64_t since_ns, last_ns; /* when RAS counted the same first, and last */
	uint32_t rank;
};

struct collectives_own {
	struct function_means *functions;
	size_t n_functions;
	struct rank_entry *ranks;
	struct comm_entry *comms;
	struct thread_entry *threads;
	struct collective_kernel *kernels;
	struct told_counts *told;
	struct told_entry *told_ranks;
	size_t n_kernels, n_told;
	bool *processes; /* that have collectives, by id */
	size_t n_processes;
	struct missing_call {
		uint64_t since_ns;
		uint32_t rank;
	} * missing; /* by communicator, as of the last collectives_settle() */
	size_t n_missing;
	struct behind_rank *behind; /* by what RAS told until then */
	size_t n_behind;
	bool told_anew; /* since it was looked at */
};

/* collectives.c: calls move, so that no open group may know them by their places. */
void groups_forget(struct collectives *collectives);

/* collectives_match.c */

/* Of calls of one rank and kind: how many came before the first, by what RAS counted; false: that
 * is not known. `told` is in order: told_sort(). */
bool calls_before(const struct collectives *collectives, const struct collective_call *calls,
                  size_t n, uint64_t *before);
void told_sort(struct collectives *collectives);

/* By rank, kind and time. */
int calls_in_order(const void *x, const void *y);

/* Whether calls of one collective say the same; what there is to say of it then. */
bool calls_agree(const struct collective_call *calls, uint32_t n);
void collective_fill(struct collective *one, const struct collective_call *calls);

#endif
