/* SPDX-License-Identifier: MIT */
/*
 * From records to events: the state that gives a record its meaning (processes, functions, names of
 * kernels, graph capture, nesting) and the consumers that the events go to.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/wire.h"
#include "probe/modules.h"
#include "trace/event.h"

struct budget;
struct correlate;
struct pipeline;

/* Told of every call that was seen, whether it is shown or not: the governor's food. */
typedef void (*pipeline_hit_fn)(void *data, const struct wire_call *call);

struct pipeline_options {
	struct modules *modules;
	struct wire_state *state; /* its name_offset is corrected when another is found */
	struct consumer *const *consumers;
	size_t n_consumers;
	pipeline_hit_fn hit;
	void *data;
	/* Told of each launch that succeeded and ran at once, of kernels or a graph; may
	 * be NULL. */
	void (*launched)(void *data, uint32_t pid, const struct call *call);
	/* The stack at which a thread's call began; NULL: none is known. May be NULL. */
	const struct stack *(*stack_of)(void *data, uint32_t tid, uint64_t begin_ns);
	/* The same of a hook that users asked for, by its number; NULL: not known. */
	const struct stack *(*stack_of_hook)(void *data, uint32_t tgid, uint64_t id);
	/* Told of each call of such a hook; may be NULL. */
	void (*hooked)(void *data, uint32_t pid, const struct call *call);
	/* Told of each process that consumers are told of, before them; may be NULL. */
	void (*met)(void *data, const struct process *process, uint64_t now_ns);
	struct correlate *correlate; /* knows which calls have activities; NULL: none have */
	struct own_hooks *own;       /* of --hook; may be NULL */
	struct budget *budget;       /* of what targets make it keep; may be NULL */
};

struct pipeline *pipeline_new(const struct pipeline_options *options);
void pipeline_free(struct pipeline *pipeline);

/* One record, in order of time. Returns what a consumer returned when it failed. */
int pipeline_record(struct pipeline *pipeline, const struct wire_head *record, struct err *err);

int pipeline_begin(struct pipeline *pipeline, const struct run_info *run, struct err *err);
int pipeline_flush(struct pipeline *pipeline, struct err *err);
int pipeline_end(struct pipeline *pipeline, const struct run_info *run, struct err *err);

/* For what has only numbers: what they stand for now. Not NULL, but for the function of a hook that
 * was never given out. Consumers learn of the process with the first event that has it. */
const struct process *pipeline_process(struct pipeline *pipeline, uint32_t pid);
/*
 * Who had this pid then: the last one that was born by that time, even if it has ended, of which
 * the last thousand are known. It may have ended up to five seconds before, as what a process
 * leaves is cleared away later. NULL: nobody that was heard of.
 */
const struct process *pipeline_process_at(const struct pipeline *pipeline, uint32_t pid,
                                          uint64_t time_ns);
/* NULL where nothing was heard of it yet. */
const struct process *pipeline_process_known(const struct pipeline *pipeline, uint32_t pid);
const struct kernel *pipeline_kernel(struct pipeline *pipeline, uint32_t pid, uint64_t handle);
/* The same of a process that has ended, unresolved. */
const struct kernel *pipeline_kernel_unknown(struct pipeline *pipeline, uint64_t handle);
const struct function *pipeline_function(struct pipeline *pipeline, uint16_t hook);

/* The same of a hook that users asked for. */
const struct function *pipeline_hooked_function(struct pipeline *pipeline, uint16_t id);

/* For events of no process that is known: what the driver does by itself. Named "[driver]". */
const struct process *pipeline_driver_process(struct pipeline *pipeline);

/* The number of a function that did not come by a hook: given out once. */
uint32_t pipeline_function_number(struct pipeline *pipeline);

/* A process that has ended, and that neither the caller nor a consumer knows any more. */
void pipeline_forget_process(struct pipeline *pipeline, const struct process *process);

/* For what did not come as a record: a kernel by its mangled name; the number of a call that is
 * still to come, taken now, or only looked at. */
const struct kernel *pipeline_kernel_named(struct pipeline *pipeline, uint32_t pid,
                                           const char *mangled);
uint64_t pipeline_next_call(struct pipeline *pipeline, uint32_t pid);
void pipeline_take_number(struct pipeline *pipeline, uint32_t pid);

/* An activity or a range, of a process that pipeline_process gave. */
int pipeline_pass(struct pipeline *pipeline, const struct event *event, struct err *err);

/* Whether consumers know of a process, as one has to be named with each event. */
bool pipeline_has_process(const struct pipeline *pipeline);
/* Of a GPU, whoever uses it; once consumers know of a process. */
int pipeline_metrics(struct pipeline *pipeline, const struct gpu_metrics_sample *metrics,
                     struct err *err);

/* Texts of calls that could not be read where they were. */
uint64_t pipeline_lost_texts(const struct pipeline *pipeline);

uint64_t pipeline_calls(const struct pipeline *pipeline); /* for tests: passed on so far */

/* What stands for processes that ended so long ago that they are not told apart any more; by nobody
 * announced. */
const struct process *pipeline_ended(const struct pipeline *pipeline);

/* Processes whose calls are told as those of one, "[others]": there were too many. */
uint64_t pipeline_other_processes(const struct pipeline *pipeline);
