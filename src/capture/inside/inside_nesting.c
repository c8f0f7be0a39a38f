// SPDX-License-Identifier: MIT
/*
 * Calls that agents tell of, within calls that probes tell of: of a function that keeps its probe,
 * of a library that is not diverted yet, or of a call that began before. Agents know nothing of
 * these. So the programs tell of the begin of each call in such a process, and in the order of time
 * that comes before all that is nested in it.
 */
#include "capture/inside/inside_private.h"

#include <stdlib.h>

#include "base/xalloc.h"

#define THREADS_MAX 8192 /* as many as the programs know */

/* Calls of a thread that are not over yet, from the outermost on. */
struct inside_thread {
	uint32_t tid, pid, n;
	uint64_t begin_ns[WIRE_DEPTH_MAX];
	UT_hash_handle hh;
};

static struct inside_thread *find(const struct inside *inside, uint32_t tid)
{
	struct inside_thread *thread;

	HASH_FIND_INT(inside->threads, &tid, thread);
	return thread;
}

static void drop(struct inside *inside, struct inside_thread *thread)
{
	HASH_DEL(inside->threads, thread);
	free(thread);
}

/* An outermost call begins: the ends of those before it were lost. */
static void forget_before(struct inside_thread *thread, uint64_t begin_ns)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < thread->n; i++) {
		if (thread->begin_ns[i] >= begin_ns)
			thread->begin_ns[kept++] = thread->begin_ns[i];
	}
	thread->n = kept;
}

static void begin(struct inside *inside, const struct wire_call *call)
{
	struct inside_thread *thread = find(inside, call->head.tid);

	if (thread && thread->pid != call->head.tgid)
		thread->n = 0;
	if (!thread) {
		if (HASH_COUNT(inside->threads) >= THREADS_MAX)
			return;
		thread = xcalloc(1, sizeof(*thread));
		thread->tid = call->head.tid;
		HASH_ADD_INT(inside->threads, tid, thread);
	}
	thread->pid = call->head.tgid;
	if (!call->head.depth)
		forget_before(thread, call->begin_ns);
	for (uint32_t i = 0; i < thread->n; i++) {
		if (thread->begin_ns[i] == call->begin_ns) /* told, and then looked at */
			return;
	}
	if (thread->n < WIRE_DEPTH_MAX)
		thread->begin_ns[thread->n++] = call->begin_ns;
}

/* It is over, and what was in it. One that began later may be known already: it was looked at. */
static void end(struct inside *inside, const struct wire_call *call)
{
	struct inside_thread *thread = find(inside, call->head.tid);
	uint32_t kept = 0;

	if (!thread)
		return;
	for (uint32_t i = 0; i < thread->n; i++) {
		uint64_t at = thread->begin_ns[i];

		if (at < call->begin_ns || at > call->head.time_ns)
			thread->begin_ns[kept++] = at;
	}
	thread->n = kept;
	if (!kept)
		drop(inside, thread);
}

static void nest(struct inside *inside, struct wire_call *call)
{
	const struct inside_thread *thread = find(inside, call->head.tid);

	for (uint32_t i = 0; thread && i < thread->n; i++) {
		if (thread->begin_ns[i] > call->begin_ns)
			continue;
		call->head.flags |= WIRE_NESTED;
		call->head.depth++;
	}
}

bool inside_nests(struct inside *inside, struct wire_head *record)
{
	struct wire_call *call = (struct wire_call *)record;

	if (record->type != WIRE_CALL && record->type != WIRE_BEGIN)
		return false;
	if (record->flags & WIRE_BY_AGENT) {
		if (inside->threads)
			nest(inside, call);
		return false;
	}
	if (record->type == WIRE_CALL && inside->threads)
		end(inside, call);
	if (record->type == WIRE_BEGIN)
		begin(inside, call);
	return record->type == WIRE_BEGIN && !inside->options.begins;
}

static void look_at(void *data, const struct wire_head *record, size_t bytes)
{
	struct inside_process *process = data;

	if (record->tgid == process->pid)
		begin(process->inside, (const struct wire_call *)record);
}

void inside_nesting_begins(struct inside_process *process)
{
	struct inside *inside = process->inside;

	programs_inside_set(inside->options.programs, (pid_t)process->pid, INSIDE_ANY);
	if (inside->options.marked)
		inside->options.marked(inside->options.data, (pid_t)process->pid);
	programs_open_calls(inside->options.programs, look_at, process);
}

void inside_nesting_forget(struct inside *inside, uint32_t pid)
{
	struct inside_thread *thread, *next;

	HASH_ITER (hh, inside->threads, thread, next) {
		if (!pid || thread->pid == pid)
			drop(inside, thread);
	}
}
