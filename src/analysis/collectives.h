/* SPDX-License-Identifier: MIT */
/*
 * Collectives of NCCL, and of libraries with its interface, put together over ranks: the calls of
 * one communicator, function and number are one collective, whichever process made them, and
 * whenever. Times never say which calls belong together.
 *
 * Calls come from the hooks of the file `nccl`, a communicator's identity from its creation, or
 * from what NCCL's RAS told (capture/ranks_feed.h), and so does the number of its first call. One
 * whose identity is not known, and one of whose calls some may be missing, is matched with nobody.
 *
 * Any process can say that it is a rank of any communicator, whose id is no secret. So only ranks
 * of one person (probe/person.h) are together: what others say of the same id is a communicator of
 * theirs, and each person has a share of what is kept.
 */
#pragma once

#include "trace/event.h"

#define COLLECTIVES_NONE UINT32_MAX

/* The second word of the id of a communicator whose ranks are all in one process. */
#define COLLECTIVES_IN_ONE 2
#define COLLECTIVES_ALL    8 /* of such ranks so many are known */

enum collective_kind {
	COLLECTIVE_ALL_REDUCE,
	COLLECTIVE_REDUCE_SCATTER,
	COLLECTIVE_ALL_GATHER,
	COLLECTIVE_BROADCAST,
	COLLECTIVE_REDUCE,
	COLLECTIVE_ALL_TO_ALL,
	COLLECTIVE_GATHER,
	COLLECTIVE_SCATTER,
	COLLECTIVE_COUNTED, /* those above have numbers; send and receive have none */
	COLLECTIVE_SEND = COLLECTIVE_COUNTED,
	COLLECTIVE_RECEIVE,
	COLLECTIVE_KINDS
};

const char *collective_kind_name(enum collective_kind kind); /* "AllReduce" */

/* Whether its kernels end together on all ranks: each needs what all others bring. */
bool collective_ends_together(enum collective_kind kind);

/* Of one rank. */
struct collective_call {
	uint64_t begin_ns, end_ns;         /* the host's call; to its begin if it did not return */
	uint64_t gpu_begin_ns, gpu_end_ns; /* its kernel; 0: not known */
	uint64_t number;                   /* of its kind in its communicator, from 0 */
	uint64_t bytes;
	uint64_t correlation; /* of its launch in the process; 0: none was seen */
	uint32_t rank;        /* a row of ranks */
	uint32_t tid;
	uint8_t kind; /* enum collective_kind */
	bool joined;  /* of a group: its kernel is that of the group's first */
	bool settled; /* its number is certain: collectives_settle() gave it; where calls were lost,
	               * RAS counted the same before and after */
};

/* A process in a communicator. */
struct collective_rank {
	const struct process *process;
	uint64_t person;    /* collectives_person() of it */
	uint64_t handle;    /* the process's own */
	uint32_t comm;      /* a row of comms; COLLECTIVES_NONE: which is not known */
	uint64_t ras_id[2]; /* RAS' of that, which may not be its own; 0: not known */
	int32_t number;     /* in it; -1: not known */
	uint64_t first[COLLECTIVE_COUNTED]; /* the number of its first call that was seen */
	bool made;                          /* it was seen to be made: no call came before */
	bool uncounted[COLLECTIVE_COUNTED]; /* it was not, and how many came before is not known */
	bool partly[COLLECTIVE_COUNTED];    /* only calls that are settled have a number */
	bool counted[COLLECTIVE_COUNTED]; /* it was not, and that is known: collectives_settle() */
	bool gone;                        /* it was destroyed, or its process has ended */
	bool lost; /* calls of its person were, or of somebody: see struct collectives */
	uint64_t n_calls, last_ns; /* last_ns: its last call's begin; 0: none */
};

#define COLLECTIVES_TOLD (COLLECTIVE_REDUCE + 1) /* kinds that RAS counts: the first */

/* A rank of any machine, as RAS told of it in a recording, last. */
struct collective_told {
	uint64_t id[2]; /* the communicator's */
	uint64_t person;
	uint32_t size;
	int32_t number;
	uint32_t file;                 /* of several that are read together */
	const struct process *process; /* NULL: it is not recorded, or elsewhere */
	char host[64];
	bool missing, failed; /* see struct ras_rank */
	uint64_t counts[COLLECTIVES_TOLD];
	uint64_t first_ns, moved_ns, last_ns; /* moved: when its counts were seen to be others */
};

struct collective_comm {
	uint64_t id[2];   /* the same in all its ranks; the second is 0 where the first is all */
	uint64_t person;  /* of all its ranks */
	uint32_t size;    /* ranks that it has; 0: not known */
	uint32_t n_ranks; /* that were recorded */
	uint64_t matched, unlike; /* collectives; of them with different sizes: none is used */
	bool partly;  /* a rank's calls have numbers in part: what not all ranks are in is not told
	               */
	bool claimed; /* others say that theirs has this id as well */
};

