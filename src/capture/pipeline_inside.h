/* SPDX-License-Identifier: MIT */
/*
 * The inside of a pipeline: pipeline_processes.c knows the processes and threads, pipeline.c makes
 * events of calls and names.
 */
#pragma once

#include <sys/queue.h>

#include "base/hash.h"
#include "base/quota.h"
#include "bpf/wire_hooks.h"
#include "capture/call_queue.h"
#include "capture/pipeline.h"

#define RECENT        64    /* a power of two */
#define THREAD_SLOTS  1024  /* the same */
#define PASSED_MAX    1024  /* processes that ended last */
#define PROCESSES_MAX 32768 /* ever; all that come after these are one process, "[others]" */
#define USERS_MOST    24576 /* of a user but root, or of those that are gone at once */

struct known_process {
	uint32_t pid;
	struct process *process;
	bool announced;   /* consumers know of it */
	bool calibrated;  /* its first named handle was compared with what the handle leads to */
	uint64_t calls;   /* correlation of its last one */
	uint64_t exit_ns; /* its end was told of, but maybe not by its last thread; else 0 */
	TAILQ_ENTRY(known_process) ending; /* with exit_ns */
	uint64_t born_ns;                  /* not before that; 0: nothing is known of it */
	UT_hash_handle hh;
};

/* One that has ended, whose events may still come. */
struct passed_process {
	uint32_t pid;
	const struct process *process; /* NULL: forgotten */
	uint64_t born_ns, end_ns;
};

/* One function, with what is asked about it at every call. */
struct pipeline_known_function {
	struct function function;
	bool returns_status;
	bool per_thread; /* its stream 0 is the thread's own */
	enum api_op op;
	/*
	 * Its last call, with what its arguments were decoded from: what is called all the time is
	 * called with the same ones.
	 */
	struct call call;
	struct call_words words;
};

struct pipeline_known_thread {
	uint32_t tid, tgid;
	char *text; /* a string argument that waits for its call */
	uint16_t text_hook;
	const struct kernel *launched; /* by the last launch, which began at: */
	uint64_t launched_ns;
	uint64_t copied_bytes; /* by the last copy whose call says how many, which began at: */
	uint64_t copied_ns;
	LIST_ENTRY(pipeline_known_thread) in_slot;
	UT_hash_handle hh;
};

struct pipeline {
	struct pipeline_options options;
	struct known_process *processes;
	struct pipeline_known_thread *threads;
	LIST_HEAD(, pipeline_known_thread) thread_slots[THREAD_SLOTS]; /* the same by process */
	TAILQ_HEAD(, known_process) ending; /* those with exit_ns, in order of time */
	/* the last ones met, by their numbers' low bits: a look-up at every call costs more */
	struct known_process *recent_process[RECENT];
	struct pipeline_known_thread *recent_thread[RECENT];
	struct process **all; /* every process ever, for freeing */
	size_t n_all;
	struct quota places;                      /* as many as there are in `all` */
	struct passed_process passed[PASSED_MAX]; /* a circle; the oldest gives way */
	size_t n_passed;                          /* ever */
	uint32_t next_number;                     /* of a process */
	const struct process *first;              /* that consumers were told of; NULL: none yet */
	struct process ended;
	struct process *others; /* NULL until there are more than PROCESSES_MAX */
	bool others_announced;
	uint64_t others_calls, n_others;
	struct pipeline_known_function *functions[WIRE_HOOKS_MAX];
	struct function *own_functions[WIRE_HOOKS_MAX]; /* of hooks that users asked for */
	uint32_t n_functions;
	struct kernels *kernels;
	struct graph_captures *captures;
	uint64_t calls, time_ns; /* time of the last record */
	uint64_t args_numbers;   /* that were given out: see struct call */
	uint64_t lost_texts;
	bool calibrated;       /* where handles hold their names was found in a process */
	uint64_t by;           /* of this person (probe/person.h) */
	struct wire_name name; /* the one being read: too large for the stack of a deep caller */
};

/* Gives an event to all consumers. */
int pipeline_push(struct pipeline *pipeline, const struct event *event, struct err *err);

/* ---- pipeline_processes.c ------------------------------------------------------------------ */

/* A process by its pid: made, and told to the consumers, where it is new. `comm` may be NULL. */
int pipeline_process_get(struct pipeline *pipeline, uint32_t pid, const char *comm, uint64_t now_ns,
                         struct known_process **process, struct err *err);

/* Never NULL. */
struct pipeline_known_thread *pipeline_thread_get(struct pipeline *pipeline, uint32_t tgid,
                                                  uint32_t tid);

/* The number of a process's last call. */
uint64_t *pipeline_calls_of(struct pipeline *pipeline, struct known_process *process);

/* A record of type WIRE_THREAD, WIRE_FORK, WIRE_EXEC or WIRE_EXIT. */
int pipeline_on_process(struct pipeline *pipeline, const struct wire_process *record,
                        struct err *err);

/* Believes the ends of processes that were told of before `until_ns`. */
int pipeline_settle_ends(struct pipeline *pipeline, uint64_t until_ns, struct err *err);

void pipeline_free_processes(struct pipeline *pipeline);

/* ---- own_calls.c --------------------------------------------------------------------------- */

/* A record of a hook that a user asked for. */
int pipeline_on_hook(struct pipeline *pipeline, const struct wire_hook *record, struct err *err);
