/* SPDX-License-Identifier: MIT */
/*
 * What costs a program time in its use of the GPU, as rules that are judged at the end of a trace.
 * A rule says what was seen, how much time it cost and how that is estimated, and what to try. It
 * says nothing where its evidence is thin (findings_limits.h), and rules that need what was not
 * recorded are named rather than taken as passed.
 *
 * A rule is a row of the table in findings.c; the files findings_*.c hold groups of them.
 */
#ifndef CUSCOPE_REPORT_FINDINGS_FINDINGS_H
#define CUSCOPE_REPORT_FINDINGS_FINDINGS_H

#include "trace/event.h"

/*
 * What cases cost, by the stacks of their calls. Where there are more stacks than places for them,
 * the one with least gives its place and its rank up. So a stack that comes often stays, and what
 * is left of each is never too much. A zeroed one is empty.
 */
#define FINDING_STACKS 16

struct finding_stacks {
	struct finding_stack {
		const struct stack *stack; /* NULL: no more follow */
		uint64_t count, cost_ns;
		uint64_t rank_ns; /* at least the cost: with that of those it displaced */
	} of[FINDING_STACKS];
	uint64_t count, cost_ns; /* of all cases that had a stack */
};

/* A line of code, and what the cases there cost. */
struct finding_line {
	const char *line;
	uint64_t count, cost_ns;
	double share; /* percent of all cases: by cost, or by their number where that is not known
	               */
};

/* One case of it, the worst. */
struct finding_example {
	const struct function *function; /* NULL: what is told is of the GPU alone */
	const struct kernel *kernel;     /* or NULL */
	uint32_t tid;                    /* 0: of no thread */
	uint64_t begin_ns, duration_ns;
	uint64_t bytes;            /* of a copy or set */
	uint64_t cost_ns;          /* by which it is the worst */
	const struct stack *stack; /* of its call; NULL: not known */
};

struct finding {
	const char *rule;  /* "sync_copies" */
	const char *title; /* "copies that the host waits for" */
	const struct process *process;
	uint32_t device;
	bool of_device; /* device is known */
	uint64_t count; /* of what, the evidence says */
	uint64_t lost_ns;
	bool lost_known;
	bool first_of_all; /* it comes before all that costs time: a program fails of it */
	uint64_t span_ns;  /* of the process: lost_ns is a part of it */
	struct finding_example example;
	bool has_example;
	struct finding_line *lines; /* most first */
	size_t n_lines;
	double walked; /* percent of all cases that had a stack, as share */
	char *evidence;
	const char *estimate; /* how lost_ns is estimated, and what it leaves out */
	const char *suggestion;
};

struct finding_unjudged {
	const char *rule, *title;
	const char *why;
};

struct work;
struct consumer *findings_new(struct work *work); /* its window, or NULL: see work_share() */

/* After the last event: most time lost first, what is not known last. Owned by `findings`. */
const struct finding *findings_rows(struct consumer *findings, const struct run_info *run,
                                    size_t *n);

/* After findings_rows(): the rules that could not be judged. */
const struct finding_unjudged *findings_unjudged(const struct consumer *findings, size_t *n);

/* Processes that launched and of which nothing is known on a GPU, while of others there is. */
size_t findings_without_gpu_times(const struct consumer *findings);

/* How many rules there are. */
size_t findings_rules(void);

#endif
