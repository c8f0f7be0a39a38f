// SPDX-License-Identifier: MIT
/*
 * Calls that agents tell of, within calls that probes tell of: of a function that keeps its probe,
 * of a library that is not diverted yet, or of a call that began before. Agents know nothing of
 * these. So the programs tell of the begin of each call in such a process, and in the order of time
 * that comes before all that is nested in it.
 *
 * A call that longjmp has left has no end. The programs see that at the thread's next probe, which
 * may never be met again. So it is over, too, where an agent tells of a call that was made from a
 * place above it on the stack.
 */
#include "capture/inside/inside_private.h"

#include <stdlib.h>

#include "base/xalloc.h"

#define THREADS_MAX 8192       /* as many as the programs know */
#define LOOK_NS     100000000u /* between looks at whether a thread is still in its calls */

/* Calls of a thread that are not over yet, from the outermost on. */
struct inside_thread {
	uint32_t tid, pid, n;
	uint64_t look_ns; /* when to look at whether it is still in them */
	uint64_t over_ns; /* it was in none of them then; 0: that is not known */
	uint64_t left_ns; /* what began by then was left, and the programs may not know; 0: none */
	struct open_call {
		uint64_t begin_ns;
		uint32_t place; /* wire_place; 0: not known */
	} open[WIRE_DEPTH_MAX];
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

static void drop_if_empty(struct inside *inside, struct inside_thread *thread)
{
	if (!thread->n && !thread->left_ns)
		drop(inside, thread);
}

/* An outermost call begins: the ends of those before it were lost. */
static void forget_before(struct inside_thread *thread, uint64_t begin_ns)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < thread->n; i++) {
		if (thread->open[i].begin_ns >= begin_ns)
			thread->open[kept++] = thread->open[i];
	}
	thread->n = kept;
}

static void begin(struct inside *inside, const struct wire_call *call)
{
	struct inside_thread *thread = find(inside, call->head.tid);

	if (thread && thread->pid != call->head.tgid) {
		thread->n = 0;
		thread->left_ns = 0;
	}
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
		if (thread->open[i].begin_ns == call->begin_ns) /* told, and then looked at */
			return;
	}
	if (thread->n < WIRE_DEPTH_MAX)
		thread->open[thread->n++] = (struct open_call){ call->begin_ns, call->place };
}

/* It is over, and what was in it. One that began later may be known already: it was looked at. */
static void end(struct inside *inside, const struct wire_call *call)
{
	struct inside_thread *thread = find(inside, call->head.tid);
	uint32_t kept = 0;

	if (!thread)
		return;
	for (uint32_t i = 0; i < thread->n; i++) {
		uint64_t at = thread->open[i].begin_ns;

		if (at < call->begin_ns || at > call->head.time_ns)
			thread->open[kept++] = thread->open[i];
	}
	thread->n = kept;
	if (call->begin_ns == thread->left_ns) /* now the programs know */
		thread->left_ns = 0;
	drop_if_empty(inside, thread);
}

/*
 * Whether an agent's call shows that a call which began before is over: it was made from above.
 * From the same place both can be under way if the first function ended in a jump to the second;
 * then that one returns to the kernel's trampoline.
 */
static bool was_left(const struct open_call *open, const struct wire_call *call)
{
	int32_t above = (int32_t)((call->place & ~7u) - (open->place & ~7u));

	if (!call->place || !open->place || open->begin_ns >= call->begin_ns)
		return false;
	return above > 0 || (!above && !(call->place & WIRE_MAY_RETURN));
}

static void drop_left(struct inside_thread *thread, const struct wire_call *call)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < thread->n; i++) {
		struct open_call open = thread->open[i];

		if (!was_left(&open, call))
			thread->open[kept++] = open;
		else if (open.begin_ns > thread->left_ns)
			thread->left_ns = open.begin_ns;
	}
	thread->n = kept;
}

bool inside_was_left(const struct inside *inside, const struct wire_call *call)
{
	const struct inside_thread *thread = find(inside, call->head.tid);

	return thread && thread->pid == call->head.tgid && call->begin_ns <= thread->left_ns;
}

/*
 * An end may have been lost, in a full ring. Then the thread is in no call any more, and what ended
 * until that was seen is passed on before a call that begins later.
 */
static struct inside_thread *still_in_calls(struct inside *inside, struct inside_thread *thread,
                                            uint64_t begin_ns)
{
	uint64_t now_ns, open_ns;

	if (thread->over_ns && begin_ns >= thread->over_ns) {
		forget_before(thread, thread->over_ns);
		thread->over_ns = 0;
	}
	if (!thread->n) {
		drop_if_empty(inside, thread);
		return NULL;
	}
	if (inside->now_ns < thread->look_ns)
		return thread;
	thread->look_ns = inside->now_ns + LOOK_NS;
	now_ns = inside_clock_ns();
	if (programs_thread_in_call(inside->options.programs, (pid_t)thread->tid, &open_ns))
		thread->over_ns = 0;
	else if (!thread->over_ns)
		thread->over_ns = now_ns;
	return thread;
}

static void nest(struct inside *inside, struct wire_call *call)
{
	struct inside_thread *thread = find(inside, call->head.tid);

	if (thread)
		drop_left(thread, call);
	if (thread)
		thread = still_in_calls(inside, thread, call->begin_ns);
	for (uint32_t i = 0; thread && i < thread->n; i++) {
		if (thread->open[i].begin_ns > call->begin_ns)
			continue;
		call->head.flags |= WIRE_NESTED;
		call->head.depth++;
	}
}

bool inside_nest(struct inside *inside, struct wire_call *call)
{
	if (inside->threads)
		nest(inside, call);
	call->place = 0;
	return inside_was_met(inside, call->head.tid, call->head.tgid);
}

void inside_nests_no_more(struct inside *inside, const struct wire_head *record)
{
	if (record->type == WIRE_CALL && inside->threads)
		end(inside, (const struct wire_call *)record);
}

bool inside_nests(struct inside *inside, struct wire_head *record)
{
	struct wire_call *call = (struct wire_call *)record;

	if (record->type != WIRE_CALL && record->type != WIRE_BEGIN)
		return false;
	if (record->flags & WIRE_BY_AGENT) {
		inside_nest(inside, call);
		return false;
	}
	if (record->type == WIRE_CALL && inside->threads)
		end(inside, call);
	if (record->type == WIRE_BEGIN) {
		begin(inside, call);
		call->place = 0;
	}
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
