/* SPDX-License-Identifier: MIT */
/*
 * Samples of what threads do, with their stacks: between the programs, the unwinder that tells them
 * of code, and the names. It takes the records of stacks and samples out of the stream, and makes
 * events of them.
 */
#pragma once

#include "capture/pipeline.h"
#include "capture/stacks/stack_names.h"
#include "probe/programs.h"

struct sampler;

struct sampler_options {
	struct programs *programs; /* loaded with stacks */
	struct pipeline *pipeline;
	bool walks;     /* stacks are walked: what is mapped where has to be known */
	bool blocked;   /* programs were loaded for blocked time as well */
	bool nodes;     /* of graphs are asked for: GPU times are recorded, */
	bool agents;    /* or calls inside of processes, whose stacks are walked as well */
	bool cuda_only; /* processes are told of when they use CUDA, and not before */
	bool lines;     /* of source are looked up for what is on stacks */
	bool renews;    /* sampler_renew() is called when it is time; not with lines */
};

int sampler_new(const struct sampler_options *options, struct sampler **sampler, struct err *err);
void sampler_free(struct sampler *sampler);

/* Before its programs go: nothing is looked at any more, nor probed. What it knows stays. */
void sampler_unhook(struct sampler *sampler);

/* A target that runs already: its files are read before samples are taken. */
void sampler_expect(struct sampler *sampler, pid_t pid);

/* One of those has ended, and its end was not told of. */
void sampler_forget(struct sampler *sampler, pid_t pid);

/*
 * A command's thread is held while it maps a file: what it has mapped is looked at before it goes
 * on, so that its first stacks are whole. On any thread.
 */
void sampler_held(struct sampler *sampler, pid_t pid);

/* One sample of each CPU in `period_ns` from now on (0: none); with `wait` it waits a moment for
 * files that are still being read, without which the first stacks are cut. */
int sampler_begin(struct sampler *sampler, uint64_t period_ns, bool wait, struct err *err);
void sampler_end(struct sampler *sampler); /* and no more */

/* After the last record: tells of threads that are still blocked. What a consumer said. */
int sampler_finish(struct sampler *sampler, struct err *err);

/*
 * What a record means for it. 1: it was the sampler's, and nobody else's; 0: it is for the pipeline
 * as well; a negative errno: what a consumer said.
 */
int sampler_record(struct sampler *sampler, const struct wire_head *record, struct err *err);

/* The stack of that number, as its record told it just now. NULL: there was no room for it. */
const struct stack *sampler_stack(struct sampler *sampler, const struct wire_stack_entries *record);

/* The stack of a call that began then; once. NULL: none was walked. */
const struct stack *sampler_call_stack(struct sampler *sampler, uint32_t tid, uint64_t begin_ns);

/*
 * Of calls that agents record (WIRE_WALKED). Whether the agent of a process is probed for that,
 * which is looked for at once if it has just come; and that such a call is about to be asked for.
 */
bool sampler_walks_calls(struct sampler *sampler, pid_t pid, bool came);
void sampler_call_walked(struct sampler *sampler, const struct wire_call *call);

/* The one that the programs call `id` in the process with this number. NULL: it is not known. */
const struct stack *sampler_numbered_stack(struct sampler *sampler, uint32_t tgid, uint64_t id);

/* The same of one that was walked within a call, as if it were where that begins. */
const struct stack *sampler_stack_of_call(struct sampler *sampler, uint32_t tgid, uint64_t id);

/* What is known late of the stacks, after the last record; waits for that a few seconds at most. */
void sampler_take_lines(struct sampler *sampler);

/* Of that, for a snapshot before, what is known by now: waits for nobody. */
void sampler_take_lines_so_far(struct sampler *sampler);

/*
 * Memory of stacks that nobody holds any more is given back (options.renews) in two steps.
 * sampler_send_anew() has the programs send each stack that they meet again. Later, when calls that
 * had begun by then have ended, sampler_renew(): `move_held` has sampler_move() say what becomes of
 * each stack that its caller holds, whose process has that number and is that person's; NULL: there
 * is no room for it. All other stacks from before sampler_send_anew() are gone.
 */
bool sampler_is_worn(const struct sampler *sampler); /* it is time for that */
void sampler_send_anew(struct sampler *sampler);
void sampler_renew(struct sampler *sampler, void (*move_held)(void *data), void *data);
const struct stack *sampler_move(struct sampler *sampler, uint32_t process, uint64_t person,
                                 const struct stack *stack); /* NULL stays NULL */

/* A sentence on a file that could not be read, each once; false: there is none. */
bool sampler_news(struct sampler *sampler, char *text, size_t size);

struct sampler_figures {
	struct unwinder_figures unwinder;
	struct stack_names_figures names;
	uint64_t samples;       /* that were taken */
	uint64_t without_slot;  /* samples and calls that came where no stack could be walked */
	uint64_t without_stack; /* samples and calls whose stack was lost on its way */
	size_t older, older_without_room; /* threads: see blocked_threads_older() */
};

void sampler_figures(const struct sampler *sampler, struct sampler_figures *figures);
