/* SPDX-License-Identifier: MIT */
/*
 * Where the host was while a GPU had nothing to do: the time of gaps by the stacks that samples
 * found in them. Time on a CPU is that of as many samples as fell into the gaps, an estimate; time
 * in which the thread was blocked is what was measured.
 */
#ifndef CUSCOPE_REPORT_GAPS_GAP_STACKS_H
#define CUSCOPE_REPORT_GAPS_GAP_STACKS_H

#include "analysis/place.h"
#include "report/gaps/gap_samples.h"

#define GAP_STACKS_MOST (1u << 17) /* of all tables of a report together; 100 bytes each */

/* How much of it is known. A zeroed one is empty. */
struct gap_sampling {
	uint64_t gap_ns;               /* of all gaps, with samples in them or without */
	uint64_t cpu_ns, blocked_ns;   /* that samples stand for */
	uint64_t samples;              /* of both kinds */
	const struct process *process; /* of the thread that was looked at, */
	uint32_t tid;
	bool several; /* threads; the two are of the first of them */
};

#define GAP_STACKS_RECENT 64 /* a power of two */

struct gap_stack;

/* A zeroed one is empty. */
struct gap_stacks {
	struct gap_sampling known;
	struct gap_stack *all;
	struct gap_stack *recent[GAP_STACKS_RECENT]; /* by the id of the stack: found at once */
	uint64_t others_ns, others_samples;          /* of stacks that there was no room for */
};

/* `room`: how many stacks more are kept, of all who share it. */
void gap_stacks_add(struct gap_stacks *stacks, size_t *room, const struct gap_sampled *sampled);

/* Samples of this thread were added. */
void gap_sampling_of(struct gap_sampling *known, const struct process *process, uint32_t tid);

/* Adds all of `from`, which is empty then. */
void gap_stacks_move(struct gap_stacks *to, struct gap_stacks *from, size_t *room);
void gap_stacks_free(struct gap_stacks *stacks);

/* Of a table of few stacks: the place that has most of it, and how much; NULL: it is empty. */
const char *gap_stacks_most(const struct gap_stacks *stacks, struct stack_places *places,
                            uint64_t *ns);

/* ---- what comes out ------------------------------------------------------------------------ */

/* The time of one place; see analysis/place.h. */
struct gap_place {
	uint32_t place;
	uint64_t cpu_ns, blocked_ns, samples;
	const struct stack *stack; /* with most of it, */
	uint64_t stack_ns;         /* and how much that is */
};

#define GAP_PLACE_OTHERS UINT32_MAX /* gap_place's place: stacks that there was no room for */

/* "(other stacks)" where there was no room for them. Lives as long as `places`. */
const char *gap_place_label(const struct stack_places *places, const struct gap_place *place);

static inline uint64_t gap_place_ns(const struct gap_place *place)
{
	return place->cpu_ns + place->blocked_ns;
}

/* The time of one stack. */
struct gap_stack_row {
	const struct stack *stack; /* NULL: samples without one */
	uint64_t cpu_ns, blocked_ns, samples;
};

struct gap_host {
	struct gap_sampling known;
	struct gap_place *places; /* most time first */
	size_t n;
	struct gap_stack_row *stacks; /* the same */
	size_t n_stacks;
};

/* Of several tables together; gap_host_free() afterwards. */
void gap_host_sum_up(const struct gap_stacks *const *tables, size_t n, struct stack_places *places,
                     struct gap_host *host);
void gap_host_free(struct gap_host *host);

/* How much of the gaps' time a place had, 0 to 100: samples can stand for more than there is. */
double gap_host_share(const struct gap_host *host, uint64_t ns);

/* How much of it has a sample, 0 to 100. */
double gap_host_covered(const struct gap_sampling *known);

/*
 * How far to believe it. Of 30 samples a share of 40 % is right within 9 points in two cases of
 * three; of ten within 15, which still tells the largest from the rest. Time in which a thread was
 * blocked is no estimate, so where that is most of it the number does not matter.
 */
enum gap_trust {
	GAP_TRUST_NONE,   /* no sample */
	GAP_TRUST_GUESS,  /* fewer than ten */
	GAP_TRUST_PARTLY, /* of less than half of the time: nothing tells of the rest */
	GAP_TRUST_LIKELY,
	GAP_TRUST_SURE /* 30 or more, of four fifths of the time or more */
};

enum gap_trust gap_host_trust(const struct gap_sampling *known);
const char *gap_trust_name(enum gap_trust trust); /* "sure" */

#endif
