// SPDX-License-Identifier: MIT
#include "agent/lib/probes.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/lib/peek.h"
#include "agent/lib/probe_capture.h"
#include "agent/lib/probe_gate.h"
#include "agent/lib/probe_threads.h"
#include "agent/lib/thunks.h"
#include "agent/lib/ticks.h"
#include "agent/lib/walks.h"

#ifdef __x86_64__

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18 /* Linux 4.14 */
#endif
#define GATE_BYTES    4096
#define CLOSE_MOST_MS 2000

struct probe_slot probe_slots[THUNKS];
struct probe_gate *probe_gate;
static uint64_t walked_entries[THUNKS]; /* by slot: struct agent_slot has it as `entry` */
static uint64_t numbers;                /* of sessions */
static struct probe_session *opened;

/* Calls of a former session were told of when it ended. */
static void begin_session(struct probe_session *session, struct probe_thread *thread)
{
	uint64_t number = __atomic_load_n(&session->number, __ATOMIC_RELAXED);

	if (thread->session == number)
		return;
	if (thread->session >= session->began) {
		probe_calls_tell_open(session, thread);
	} else {
		thread->depth = 0;
		thread->launching = 0;
		ring_claim_reset(&thread->claim);
		thread->recent_generation = 0;
		thread->last = 0;
	}
	thread->session = number;
}

/* ---- entry --------------------------------------------------------------------------------- */

/* A launch of the runtime that is counted, so that those are told which the runtime refuses. */
static bool is_refused_only(const struct probe_slot *slot)
{
	return cookie_runtime_launch(slot->cookie) &&
	       __atomic_load_n(&slot->does, __ATOMIC_RELAXED) == PROBE_COUNT;
}

static bool is_drivers_launch(uint64_t cookie)
{
	return !cookie_runtime(cookie) && cookie_kernel(cookie) != COOKIE_NONE;
}

/*
 * Launches are looked at in the runtime for those that do not come to the driver. One that does is
 * the driver's to tell, as if nothing were around it.
 */
static void leave_to_driver(struct probe_call *around, uint64_t cookie)
{
	if (!around || around->untold || !cookie_runtime_launch(around->cookie) ||
	    around->record.head.flags & WIRE_BEGUN || !is_drivers_launch(cookie))
		return;
	around->untold = true;
}

/*
 * Whether a call within `sp` is nested in one that is only counted. A launch of the runtime that is
 * counted for being refused is as if nothing were there; once it comes to the driver it is not the
 * innermost counted call any more, by which its end knows what became of it.
 */
static bool is_in_counted(struct probe_thread *thread, uint64_t cookie, uint64_t sp)
{
	uint64_t frame = thread->counting - FRAME_BYTES, slot, outer;

	if (!probe_thread_is_counting(thread, sp))
		return false;
	if (!peek_read(&thread->peek, sp, &slot, frame + FRAME_SLOT, sizeof(slot)) ||
	    !peek_read(&thread->peek, sp, &outer, frame + FRAME_SESSION, sizeof(outer)) ||
	    slot >= AGENT_SLOTS_MOST || !cookie_runtime_launch(probe_slots[slot].cookie))
		return true;
	if (is_drivers_launch(cookie))
		thread->counting = outer;
	return false;
}

static void begin_record(struct probe_thread *thread, struct probe_call *call,
                         const struct probe_call *around, uint64_t number, uint64_t sp)
{
	uint32_t depth;

	call->level = 0;
	if (around) /* a thread's first call is told in full, where others are only counted */
		call->level = around->level +
		              !(around->untold || is_refused_only(&probe_slots[around->slot]));
	depth = call->level + is_in_counted(thread, probe_slots[number].cookie, sp);
	if (depth == AGENT_PROBE_DEPTH_MAX)
		depth--;
	call->hole = 0;
	call->cookie = probe_slots[number].cookie;
	call->slot = number;
	call->untold = false;
	call->record = (struct agent_probed){
		.head = { .type = AGENT_PROBED,
		          .flags = depth ? WIRE_NESTED : 0,
		          .lane = (uint16_t)number },
		.tid = __atomic_load_n(&thread->tid, __ATOMIC_RELAXED),
		.depth = depth,
		.place = wire_place(sp, *(const uint64_t *)sp),
	};
}

