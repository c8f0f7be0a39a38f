/* SPDX-License-Identifier: MIT */
/*
 * What the host's time in gaps was made of, where it is recorded what threads wait for: work on a
 * CPU, calls of CUDA, and waits for a CPU, a disk, the network, others. The parts add up to the
 * time until the call that asked for the next work was over.
 */
#ifndef CUSCOPE_REPORT_GAPS_GAP_WAITS_H
#define CUSCOPE_REPORT_GAPS_GAP_WAITS_H

#include "report/gaps/gap_stacks.h"

enum gap_wait {
	GAP_WAIT_PROGRAM, /* it ran: its own work between calls */
	GAP_WAIT_CPU,
	GAP_WAIT_DISK,
	GAP_WAIT_NETWORK,
	GAP_WAIT_MEMORY, /* page faults, swapping */
	GAP_WAIT_LOCK,
	GAP_WAIT_SLEEP,
	GAP_WAIT_PROCESS, /* pipes, children, events of several files */
	GAP_WAIT_DRIVER,  /* in calls of CUDA, and their waits for the GPU; devices */
	GAP_WAIT_OTHER,
	GAP_WAIT_UNKNOWN,
	GAP_WAITS
};

const char *gap_wait_name(enum gap_wait wait); /* "disk" */
const char *gap_wait_text(enum gap_wait wait); /* "waited for the disk": after "the host" */

enum gap_wait gap_wait_of(enum wait_kind kind);

/* Whether it is told who: had the CPU, or ended the wait. */
static inline bool gap_wait_has_who(enum gap_wait wait)
{
	return wait == GAP_WAIT_CPU || wait == GAP_WAIT_LOCK || wait == GAP_WAIT_PROCESS;
}

/* ---- who ----------------------------------------------------------------------------------- */

#define GAP_WHO_MOST 4096 /* told apart; all further ones are GAP_WHO_OTHERS */
enum { GAP_WHO_NOBODY, GAP_WHO_OTHERS, GAP_WHO_FIRST };

struct gap_who {
	char name[32];
	uint32_t number; /* of the process that had a CPU, or the thread that ended a wait */
};

struct gap_whos;

struct gap_whos *gap_whos_new(void);
void gap_whos_free(struct gap_whos *whos);
uint32_t gap_whos_number(struct gap_whos *whos, const char *name, uint32_t number);
const struct gap_who *gap_whos_at(const struct gap_whos *whos, uint32_t who);

struct gap_who_sum {
	uint32_t who;
	uint64_t ns, count;
};

/* ---- sums ---------------------------------------------------------------------------------- */

struct gap_wait_sum {
	uint64_t ns, count, longest_ns; /* count: of waits, in gaps; 0 of what is none */
	uint64_t *who_ns, *who_count;   /* by number; NULL: of nobody */
	size_t n_who;
	struct gap_stacks lines;
};

/* A zeroed one is empty. */
struct gap_waits {
	uint64_t gap_ns;  /* of all gaps that are due to the host; */
	uint64_t host_ns; /* and of these what is split here */
	struct gap_wait_sum of[GAP_WAITS];
};

/* What is known of one gap. */
struct gap_split {
	struct gap_waits *into;
	size_t *room;      /* for stacks: see gap_stacks_add() */
	uint64_t ns;       /* until the call that asked was over; */
	uint64_t cuda_ns;  /* of these in calls of CUDA */
	uint64_t in_calls; /* waits within these that count as such */
	uint64_t wait_ns[GAP_WAITS];
};

/* Of each part of the thread's time; of samples on a CPU, too. */
void gap_split_add(struct gap_split *split, const struct gap_sampled *sampled);

/* After the last part: what the longest part is, and how long. */
enum gap_wait gap_split_end(struct gap_split *split, uint64_t gap_ns, uint64_t *most_ns);

/* Adds all of `from`, which is empty then. */
void gap_waits_move(struct gap_waits *to, struct gap_waits *from, size_t *room);
void gap_waits_free(struct gap_waits *waits);

/* Those with most time first, at most `most` of them; what is left of the sum is in *rest_ns. */
size_t gap_waits_who(const struct gap_wait_sum *sum, struct gap_who_sum *rows, size_t most,
                     uint64_t *rest_ns);

/* The parts that there are, most time first. */
size_t gap_waits_order(const struct gap_waits *waits, enum gap_wait order[GAP_WAITS]);

#endif
