// SPDX-License-Identifier: MIT
/* The processes and threads that calls are of: from their first record to their last. */
#include "capture/pipeline_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/budget.h"
#include "base/map.h"
#include "base/process.h"
#include "base/vec.h"
#include "base/xalloc.h"
#include "capture/graph_captures.h"
#include "capture/kernels.h"
#include "probe/helper.h"
#include "probe/person.h"

#define THREADS_MAX 16384         /* beyond, the one that came first is forgotten */
#define PASSED_NS   5000000000ull /* how long after its end something may be a process's */

/* ---- threads ------------------------------------------------------------------------------- */

static void thread_drop(struct pipeline *pipeline, struct pipeline_known_thread *thread)
{
	pipeline->recent_thread[thread->tid % RECENT] = NULL;
	HASH_DEL(pipeline->threads, thread);
	LIST_REMOVE(thread, in_slot);
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
	thread = MAP_FIND(pipeline->threads, &tid);
	if (thread) {
		*recent = thread;
		return thread;
	}
	if (HASH_COUNT(pipeline->threads) >= THREADS_MAX)
		thread_drop(pipeline, pipeline->threads);
	thread = MAP_ADD(pipeline->threads, tid, &tid);
	thread->tgid = tgid;
	LIST_INSERT_HEAD(&pipeline->thread_slots[tgid % THREAD_SLOTS], thread, in_slot);
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
		pipeline->others->person = PERSON_UNKNOWN;
		snprintf(pipeline->others->comm, sizeof(pipeline->others->comm), "[others]");
	}
	return pipeline->others;
}

/* What is given out, and where it is kept; the first member, so that one is found by the other. */
struct kept_process {
	struct process process;
	size_t slot;
};

/* Numbers are never given out twice; the two above stand for processes that are not told apart. */
static uint32_t next_number(struct pipeline *pipeline)
{
	if (pipeline->next_number == PROCESSES_MAX)
		pipeline->next_number += 2;
	return pipeline->next_number++;
}

/* NULL: there is no place for it. */
static struct process *keep_process(struct pipeline *pipeline, uint32_t pid)
{
	uint64_t person = pid ? helper_person_of((pid_t)pid) : PERSON_ROOT;
	struct kept_process *kept;

	if (quota_take(&pipeline->places, person, 0, 1))
		return NULL;
	kept = xcalloc(1, sizeof(*kept));
	kept->process.person = person;
	kept->process.id = next_number(pipeline);
	kept->process.pid = pid;
	kept->slot = pipeline->n_all;
	pipeline->all = vec_room(pipeline->all, pipeline->n_all, sizeof(*pipeline->all));
	pipeline->all[pipeline->n_all++] = &kept->process;
	return &kept->process;
}

/* ---- those that ended ---------------------------------------------------------------------- */

static size_t passed_count(const struct pipeline *pipeline)
{
	return pipeline->n_passed < PASSED_MAX ? pipeline->n_passed : PASSED_MAX;
}

/* One that consumers were told of: of what others did, they learn as of a new one. */
static void passed_add(struct pipeline *pipeline, const struct known_process *known,
                       uint64_t end_ns)
{
	if (known->announced)
		pipeline->passed[pipeline->n_passed++ % PASSED_MAX] =
			(struct passed_process){ .pid = known->pid,
			                         .process = known->process,
			                         .born_ns = known->born_ns,
			                         .end_ns = end_ns };
}

static void passed_forget(struct pipeline *pipeline, const struct process *process)
{
	for (size_t i = 0; i < passed_count(pipeline); i++) {
		if (pipeline->passed[i].process == process)
			pipeline->passed[i].process = NULL;
	}
}

/* The last of this pid that was born by then; NULL: none. */
static const struct passed_process *passed_find(const struct pipeline *pipeline, uint32_t pid,
                                                uint64_t born_by_ns)
{
	const struct passed_process *passed, *last = NULL;

	for (size_t i = 0; i < passed_count(pipeline); i++) {
		passed = &pipeline->passed[i];
		if (passed->process && passed->pid == pid && passed->born_ns <= born_by_ns &&
		    (!last || passed->end_ns > last->end_ns))
			last = passed;
	}
	return last;
}

const struct process *pipeline_process_at(const struct pipeline *pipeline, uint32_t pid,
                                          uint64_t time_ns)
{
	const struct passed_process *passed;
	const struct known_process *known = MAP_FIND(pipeline->processes, &pid);

	if (known && known->born_ns <= time_ns)
		return known->process;
	passed = passed_find(pipeline, pid, time_ns);
	return passed && time_ns <= passed->end_ns + PASSED_NS ? passed->process : NULL;
}