static bool slot_begins(const struct probe_slot *slot)
{
	return __atomic_load_n(&slot->session, __ATOMIC_RELAXED) & 1;
}

/* The last moment before the original: what was recorded so far is not its time. */
static void begin_time(struct probe_session *session, struct probe_thread *thread,
                       struct probe_call *call, const struct thunk_frame *frame)
{
	struct agent_probed *record = &call->record;
	uint64_t entry = __atomic_load_n(&walked_entries[call->slot], __ATOMIC_RELAXED);

	if (entry && !record->depth)
		walks_ask(session, thread, call, entry, frame);
	record->begin = record->end = probe_thread_now(thread, session->clock);
	if ((!session->begins && !slot_begins(&probe_slots[call->slot])) ||
	    record->head.flags & WIRE_NO_RETURN)
		return;
	record->head.type = AGENT_PROBE_BEGUN;
	capture_tell(&session->ring, thread, call);
	record->head.type = AGENT_PROBED;
	record->head.flags |= WIRE_BEGUN;
}

/* From its second call on a thread counts. */
static void take_share(struct probe_session *session, struct probe_thread *thread)
{
	bool shares;
	uint64_t *counts = counts_take(&shares);

	counts_tell_shares(session->ring.shared);
	thread->shares = shares;
	thread->counts = counts;
}

/* NULL: there is no room. */
static struct probe_call *begin_call(struct probe_session *session, struct probe_thread *thread,
                                     const struct thunk_frame *frame)
{
	uint64_t sp = (uint64_t)&frame->back;
	struct probe_call *around = NULL, *call;

	if (thread->depth)
		around = probe_calls_around(session, thread, sp);
	call = probe_calls_room(session, thread, sp, &around);
	if (!call) {
		capture_lost(AGENT_PROBE_DEPTH);
		return NULL;
	}
	leave_to_driver(around, probe_slots[frame->slot].cookie);
	begin_record(thread, call, around, frame->slot, sp);
	return call;
}

/* With the thread taken. Whether to come back. */
static bool entered(struct probe_session *session, struct probe_thread *thread,
                    struct thunk_frame *frame)
{
	const struct probe_slot *slot = &probe_slots[frame->slot];
	/* after the session: what another one has turned on is off by then, or was set anew */
	uint32_t does = __atomic_load_n(&slot->does, __ATOMIC_ACQUIRE);
	uint64_t sp = (uint64_t)&frame->back;
	struct probe_call *call;

	if (does == PROBE_PASSES_ON)
		return false;
	call = begin_call(session, thread, frame);
	if (!call)
		return false;
	capture_entry(&session->ring, thread, call, frame);
	frame->words = UINT32_MAX;
	if (does == PROBE_COUNT && !thread->counts)
		take_share(session, thread);
	if (does != PROBE_ENTRY)
		frame->words = capture_stack_words(thread, slot->words, frame);
	if (frame->words == UINT32_MAX) {
		call->record.head.flags |= WIRE_NO_RETURN;
		capture_forget_kernels(call->cookie);
		begin_time(session, thread, call, frame);
		capture_tell(&session->ring, thread, call);
		return false;
	}
	call->sp = sp;
	call->back = frame->back;
	call->mark = ++thread->marks * 0x9e3779b97f4a7c15ull ^ sp;
	frame->mark = call->mark;
	frame->state = thread;
	frame->session = thread->session;
	thread->depth++;
	capture_launch_begins(thread, call);
	begin_time(session, thread, call, frame);
	return true;
}

