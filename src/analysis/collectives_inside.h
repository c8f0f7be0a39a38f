/* SPDX-License-Identifier: MIT */
/* What matches are made of. Private to collectives*.c. */
#pragma once

#include "analysis/collectives.h"
#include "base/map.h"
#include "base/quota.h"

#define COLLECTIVES_RANKS_MOST 4096 /* of one person */

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

struct comm_key {
	uint64_t id[2], person;
};

struct comm_entry {
	struct comm_key key;
	uint32_t comm;
	bool other; /* it was made by another id */
	UT_hash_handle hh;
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
	struct quota shares[COLLECTIVES_TABLES]; /* but of one person alone, see `most` */
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

/* collectives_means.c */

enum meaning {
	MEANS_UNKNOWN, /* not looked at */
	MEANS_NOTHING,
	MEANS_COLLECTIVE,
	MEANS_GROUP_BEGIN,
	MEANS_GROUP_END,
	MEANS_MADE,
	MEANS_MADE_ALL, /* for several GPUs of one process */
	MEANS_SPLIT,
	MEANS_DESTROYED,
	MEANS_KNOWN, /* what RAS told: which communicator a handle is, */
	MEANS_RANK,  /* and how many collectives a rank has launched; */
	MEANS_BOTH,  /* the same that who recorded had seen before */
};

enum word {
	WORD_COMM,
	WORD_BYTES,
	WORD_RANK,
	WORD_RANKS,
	WORD_ID,
	WORD_COLOR,
	WORD_KEY,
	WORD_MADE,
	WORD_ID2,
	WORD_PID,
	WORD_STATE,
	WORD_DEVICES,
	WORD_COMM0, /* to comm7 */
	WORD_COUNTS = WORD_COMM0 +
	              COLLECTIVES_ALL, /* by enum collective_kind, of which RAS counts the first */
	WORDS = WORD_COUNTS + COLLECTIVES_TOLD
};

struct function_means {
	uint8_t meaning, kind;
	uint8_t arg[WORDS]; /* where each word is; UINT8_MAX: it has none */
};

const struct function_means *function_means(struct collectives_own *own,
                                            const struct function *function);

/* 0 where it has no such word. */
uint64_t call_word(const struct function_means *means, const struct call *call, enum word word);

/* collectives.c: calls move, so that no open group may know them by their places. */
void groups_forget(struct collectives *collectives);

/* collectives_people.c */

void tables_begin(struct collectives *collectives);

/* Room for one more of this process's person, of which there are so many now; false: it is counted
 * as left out. What he had of a recording stays his. */
bool table_take(struct collectives *collectives, enum collectives_table table, size_t n,
                const struct process *process);
void table_left_out(struct collectives *collectives, enum collectives_table table, uint64_t person);

/* In the end: whose calls were lost, everybody's, or his for whom there was no room; and which
 * communicators several persons say that they are in. */
void ranks_lose(struct collectives *collectives, const struct run_info *run);
void claims_find(struct collectives *collectives);

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