void pipeline_forget_process(struct pipeline *pipeline, const struct process *process)
{
	const struct kept_process *kept = (const struct kept_process *)process;
	struct known_process *known;

	if (process == &pipeline->ended || process == pipeline->others)
		return;
	known = MAP_FIND(pipeline->processes, &process->pid);
	if (known && known->process == process)
		return;
	if (pipeline->first == process)
		pipeline->first = NULL; /* the next that is announced takes its place */
	passed_forget(pipeline, process);
	quota_give(&pipeline->places, process->person, 0, 1);
	pipeline->all[kept->slot] = pipeline->all[--pipeline->n_all];
	((struct kept_process *)pipeline->all[kept->slot])->slot = kept->slot;
	free((void *)kept);
}

/* A new incarnation: at its first sight, and after exec. */
static struct known_process *process_make(struct pipeline *pipeline, uint32_t pid, const char *comm)
{
	const struct passed_process *before = passed_find(pipeline, pid, UINT64_MAX);
	struct known_process *known = MAP_MAKE(pipeline->processes, pid, &pid);

	helper_process_begun((pid_t)pid);
	known->announced = false;
	known->calibrated = false;
	known->calls = 0;
	known->born_ns = before ? before->end_ns : 0;
	known->process = keep_process(pipeline, pid);
	if (!known->process) {
		known->process = others(pipeline);
		return known;
	}
	if (!process_comm((pid_t)pid, 0, known->process->comm, sizeof(known->process->comm)))
		snprintf(known->process->comm, sizeof(known->process->comm), "%s",
		         comm ? comm : "");
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
	if (!pipeline->first)
		pipeline->first = known->process;
	if (pipeline->options.met)
		pipeline->options.met(pipeline->options.data, known->process, now_ns);
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
	*process = MAP_FIND(pipeline->processes, &pid);
	if (!*process)
		*process = process_make(pipeline, pid, comm);
	*recent = *process;
	return process_announce(pipeline, *process, comm, now_ns, err);
}

static void threads_of_ended(struct pipeline *pipeline, uint32_t pid)
{
	struct pipeline_known_thread *thread, *next;

	for (thread = LIST_FIRST(&pipeline->thread_slots[pid % THREAD_SLOTS]); thread;
	     thread = next) {
		next = LIST_NEXT(thread, in_slot);
		if (thread->tgid == pid)
			thread_drop(pipeline, thread);
	}
}

static int process_gone(struct pipeline *pipeline, uint32_t pid, uint64_t now_ns, struct err *err)
{
	int r;
	struct known_process *known = MAP_FIND(pipeline->processes, &pid);

	if (!known)
		return 0;
	r = known->announced && known->process != pipeline->others
	            ? announce(pipeline, EVENT_EXIT, known->process, now_ns, err)
	            : 0;
	pipeline->recent_process[pid % RECENT] = NULL;
	if (known->exit_ns)
		TAILQ_REMOVE(&pipeline->ending, known, ending);
	passed_add(pipeline, known, now_ns);
	helper_process_ended((pid_t)pid, now_ns);
	MAP_DROP(pipeline->processes, known);
	kernels_forget(pipeline->kernels, pid);
	graph_captures_forget(pipeline->captures, pid);
	budget_end(pipeline->options.budget, pid);
	threads_of_ended(pipeline, pid);
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

	LIST_FOREACH(thread, &pipeline->thread_slots[pid % THREAD_SLOTS], in_slot)
	if (thread->tgid == pid && thread->tid != tid)
		return true;
	return false;
}

static int process_exited(struct pipeline *pipeline, const struct wire_head *head, struct err *err)
{
	struct known_process *known = MAP_FIND(pipeline->processes, &head->tgid);

	if (!known)
		return 0;
	if (known->exit_ns || !has_other_threads(pipeline, head->tgid, head->tid))
		return process_gone(pipeline, head->tgid, head->time_ns, err);
	known->exit_ns = head->time_ns;
	TAILQ_INSERT_TAIL(&pipeline->ending, known, ending);
	return 0;
}

int pipeline_settle_ends(struct pipeline *pipeline, uint64_t until_ns, struct err *err)
{
	struct known_process *known;
	int r = 0;

	while (!r && (known = TAILQ_FIRST(&pipeline->ending)) && known->exit_ns < until_ns)
		r = process_gone(pipeline, known->pid,
		                 known->exit_ns > pipeline->time_ns ? known->exit_ns
		                                                    : pipeline->time_ns,
		                 err);
	return r;
}