/* What an earlier stay of the thread in here has left, taken out of it by a longjmp. */
static struct probe_session *session_of(struct probe_thread *thread)
{
	struct probe_session *session = __atomic_load_n(&probe_gate->session, __ATOMIC_SEQ_CST);

	if (!session)
		return NULL;
	begin_session(session, thread);
	if (thread->claim.end)
		capture_close_room(&session->ring, thread);
	return session;
}

uint64_t probe_enter(struct thunk_frame *frame)
{
	struct probe_slot *slot = &probe_slots[frame->slot];
	struct probe_thread *thread;
	struct probe_session *session;
	bool back = false;

	frame->original = __atomic_load_n(&slot->original, __ATOMIC_ACQUIRE);
	if (__atomic_load_n(&slot->does, __ATOMIC_ACQUIRE) == PROBE_PASSES_ON || !probe_gate)
		return 0;
	if (!__atomic_load_n(&probe_gate->session, __ATOMIC_RELAXED)) {
		/* a child's launch is counted as the driver's */
		if (!__atomic_load_n(&probe_gate->pid, __ATOMIC_RELAXED) && !is_refused_only(slot))
			counts_of_child(frame->slot);
		return 0;
	}
	thread = probe_thread_get(__atomic_load_n(&probe_gate->pid, __ATOMIC_RELAXED),
	                          (uint64_t)&frame->back);
	if (!thread) {
		capture_lost(AGENT_PROBE_THREADS);
		return 0;
	}
	if (!probe_thread_take(thread, frame)) {
		capture_lost(AGENT_PROBE_REENTRY);
		return 0;
	}
	session = session_of(thread);
	if (session)
		back = entered(session, thread, frame);
	probe_thread_give(thread);
	return back;
}

/* ---- return -------------------------------------------------------------------------------- */

static void returned(struct probe_session *session, struct probe_thread *thread,
                     const struct thunk_frame *frame, uint64_t end)
{
	struct probe_call *call;

	if (frame->session != thread->session)
		return; /* it was told of when its session ended */
	if (end > thread->last)
		thread->last = end;
	end = thread->last;
	call = probe_calls_return(session, thread, frame);
	if (!call) {
		capture_lost(AGENT_PROBE_ENTRY);
		return;
	}
	call->record.end = end;
	call->record.result = (int32_t)frame->rax;
	if (!call->record.result)
		capture_return(&session->ring, thread, call, (uint64_t)&frame->back);
	capture_forget_kernels(call->cookie);
	capture_correlate(thread, call);
	if (!call->untold)
		capture_tell(&session->ring, thread, call);
	probe_calls_over(thread, call);
}

void probe_exit(struct thunk_frame *frame)
{
	uint64_t end = ticks_or_ns(__atomic_load_n(&probe_gate->clock, __ATOMIC_RELAXED));
	struct probe_thread *thread = probe_thread_own();
	struct probe_session *session;

	if (!__atomic_load_n(&probe_gate->session, __ATOMIC_RELAXED))
		return;
	/* a fiber that went on in another thread */
	if (thread != frame->state) {
		capture_lost(AGENT_PROBE_ENTRY);
		return;
	}
	if (!probe_thread_take(thread, frame)) {
		capture_lost(AGENT_PROBE_REENTRY);
		return;
	}
	session = session_of(thread);
	if (session)
		returned(session, thread, frame, end);
	probe_thread_give(thread);
}

/* ---- counted calls that failed -------------------------------------------------------------- */

/* When it began nobody has looked. */
static void tell_failed(struct probe_session *session, struct probe_thread *thread,
                        const struct thunk_frame *frame)
{
	struct probe_call *call = begin_call(session, thread, frame);

	if (!call)
		return;
	capture_entry(&session->ring, thread, call, frame);
	call->record.begin = call->record.end = probe_thread_now(thread, session->clock);
	call->record.result = (int32_t)frame->rax;
	capture_tell(&session->ring, thread, call);
}

