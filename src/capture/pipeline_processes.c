// SPDX-License-Identifier: MIT
/* The processes and threads that calls are of: from their first record to their last. */
#include "capture/pipeline_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/budget.h"
#include "base/process.h"
#include "base/xalloc.h"
#include "capture/graph_captures.h"
#include "capture/kernels.h"
#include "capture/proc.h"

#define THREADS_MAX 16384 /* beyond, the one that came first is forgotten */

/* ---- threads ------------------------------------------------------------------------------- */

static void thread_drop(struct pipeline *pipeline, struct pipeline_known_thread *thread)
{
	pipeline->recent_thread[thread->tid % RECENT] = NULL;
	HASH_DEL(pipeline->threads, thread);
	free(thread->text);
	free(thread);
}

struct pipeline_known_thread *pipeline_thread_get(struct pipeline *pipeline, uint32_t tgid,
                                                  uint32_t tid)
{
	struct pipeline_known_thread **recent = &pipeline->recent_thread[tid % RECENT];
	struct pipeline_known_thread *thread = *recent;

	if (thread && thread->tid == tid)
		return thread;
	HASH_FIND(hh, pipeline->threads, &tid, sizeof(tid), thread);
	if (thread) {
		*recent = thread;
		return thread;
	}
	if (HASH_COUNT(pipeline->threads) >= THREADS_MAX)
		thread_drop(pipeline, pipeline->threads);
	thread = xcalloc(1, sizeof(*thread));
	thread->tid = tid;
	thread->tgid = tgid;
	HASH_ADD(hh, pipeline->threads, tid, sizeof(thread->tid), thread);
	return thread;
}

/* ---- processes ----------------------------------------------------------------------------- */

static int announce(struct pipeline *pipeline, enum event_type type, const struct process *process,
                    uint64_t now_ns, struct err *err)
{
	const struct event event = {
		.type = type, .time_ns = now_ns, .process = process, .tid = process->pid
	};

	return pipeline_push(pipeline, &event, err);
}

/*
 * Consumers keep what they know of a process to the end, so there is a limit to how many they are
 * told of. The processes that come after share one, which never ends, and its numbers of calls.
 */
static struct process *others(struct pipeline *pipeline)
{
	pipeline->n_others++;
	if (!pipeline->others) {
		pipeline->others = xcalloc(1, sizeof(*pipeline->others));
		pipeline->others->id = PROCESSES_MAX;
		snprintf(pipeline->others->comm, sizeof(pipeline->others->comm), "[others]");
	}
	return pipeline->others;
}

/* A new incarnation: at its first sight, and after exec. */
static struct known_process *process_make(struct pipeline *pipeline, uint32_t pid, const char *comm)
{
	struct known_process *known;

	HASH_FIND(hh, pipeline->processes, &pid, sizeof(pid), known);
	if (!known) {
		known = xcalloc(1, sizeof(*known));
		known->pid = pid;
		HASH_ADD(hh, pipeline->processes, pid, sizeof(known->pid), known);
	}
	known->announced = false;
	known->calibrated = false;
	known->calls = 0;
	if (pipeline->n_all >= PROCESSES_MAX) {
		known->process = others(pipeline);
		return known;
	}
	known->process = xcalloc(1, sizeof(*known->process));
	known->process->id = (uint32_t)pipeline->n_all;
	known->process->pid = pid;
	proc_comm(pid, known->process->comm, comm);
	pipeline->all = xrealloc(pipeline->all, (pipeline->n_all + 1) * sizeof(*pipeline->all));
	pipeline->all[pipeline->n_all++] = known->process;
	return known;
}

/* Consumers learn of a process with the first of its events: what names it may come before that. */
static int process_announce(struct pipeline *pipeline, struct known_process *known,
                            const char *comm, uint64_t now_ns, struct err *err)
{
	if (known->announced)
		return 0;
	known->announced = true;
	if (known->process == pipeline->others) {
		if (pipeline->others_announced)
			return 0;
		pipeline->others_announced = true;
	}
	if (comm && !known->process->comm[0])
		snprintf(known->process->comm, sizeof(known->process->comm), "%.15s", comm);
	return announce(pipeline, EVENT_PROCESS, known->process, now_ns, err);
}