/* A pid that may be given out again. */
static int on_fork(struct pipeline *pipeline, const struct wire_process *record, struct err *err)
{
	uint64_t now_ns = record->head.time_ns;
	bool met; /* its own first record came before this one */
	int r;
	struct known_process *known = MAP_FIND(pipeline->processes, &record->other);

	met = known && !known->exit_ns && known->announced;
	r = known && known->exit_ns ? process_gone(pipeline, record->other, now_ns, err) : 0;
	if (r)
		return r;
	r = pipeline_process_get(pipeline, record->other, record->comm, now_ns, &known, err);
	if (!met)
		known->born_ns = now_ns;
	return r;
}

/* ---- records ------------------------------------------------------------------------------- */

static int on_thread(struct pipeline *pipeline, const struct wire_process *record, struct err *err)
{
	const struct wire_head *head = &record->head;
	struct known_process *process;
	struct thread thread = { 0 };
	struct event event = { .type = EVENT_THREAD, .time_ns = head->time_ns, .tid = head->tid };
	int r;
	struct pipeline_known_thread *known = MAP_FIND(pipeline->threads, &head->tid);

	if (known) /* a reused tid starts afresh */
		thread_drop(pipeline, known);
	r = pipeline_process_get(pipeline, head->tgid, record->comm, head->time_ns, &process, err);
	if (r)
		return r;
	snprintf(thread.comm, sizeof(thread.comm), "%.15s", record->comm);
	thread.priority = process_priority((pid_t)head->tgid, (pid_t)head->tid);
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
		return on_fork(pipeline, record, err);
	case WIRE_EXIT:
		return process_exited(pipeline, head, err);
	case WIRE_EXEC:
		/* what the old program held is gone: for the consumers it ends here */
		process = MAP_FIND(pipeline->processes, &head->tgid);
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
	int r = 0;
	struct known_process *known = MAP_FIND(pipeline->processes, &event->process->pid);

	if (known && known->process == event->process)
		r = process_announce(pipeline, known, NULL, event->time_ns, err);
	return r ? r : pipeline_push(pipeline, event, err);
}

bool pipeline_has_process(const struct pipeline *pipeline)
{
	return pipeline->first;
}

int pipeline_metrics(struct pipeline *pipeline, const struct gpu_metrics_sample *metrics,
                     struct err *err)
{
	const struct event event = { .type = EVENT_METRICS,
		                     .time_ns = metrics->end_ns,
		                     .process = pipeline->first,
		                     .metrics = metrics };

	return pipeline_push(pipeline, &event, err);
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
	struct known_process *known = MAP_FIND(pipeline->processes, &pid);

	return (known ? known : process_make(pipeline, pid, NULL))->process;
}

const struct process *pipeline_driver_process(struct pipeline *pipeline)
{
	uint32_t none = 0;
	struct known_process *known = MAP_FIND(pipeline->processes, &none);

	return (known ? known : process_make(pipeline, none, "[driver]"))->process;
}

const struct process *pipeline_process_known(const struct pipeline *pipeline, uint32_t pid)
{
	struct known_process *known = MAP_FIND(pipeline->processes, &pid);

	return known ? known->process : NULL;
}

uint64_t *pipeline_calls_of(struct pipeline *pipeline, struct known_process *process)
{
	return process->process == pipeline->others ? &pipeline->others_calls : &process->calls;
}

uint64_t pipeline_next_call(struct pipeline *pipeline, uint32_t pid)
{
	struct known_process *known = MAP_FIND(pipeline->processes, &pid);

	return known ? *pipeline_calls_of(pipeline, known) + 1 : 0;
}

void pipeline_take_number(struct pipeline *pipeline, uint32_t pid)
{
	struct known_process *known = MAP_FIND(pipeline->processes, &pid);

	if (known)
		++*pipeline_calls_of(pipeline, known);
}

void pipeline_free_processes(struct pipeline *pipeline)
{
	struct pipeline_known_thread *thread, *next_thread;

	HASH_ITER (hh, pipeline->threads, thread, next_thread) {
		thread_drop(pipeline, thread);
	}
	MAP_FREE(pipeline->processes, free);
	quota_free(&pipeline->places);
	for (size_t i = 0; i < pipeline->n_all; i++)
		free(pipeline->all[i]);
	free(pipeline->others);
	free(pipeline->all);
}