void probe_count_failed(struct thunk_frame *frame)
{
	struct probe_thread *thread = probe_thread_own();
	struct probe_session *session;

	if (!__atomic_load_n(&probe_gate->session, __ATOMIC_RELAXED))
		return;
	if (cookie_runtime_launch(probe_slots[frame->slot].cookie) &&
	    frame->words != (uint64_t)&frame->frame_pointer)
		return; /* it came to the driver, whose call is told of */
	if (thread != frame->state || !probe_thread_take(thread, frame)) {
		capture_lost(thread != frame->state ? AGENT_PROBE_ENTRY : AGENT_PROBE_REENTRY);
		return;
	}
	session = session_of(thread);
	if (session)
		tell_failed(session, thread, frame);
	probe_thread_give(thread);
}

/* ---- slots --------------------------------------------------------------------------------- */

void probes_set(uint32_t number, const struct probe_plan *plan)
{
	struct probe_slot *slot = &probe_slots[number];

	slot->cookie = plan->cookie;
	slot->words = plan->stack_words;
	__atomic_store_n(&walked_entries[number], plan->entry, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->session, (slot->session & ~1ull) | plan->begins, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->does, PROBE_PASSES_ON, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->original, plan->original, __ATOMIC_RELEASE);
}

bool probes_is_now(uint32_t number)
{
	return probe_slots[number].original && opened &&
	       probe_slots[number].session >> 1 == opened->began;
}

bool probes_may_set(uint32_t number, const void *original)
{
	const struct probe_slot *slot = &probe_slots[number];

	return !slot->original ||
	       (slot->original == original && opened && slot->session >> 1 != opened->began);
}

void probes_turn(uint32_t number, enum probe_does does)
{
	struct probe_slot *slot = &probe_slots[number];

	__atomic_store_n(&slot->session, (opened ? opened->began : 0) << 1 | slot_begins(slot),
	                 __ATOMIC_RELAXED);
	if (does == PROBE_COUNT && !probe_gate->counts)
		does = PROBE_CALL;
	__atomic_store_n(&slot->does, does, __ATOMIC_RELEASE);
}

const void *probes_thunk(uint32_t number)
{
	return probe_thunks + number * THUNK_BYTES;
}

/* ---- sessions ------------------------------------------------------------------------------ */

