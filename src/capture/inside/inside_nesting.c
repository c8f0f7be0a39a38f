// SPDX-License-Identifier: MIT
/*
 * Calls that agents tell of, within calls that probes tell of: of a function that keeps its probe,
 * of a library that is not diverted yet, or of a call that began before. Agents know nothing of
 * these. So the programs tell of the begin of each call in such a process, and in the order of time
 * that comes before all that is nested in it.
 *
 * And the other way round: programs know nothing of calls that agents tell of. Where these may lead
 * to functions that keep their probes, as of a layer between runtime and driver, agents tell of the
 * begins, too (inside_modules.c). A call whose end was lost is over where the agent tells of one
 * that is in no other, or a probe of one that was made from above it on the stack.
 *
 * A call that longjmp has left has no end. The programs see that at the thread's next probe, which
 * may never be met again. So it is over, too, where an agent tells of a call that was made from a
 * place above it on the stack.
 */
#include "capture/inside/inside_private.h"

#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/process.h"
#include "probe/person.h"

/* ---- inside threads ------------------------------------------------------------------------ */

/*
 * Threads whose calls agents tell of. The programs tell of a thread at its first hit of a probe,
 * which a thread that began after its process was diverted may never have.
 */

#define MET_MAX 16384 /* of the others calls are told, but not the names */

static struct inside_mets *met_of(struct inside *inside, uint32_t pid)
{
	return &inside->met_of[pid % INSIDE_SLOTS_OF];
}

static void met_is_of(struct inside *inside, struct inside_met *met, uint32_t pid)
{
	met->pid = pid;
	LIST_INSERT_HEAD(met_of(inside, pid), met, in_slot);
}

static bool threads_meet(struct inside *inside, uint32_t tid, uint32_t pid)
{
	struct inside_met **recent = &inside->met_recent[tid % MET_RECENT], *met;

	if (inside_was_met(inside, tid, pid))
		return false;
	met = MAP_FIND(inside->met, &tid);
	if (met)
		*recent = met;
	if (met && met->pid == pid)
		return false;
	if (met) { /* its number was given out again */
		LIST_REMOVE(met, in_slot);
		met_is_of(inside, met, pid);
		return true;
	}
	if (HASH_COUNT(inside->met) >= MET_MAX)
		return false;
	met = MAP_ADD(inside->met, tid, &tid);
	met_is_of(inside, met, pid);
	return true;
}

static void threads_forget(struct inside *inside, uint32_t pid)
{
	struct inside_met *met, *next;

	for (met = LIST_FIRST(met_of(inside, pid)); met; met = next) {
		next = LIST_NEXT(met, in_slot);
		if (met->pid != pid)
			continue;
		inside->met_recent[met->tid % MET_RECENT] = NULL;
		LIST_REMOVE(met, in_slot);
		MAP_DROP(inside->met, met);
	}
}

bool inside_meets_thread(struct inside *inside, const struct wire_head *record,
                         struct wire_process *thread)
{
	if (record->type == WIRE_THREAD)
		threads_meet(inside, record->tid, record->tgid);
	else if (record->type == WIRE_EXIT || record->type == WIRE_EXEC)
		threads_forget(inside, record->tgid);
	if (record->type != WIRE_CALL || !(record->flags & WIRE_BY_AGENT) ||
	    !threads_meet(inside, record->tid, record->tgid))
		return false;
	*thread = (struct wire_process){ .head = { .type = WIRE_THREAD,
		                                   .tgid = record->tgid,
		                                   .tid = record->tid,
		                                   .time_ns = record->time_ns } };
	if (!process_comm((pid_t)record->tgid, (pid_t)record->tid, thread->comm,
	                  sizeof(thread->comm)))
		process_comm((pid_t)record->tgid, 0, thread->comm, sizeof(thread->comm));
	return true;
}

/* ---- inside nesting ------------------------------------------------------------------------ */

#define THREADS_MAX 8192       /* as many as the programs know */
#define LOOK_NS     100000000u /* between looks at whether a thread is still in its calls */

#define OPEN_MAX 24 /* of a thread; calls within so many are nested all the same */

/* Calls of a thread that are not over yet, from the outermost on. */
struct inside_thread {
	uint32_t tid, pid, n;
	uint64_t owner;   /* of the process, when it was first met */
	uint64_t look_ns; /* when to look at whether it is still in them */
	uint64_t over_ns; /* it was in none of them then; 0: that is not known */
	uint64_t left_ns; /* what began by then was left, and the programs may not know; 0: none */
	struct open_call {
		uint64_t begin_ns;
		uint32_t place; /* wire_place; 0: not known */
		uint8_t under;  /* of a probe's: agent's calls around it */
		bool by_agent;
	} open[OPEN_MAX];
	LIST_ENTRY(inside_thread) in_slot;
	UT_hash_handle hh;
};