int pipeline_process_get(struct pipeline *pipeline, uint32_t pid, const char *comm, uint64_t now_ns,
                         struct known_process **process, struct err *err)
{
	struct known_process **recent = &pipeline->recent_process[pid % RECENT];

	if (*recent && (*recent)->pid == pid) {
		*process = *recent;
		return 0;
	}
	HASH_FIND(hh, pipeline->processes, &pid, sizeof(pid), *process);
	if (!*process)
		*process = process_make(pipeline, pid, comm);
	*recent = *process;
	return process_announce(pipeline, *process, comm, now_ns, err);
}

static int process_gone(struct pipeline *pipeline, uint32_t pid, uint64_t now_ns, struct err *err)
{
	struct pipeline_known_thread *thread, *next;
	struct known_process *known;
	int r;

	HASH_FIND(hh, pipeline->processes, &pid, sizeof(pid), known);
	if (!known)
		return 0;
	r = known->announced && known->process != pipeline->others
	            ? announce(pipeline, EVENT_EXIT, known->process, now_ns, err)
	            : 0;
	pipeline->recent_process[pid % RECENT] = NULL;
	pipeline->n_ending -= known->exit_ns != 0;
	HASH_DEL(pipeline->processes, known);
	free(known);
	kernels_forget(pipeline->kernels, pid);
	graph_captures_forget(pipeline->captures, pid);
	budget_end(pipeline->options.budget, pid);
	HASH_ITER (hh, pipeline->threads, thread, next) {
		if (thread->tgid == pid)
			thread_drop(pipeline, thread);
	}
	return r;
}

/* ---- ends that are told of twice ----------------------------------------------------------- */

/*
 * Of threads that exit at the same time several find themselves the last one, and the later of them
 * may yet tell of a call that it was in. So the end of a process with more threads is believed a
 * little later, or when it is told of again, and comes once, behind everything of it.
 */
static bool has_other_threads(const struct pipeline *pipeline, uint32_t pid, uint32_t tid)
{
	const struct pipeline_known_thread *thread;

	for (thread = pipeline->threads; thread; thread = thread->hh.next)
		if (thread->tgid == pid && thread->tid != tid)
			return true;
	return false;
}

static int process_exited(struct pipeline *pipeline, const struct wire_head *head, struct err *err)
{
	struct known_process *known;

	HASH_FIND(hh, pipeline->processes, &head->tgid, sizeof(head->tgid), known);
	if (!known)
		return 0;
	if (known->exit_ns || !has_other_threads(pipeline, head->tgid, head->tid))
		return process_gone(pipeline, head->tgid, head->time_ns, err);
	known->exit_ns = head->time_ns;
	pipeline->n_ending++;
	return 0;
}

/* They come in order of time. */
int pipeline_settle_ends(struct pipeline *pipeline, uint64_t until_ns, struct err *err)
{
	struct known_process *known, *next;
	int r = 0;

	if (!pipeline->n_ending)
		return 0;
	HASH_ITER (hh, pipeline->processes, known, next) {
		uint64_t at =
			known->exit_ns > pipeline->time_ns ? known->exit_ns : pipeline->time_ns;

		if (!r && known->exit_ns && known->exit_ns < until_ns)
			r = process_gone(pipeline, known->pid, at, err);
	}
	return r;
}

/* A pid that is given out again. */
static int settle_end_of(struct pipeline *pipeline, uint32_t pid, uint64_t now_ns, struct err *err)
{
	struct known_process *known;

	HASH_FIND(hh, pipeline->processes, &pid, sizeof(pid), known);
	return known && known->exit_ns ? process_gone(pipeline, pid, now_ns, err) : 0;
}

/* ---- records ------------------------------------------------------------------------------- */