static int make_gate(void)
{
	void *memory;

	if (probe_gate)
		return 0;
	memory = mmap(NULL, GATE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return -ENOMEM;
	/* before 4.14 a child that nobody is told of would write into memory that it lacks; and
	 * cuscope needs 5.8 */
	madvise(memory, GATE_BYTES, MADV_WIPEONFORK);
	__atomic_store_n(&probe_gate, memory, __ATOMIC_RELEASE);
	return 0;
}

/* Of a thread that ended. */
static void reap(struct probe_thread *thread)
{
	struct probe_session *session = __atomic_load_n(&probe_gate->session, __ATOMIC_SEQ_CST);

	if (session && thread->session == __atomic_load_n(&session->number, __ATOMIC_RELAXED))
		probe_calls_tell_open(session, thread);
}

static struct probe_session *make_session(struct ring *ring, const struct probes_options *options)
{
	struct probe_session *session = mmap(NULL, sizeof(*session), PROT_READ | PROT_WRITE,
	                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (session == MAP_FAILED)
		return NULL;
	ring->claim = probe_thread_claim; /* for those that write into it beside the probes, too */
	*session = (struct probe_session){ .ring = *ring,
		                           .began = ++numbers,
		                           .number = numbers,
		                           .clock = options->clock,
		                           .begins = options->begins,
		                           .due = walks_due(ring->shared) };
	return session;
}

int probes_open(struct ring *ring, const struct probes_options *options)
{
	static uint32_t pid;

	if (!ring->counts || make_gate())
		return -ENOMEM;
	if (probe_gate->session)
		return -EBUSY;
	opened = make_session(ring, options);
	if (!opened)
		return -ENOMEM;
	if (pid != (uint32_t)getpid())
		probe_threads_forget();
	pid = (uint32_t)getpid();
	peek_prepare(options->may_read);
	probe_thread_reap = reap;
	capture_begin();
	__atomic_store_n(&probe_gate->pid, pid,
	                 __ATOMIC_RELAXED); /* read before a thread is taken */
	__atomic_store_n(&probe_gate->clock, options->clock, __ATOMIC_RELAXED);
	ring->shared->probe_clock = options->clock;
	counts_tell_shares(ring->shared);
	__atomic_store_n(&probe_gate->counts, ring->counts, __ATOMIC_RELEASE);
	__atomic_store_n(&probe_gate->session, opened, __ATOMIC_SEQ_CST);
	return 0;
}

/* A thread's open calls will return when nobody listens any more. */
static bool close_thread(struct probe_thread *thread, uint64_t number, unsigned *left_ms)
{
	if (!probe_thread_ended(thread) && !probe_thread_stop(thread, left_ms)) {
		capture_lost(AGENT_PROBE_STUCK);
		return false;
	}
	if (thread->session == number)
		probe_calls_tell_open(opened, thread);
	if (__atomic_load_n(&thread->tid, __ATOMIC_ACQUIRE) == UINT32_MAX)
		probe_thread_free(thread);
	else
		probe_thread_give(thread);
	return true;
}

/* All threads, those too that made their state a moment ago: so it is looked how many there are
 * after nobody can begin with the session any more. */
static int close_threads(uint64_t number)
{
	unsigned left_ms = CLOSE_MOST_MS;
	bool locked = probe_threads_lock(&left_ms);
	uint32_t n = probe_threads();
	int code = locked ? 0 : -EBUSY;

	for (uint32_t i = 0; i < n; i++) {
		struct probe_thread *thread = probe_thread_at(i);

		if (thread && !close_thread(thread, number, &left_ms))
			code = -EBUSY;
	}
	if (locked)
		probe_threads_unlock();
	return code;
}

int probes_close(void)
{
	int code;

	if (!probe_gate || !probe_gate->session)
		return 0;
	__atomic_store_n(&probe_gate->session, NULL, __ATOMIC_SEQ_CST);
	__atomic_store_n(&probe_gate->counts, 0, __ATOMIC_RELAXED);
	counts_close();
	code = close_threads(opened->number);
	capture_tell_lost(opened->ring.shared);
	if (!code)
		munmap(opened, sizeof(*opened));
	opened = NULL;
	return code;
}

/* Returns of what was told here are of another session, so nobody asks for their entries. */
void probes_tell_open(void)
{
	uint64_t number;

	if (!probe_gate || !probe_gate->session)
		return;
	number = opened->number;
	__atomic_store_n(&opened->number, ++numbers, __ATOMIC_SEQ_CST);
	close_threads(number);
	capture_tell_lost(opened->ring.shared);
}

static void look_for_ended(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct probe_thread *thread = probe_thread_at(i);

		if (!thread || !probe_thread_ended(thread))
			continue;
		reap(thread);
		probe_thread_free(thread);
	}
}

void probes_look(void)
{
	unsigned left_ms = 0;
	uint32_t n = probe_threads();

	if (!probe_gate || !probe_gate->session)
		return;
	if (probe_threads_lock(&left_ms)) {
		look_for_ended(n);
		probe_threads_unlock();
	}
	opened->ring.shared->probe_threads = n;
	capture_tell_lost(opened->ring.shared);
}

void probes_forked(void)
{
	if (probe_gate)
		memset(probe_gate, 0, sizeof(*probe_gate));
	capture_forked();
}

#else

/* There are no thunks for this machine yet. */
void probes_forked(void)
{
}

#endif