static struct inside_thread *find(const struct inside *inside, uint32_t tid)
{
	return MAP_FIND(inside->threads, &tid);
}

static struct inside_threads *threads_of(struct inside *inside, uint32_t pid)
{
	return &inside->threads_of[pid % INSIDE_SLOTS_OF];
}

static void drop(struct inside *inside, struct inside_thread *thread)
{
	LIST_REMOVE(thread, in_slot);
	quota_give(&inside->nesting, thread->owner, 0, 1);
	MAP_DROP(inside->threads, thread);
}

static void drop_if_empty(struct inside *inside, struct inside_thread *thread)
{
	if (!thread->n && !thread->left_ns)
		drop(inside, thread);
}

/* An outermost call of its kind begins: the ends of those before it were lost. */
static void forget_before(struct inside_thread *thread, uint64_t begin_ns, bool by_agent)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < thread->n; i++) {
		if (thread->open[i].begin_ns >= begin_ns || thread->open[i].by_agent != by_agent)
			thread->open[kept++] = thread->open[i];
	}
	thread->n = kept;
}

static struct inside_thread *get(struct inside *inside, const struct wire_call *call)
{
	struct inside_thread *thread = find(inside, call->head.tid);
	struct inside_process *process;
	uint64_t owner;

	if (thread && thread->pid == call->head.tgid)
		return thread;
	if (thread)
		drop(inside, thread);
	process = inside_process_find(inside, call->head.tgid);
	owner = process ? process->owner : PERSON_UNKNOWN;
	if (!quota_take_beside(&inside->nesting, owner, THREADS_MAX))
		return NULL;
	thread = MAP_ADD(inside->threads, tid, &call->head.tid);
	thread->owner = owner;
	thread->pid = call->head.tgid;
	LIST_INSERT_HEAD(threads_of(inside, thread->pid), thread, in_slot);
	return thread;
}

static void open_one(struct inside_thread *thread, struct open_call one)
{
	if (thread->n < OPEN_MAX)
		thread->open[thread->n++] = one;
}

static void begin_by_agent(struct inside *inside, const struct wire_call *call)
{
	struct inside_thread *thread = get(inside, call);

	if (thread)
		open_one(thread, (struct open_call){ .begin_ns = call->begin_ns,
		                                     .place = call->place,
		                                     .by_agent = true });
}

static void end_by_agent(struct inside *inside, struct inside_thread *thread,
                         const struct wire_call *call)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < thread->n; i++) {
		if (!thread->open[i].by_agent || thread->open[i].begin_ns != call->begin_ns)
			thread->open[kept++] = thread->open[i];
	}
	thread->n = kept;
	drop_if_empty(inside, thread);
}

/*
 * How many of an agent's calls are around one that a probe tells of. What lies below it on the
 * stack is over: the record of its end was lost.
 */
static uint8_t count_around(struct inside_thread *thread, uint64_t begin_ns, uint32_t place)
{
	uint32_t kept = 0;
	uint8_t around = 0;

	for (uint32_t i = 0; i < thread->n; i++) {
		struct open_call open = thread->open[i];
		bool before = open.by_agent && open.begin_ns <= begin_ns;

		if (before && place && open.place &&
		    (int32_t)((place & ~7u) - (open.place & ~7u)) > 0)
			continue;
		around += before;
		thread->open[kept++] = open;
	}
	thread->n = kept;
	return around;
}

static void put_under(struct wire_call *call, uint8_t around)
{
	if (!around)
		return;
	call->head.flags |= WIRE_NESTED;
	call->head.depth = (uint8_t)(call->head.depth + around);
}

/* A probe tells of the begin of a call, or of one that is open. */
static void begin(struct inside *inside, struct wire_call *call)
{
	struct inside_thread *thread = get(inside, call);
	struct open_call one = { .begin_ns = call->begin_ns, .place = call->place };

	if (!thread)
		return;
	if (!call->head.depth)
		forget_before(thread, call->begin_ns, false);
	one.under = count_around(thread, call->begin_ns, call->place);
	put_under(call, one.under);
	for (uint32_t i = 0; i < thread->n; i++) { /* told, and then looked at */
		if (thread->open[i].begin_ns == call->begin_ns && !thread->open[i].by_agent)
			return;
	}
	open_one(thread, one);
}