/* A person who says that he has ranks of a communicator, of which others say that, too. */
struct collective_claim {
	uint64_t id[2], person;
};

/* What is kept of each person, and of all. */
enum collectives_table {
	COLLECTIVES_CALLS,
	COLLECTIVES_KERNELS,
	COLLECTIVES_RANKS,      /* in communicators, of processes */
	COLLECTIVES_THREADS,    /* that call; without one no call of it has a kernel */
	COLLECTIVES_COUNTS,     /* that RAS told of ranks */
	COLLECTIVES_TOLD_RANKS, /* of any machine */
	COLLECTIVES_TABLES
};

/* What there was no room for, of one person. */
struct collectives_left {
	uint64_t person;
	uint64_t n[COLLECTIVES_TABLES];
};

#define COLLECTIVES_LEFT_MAX 64 /* persons; the last stands for all others */

/* A collective that at least two ranks were seen in. */
struct collective {
	uint32_t comm, first, n; /* first: of its calls, which lie together, by ranks */
	uint8_t kind;
	bool by_gpu;                /* ranks arrive with their kernels; else with their calls */
	uint32_t last;              /* the call that came last */
	uint64_t first_ns, last_ns; /* arrivals */
	uint64_t end_ns;            /* by GPU: when the first of all left; else 0 */
};

struct collectives {
	struct collective_rank *ranks;
	struct collective_comm *comms;
	struct collective_call *calls;   /* after collectives_end(): of a collective together */
	struct collective *all;          /* by communicator, then by time */
	struct collective_told *told;    /* by communicator, number and file */
	struct collective_claim *claims; /* by id: at least two of each */
	struct collectives_left *left;
	size_t n_told, n_claims, n_left;
	size_t n_ranks, n_comms, n_calls, n_all;
	uint64_t unknown;   /* calls of communicators of which nothing is known */
	uint64_t uncounted; /* of known ones, of which it is not known how many came before */
	uint64_t unpaired;  /* calls that have no number: send and receive */
	uint64_t alone;     /* collectives that no other rank was seen in */
	uint64_t left_out;  /* calls that there was no room for: as if lost, of their person */
	bool lost;          /* calls were: what no two counts of RAS have between them is matched
	                     * with none, nor what not all ranks were seen in */
	size_t most;        /* calls that there is room for, all of one person; 0: of a recording */
	struct collectives_own *own;
};

/* Whose a process is, so that it is only together with what is his. Who is not known is nobody
 * else, and namespaces and ranges of uids are a machine's own. */
uint64_t collectives_person(const struct process *process);

void collectives_init(struct collectives *collectives);
void collectives_clear(struct collectives *collectives);

/* Calls of hooks and of CUDA, in their order; `communicates`: an activity is a kernel that does. */
void collectives_event(struct collectives *collectives, const struct event *event);
void collectives_kernel(struct collectives *collectives, const struct event *event);

/* Once, behind all events. */
void collectives_end(struct collectives *collectives, const struct run_info *run);

/*
 * Instead of that, again and again while events come: `each` is told of the collectives that all
 * living ranks of them that were seen have called, all before `before_ns`, by communicator, then by
 * time. `calls` has theirs until then, and is without them after it. What lacks a rank, or its
 * number, waits for as long as there is room.
 */
void collectives_settle(struct collectives *collectives, uint64_t before_ns,
                        void (*each)(void *data, const struct collective *one), void *data);

/* Of a communicator since when all its living ranks but one have called the first collective that
 * waits, and that one; after collectives_settle(). 0: none is, or more than one. */
uint64_t collectives_missing_ns(const struct collectives *collectives, uint32_t comm,
                                uint32_t *rank);

/* How many a rank has called so far, of all calls that came; UINT64_MAX: that is not known. */
struct collective_counts {
	bool known; /* of a kind at least */
	uint64_t of[COLLECTIVES_TOLD];
};

/* Of each rank; the caller frees them. */
struct collective_counts *collectives_count(const struct collectives *collectives);

/* Whether a living rank's calls are matched with nobody's, for want of what RAS may know; and
 * whether there is room for no more ranks. */
bool collectives_want_ras(const struct collectives *collectives, uint64_t since_ns);
bool collectives_are_full(const struct collectives *collectives);

/* A process has ended. */
void collectives_exit(struct collectives *collectives, const struct process *process);

/* Calls were lost: no number counts any more, until RAS tells them anew. */
void collectives_distrust(struct collectives *collectives);

/* Whether a process has called them. */
bool collectives_know(const struct collectives *collectives, const struct process *process);

/* When a rank came to a collective. */
uint64_t collective_arrival_ns(const struct collective *collective,
                               const struct collective_call *call);