static int on_thread(struct pipeline *pipeline, const struct wire_process *record, struct err *err)
{
	const struct wire_head *head = &record->head;
	struct known_process *process;
	struct pipeline_known_thread *known;
	struct thread thread = { 0 };
	struct process_stat stat;
	struct event event = { .type = EVENT_THREAD, .time_ns = head->time_ns, .tid = head->tid };
	int r;

	HASH_FIND(hh, pipeline->threads, &head->tid, sizeof(head->tid), known);
	if (known) /* a reused tid starts afresh */
		thread_drop(pipeline, known);
	r = pipeline_process_get(pipeline, head->tgid, record->comm, head->time_ns, &process, err);
	if (r)
		return r;
	snprintf(thread.comm, sizeof(thread.comm), "%.15s", record->comm);
	if (process_stat_read((pid_t)head->tgid, (pid_t)head->tid, &stat))
		thread.priority = stat.priority;
	event.process = process->process;
	event.thread = &thread;
	return pipeline_push(pipeline, &event, err);
}

int pipeline_on_process(struct pipeline *pipeline, const struct wire_process *record,
                        struct err *err)
{
	const struct wire_head *head = &record->head;
	struct known_process *process;
	int r;

	switch (head->type) {
	case WIRE_FORK:
		r = settle_end_of(pipeline, record->other, head->time_ns, err);
		return r ? r
		         : pipeline_process_get(pipeline, record->other, record->comm,
		                                head->time_ns, &process, err);
	case WIRE_EXIT:
		return process_exited(pipeline, head, err);
	case WIRE_EXEC:
		/* what the old program held is gone: for the consumers it ends here */
		HASH_FIND(hh, pipeline->processes, &head->tgid, sizeof(head->tgid), process);
		if (!process)
			return 0; /* no target yet: the capture decides (--name) */
		r = process_gone(pipeline, head->tgid, head->time_ns, err);
		return r ? r
		         : pipeline_process_get(pipeline, head->tgid, record->comm, head->time_ns,
		                                &process, err);
	default: /* WIRE_THREAD */
		return on_thread(pipeline, record, err);
	}
}

int pipeline_pass(struct pipeline *pipeline, const struct event *event, struct err *err)
{
	struct known_process *known;
	int r = 0;

	HASH_FIND(hh, pipeline->processes, &event->process->pid, sizeof(known->pid), known);
	if (known && known->process == event->process)
		r = process_announce(pipeline, known, NULL, event->time_ns, err);
	return r ? r : pipeline_push(pipeline, event, err);
}

/* ---- what numbers stand for ---------------------------------------------------------------- */

const struct process *pipeline_ended(const struct pipeline *pipeline)
{
	return &pipeline->ended;
}

uint64_t pipeline_other_processes(const struct pipeline *pipeline)
{
	return pipeline->n_others;
}

const struct process *pipeline_process(struct pipeline *pipeline, uint32_t pid)
{
	struct known_process *known;

	HASH_FIND(hh, pipeline->processes, &pid, sizeof(pid), known);
	return (known ? known : process_make(pipeline, pid, NULL))->process;
}

uint64_t *pipeline_calls_of(struct pipeline *pipeline, struct known_process *process)
{
	return process->process == pipeline->others ? &pipeline->others_calls : &process->calls;
}

uint64_t pipeline_next_call(struct pipeline *pipeline, uint32_t pid)
{
	struct known_process *known;

	HASH_FIND(hh, pipeline->processes, &pid, sizeof(pid), known);
	return known ? *pipeline_calls_of(pipeline, known) + 1 : 0;
}

void pipeline_take_number(struct pipeline *pipeline, uint32_t pid)
{
	struct known_process *known;

	HASH_FIND(hh, pipeline->processes, &pid, sizeof(pid), known);
	if (known)
		++*pipeline_calls_of(pipeline, known);
}

void pipeline_free_processes(struct pipeline *pipeline)
{
	struct known_process *process, *next_process;
	struct pipeline_known_thread *thread, *next_thread;

	HASH_ITER (hh, pipeline->threads, thread, next_thread) {
		thread_drop(pipeline, thread);
	}
	HASH_ITER (hh, pipeline->processes, process, next_process) {
		HASH_DEL(pipeline->processes, process);
		free(process);
	}
	for (size_t i = 0; i < pipeline->n_all; i++)
		free(pipeline->all[i]);
	free(pipeline->others);
	free(pipeline->all);
}