/* It is over, and what was in it. One that began later may be known already: it was looked at. */
static void end(struct inside *inside, struct wire_call *call)
{
	struct inside_thread *thread = find(inside, call->head.tid);
	uint32_t kept = 0;
	uint8_t under = 0;
	bool begun = false;

	if (!thread || thread->pid != call->head.tgid)
		return;
	for (uint32_t i = 0; i < thread->n; i++) {
		const struct open_call *open = &thread->open[i];

		if (open->begin_ns == call->begin_ns && !open->by_agent) {
			begun = true;
			under = open->under;
		}
		if (open->by_agent || open->begin_ns < call->begin_ns ||
		    open->begin_ns > call->head.time_ns)
			thread->open[kept++] = *open;
	}
	thread->n = kept;
	if (!begun) /* it has no return */
		under = count_around(thread, call->begin_ns, 0);
	put_under(call, under);
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

		if (open.by_agent || !was_left(&open, call))
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

static bool has_probes(const struct inside_thread *thread)
{
	for (uint32_t i = 0; i < thread->n; i++) {
		if (!thread->open[i].by_agent)
			return true;
	}
	return false;
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
		forget_before(thread, thread->over_ns, false);
		thread->over_ns = 0;
	}
	if (!has_probes(thread)) {
		drop_if_empty(inside, thread);
		return NULL;
	}
	if (inside->now_ns < thread->look_ns)
		return thread;
	thread->look_ns = inside->now_ns + LOOK_NS;
	now_ns = clock_now_ns();
	if (programs_thread_in_call(inside->options.programs, (pid_t)thread->tid, &open_ns))
		thread->over_ns = 0;
	else if (!thread->over_ns)
		thread->over_ns = now_ns;
	return thread;
}

static void nest(struct inside *inside, struct wire_call *call)
{
	struct inside_thread *thread = find(inside, call->head.tid);

	if (thread && thread->pid == call->head.tgid && !call->head.depth)
		forget_before(thread, call->begin_ns, true);
	if (thread)
		drop_left(thread, call);
	if (thread)
		thread = still_in_calls(inside, thread, call->begin_ns);
	for (uint32_t i = 0; thread && i < thread->n; i++) {
		if (thread->open[i].by_agent || thread->open[i].begin_ns > call->begin_ns)
			continue;
		call->head.flags |= WIRE_NESTED;
		call->head.depth++;
	}
}

bool inside_nest(struct inside *inside, struct wire_call *call)
{
	struct inside_thread *thread;

	if (inside->threads)
		nest(inside, call);
	thread = inside->threads && call->head.flags & WIRE_BEGUN ? find(inside, call->head.tid)
	                                                          : NULL;
	if (thread)
		end_by_agent(inside, thread, call);
	call->place = 0;
	return inside_was_met(inside, call->head.tid, call->head.tgid);
}

void inside_nests_no_more(struct inside *inside, struct wire_head *record)
{
	if (record->type == WIRE_CALL && inside->threads && !(record->flags & WIRE_BY_AGENT))
		end(inside, (struct wire_call *)record);
}

bool inside_nests(struct inside *inside, struct wire_head *record)
{
	struct wire_call *call = (struct wire_call *)record;

	if (record->type != WIRE_CALL && record->type != WIRE_BEGIN)
		return false;
	if (record->flags & WIRE_BY_AGENT && record->type == WIRE_BEGIN) {
		const struct wire_call begun = *call;

		inside_nest(inside, call);
		begin_by_agent(inside, &begun);
		return !inside->options.begins;
	}
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
		begin(process->inside, (struct wire_call *)record); /* programs_open_calls' copy */
}

void inside_nesting_begins(struct inside_process *process)
{
	struct inside *inside = process->inside;

	programs_inside_set(inside->options.programs, (pid_t)process->pid, INSIDE_ANY);
	if (inside->options.marked)
		inside->options.marked(inside->options.data, (pid_t)process->pid);
	programs_open_calls(inside->options.programs, look_at, process);
}

void inside_nesting_agent_ended(struct inside *inside, uint32_t pid)
{
	struct inside_thread *thread, *next;

	for (thread = LIST_FIRST(threads_of(inside, pid)); thread; thread = next) {
		next = LIST_NEXT(thread, in_slot);
		if (thread->pid != pid)
			continue;
		forget_before(thread, UINT64_MAX, true);
		drop_if_empty(inside, thread);
	}
}

void inside_nesting_forget(struct inside *inside, uint32_t pid)
{
	struct inside_thread *thread, *next;

	for (thread = LIST_FIRST(threads_of(inside, pid)); thread; thread = next) {
		next = LIST_NEXT(thread, in_slot);
		if (thread->pid == pid)
			drop(inside, thread);
	}
}

void inside_nesting_free(struct inside *inside)
{
	MAP_FREE(inside->threads, free);
	quota_free(&inside->nesting);
	MAP_FREE(inside->met, free);
}
