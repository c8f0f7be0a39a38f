/* SPDX-License-Identifier: MIT */
/* What a rule of the findings is made of. Private to findings*.c. */
#ifndef CUSCOPE_REPORT_FINDINGS_FINDINGS_RULES_H
#define CUSCOPE_REPORT_FINDINGS_FINDINGS_RULES_H

#include "analysis/work.h"
#include "analysis/by_id.h"
#include "report/findings/findings.h"
#include "report/findings/findings_limits.h"
#include "base/buf.h"

/* A call that did what it is for: see call_counts(). */
struct finding_call {
	const struct process *process;
	const struct call *call;
	uint32_t tid;
	uint32_t thread; /* dense; THREAD_ID_OTHERS: of several threads */
	bool launch;     /* of a kernel or a graph */
	unsigned octave; /* how often the process's launches have doubled so far */
};

/* What is known of a process at the end. */
struct finding_process {
	const struct process *process;
	uint64_t launches;
	unsigned octave;
	uint64_t span_ns; /* from its first call or activity to its last */
	bool gpu_times;
};

struct finding_verdicts {
	const struct finding_process *processes; /* by id; `process` NULL: nothing is known */
	size_t n_processes;
	const struct run_info *run;
	struct findings *findings;
	struct consumer *gaps;   /* NULL: it was not recorded what threads wait for */
	const struct xids *xids; /* NULL: nothing of the kernel side was recorded */
};

enum finding_needs {
	NEEDS_DURATIONS = 1,
	NEEDS_GPU = 2,
};

/*
 * No consumer: a rule is given calls that did what they are for, and work with the call that asked
 * for it, which are found once for all rules; and in the end it judges rather than shows.
 */
struct finding_rule {
	const char *name, *title;
	unsigned needs;
	void *(*create)(void);
	/* Each may be NULL. */
	void (*call)(void *state, const struct finding_call *call);
	void (*event)(void *state, const struct event *event); /* an activity or a range */
	void (*metrics)(void *state, const struct gpu_metrics_sample *sample);
	void (*asked)(void *state, const struct work_done *done,
	              const struct work_call *call, /* not NULL */
	              const struct stack *stack);   /* of the call; NULL: not known */
	/* Adds findings, or says why it cannot (findings_cannot_judge()). */
	void (*judge)(void *state, const struct finding_rule *rule,
	              const struct finding_verdicts *verdicts);
	void (*free)(void *state);
};

extern const struct finding_rule rule_sync_copies, rule_sync_sets, rule_pageable_copies,
	rule_small_copies, rule_needless_sync, rule_polling, rule_short_kernels, rule_launch_calls,
	rule_allocation, rule_default_stream, rule_copy_overlap, rule_communication, rule_low_use,
	rule_gpu_use, rule_host_waits, rule_run_queue, rule_xids;

/* Adds a finding and returns it, with rule, title, process and span set. */
struct finding *findings_add(const struct finding_verdicts *verdicts,
                             const struct finding_rule *rule,
                             const struct finding_process *process);

void findings_cannot_judge(const struct finding_verdicts *verdicts, const struct finding_rule *rule,
                           const char *why);

/* Whether that much of a process's time is worth to be told. */
bool finding_is_worth(const struct finding_process *process, uint64_t lost_ns);

/* NULL where nothing is known of it. */
const struct finding_process *finding_process(const struct finding_verdicts *verdicts, size_t id);

/* ---- what rules keep ----------------------------------------------------------------------- */

/* Cases, what they cost together, and the worst. A zeroed one is empty. */
struct finding_cases {
	uint64_t count, cost_ns, bytes;
	struct finding_example worst;
	struct finding_stacks stacks;
};

/* Of cases that are added to others: what they cost by stack. */
void finding_add_stacks(struct finding_stacks *into, const struct finding_stacks *from);

void finding_case(struct finding_cases *cases, const struct finding_example *example);

/* An example of a call. */
struct finding_example finding_example_of(const struct finding_call *call);

/*
 * Cases since the process's number of launches doubled for the last time but one. Older ones are
 * forgotten: they belong to the start of the program.
 */
struct finding_loop {
	unsigned octave; /* which doubling `now` is of; `before` is of the one before */
	struct finding_cases now, before;
};

struct finding_cases *finding_loop_at(struct finding_loop *loop, unsigned octave);
struct finding_cases finding_loop_end(const struct finding_loop *loop, unsigned octave);

/* Copies cases into a finding. */
void finding_set_cases(const struct finding_verdicts *verdicts, struct finding *finding,
                       const struct finding_cases *cases);

/* Moves what a buffer holds into the evidence. */
void finding_say(struct finding *finding, struct buf *text);

/* Appends "1 call", "12 calls". */
void finding_count(struct buf *out, uint64_t n, const char *what);

/* Element `id` of an array by the ids of processes or threads, zeroed when it is new. */
#define FINDING_AT(array, n, id)                                                                   \
	(((array) = by_id_room((array), &(n), sizeof(*(array)), (id))), &(array)[id])

#endif
