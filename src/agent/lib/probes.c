// SPDX-License-Identifier: MIT
#include "agent/lib/probes.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/lib/peek.h"
#include "agent/lib/probe_capture.h"
#include "agent/lib/probe_threads.h"
#include "agent/lib/thunks.h"
#include "agent/lib/ticks.h"

#ifdef __x86_64__

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18 /* Linux 4.14 */
#endif
#define GATE_BYTES    4096
#define CLOSE_MOST_MS 2000

struct slot {
	const void *original;
	uint64_t cookie;
	uint32_t words; /* of the stack */
	uint32_t does;  /* enum probe_does */
};

/* Alone in its page, of which a child of fork finds zeroes, however it was forked. */
struct gate {
	struct ring *ring; /* NULL: nothing is recorded */
	uint64_t session;  /* never 0 */
	uint32_t pid;
	uint32_t clock;
	bool begins;
};

static struct slot slots[THUNKS];
static struct gate *gate;
static uint64_t sessions;
static struct ring *open_ring;
static uint32_t open_clock;

/* ---- what calls are under way -------------------------------------------------------------- */

/* Never back: the clocks of two processors may differ by a tick. */
static uint64_t time_of(struct probe_thread *thread, uint32_t clock)
{
	uint64_t now = ticks_or_ns(clock);

	if (now > thread->last)
		thread->last = now;
	return thread->last;
}

static struct thunk_frame *frame_at(uint64_t sp)
{
	return (struct thunk_frame *)(sp - offsetof(struct thunk_frame, back));
}

/*
 * Whether a call is still under way where the stack pointer is `sp`. One that longjmp or an
 * exception has left may lie above it all the same. Then as a rule other functions have used its
 * place on the stack since, and written over one of the words that are compared.
 */
static bool is_open(struct probe_thread *thread, const struct probe_call *call, uint64_t sp)
{
	const struct thunk_frame *at = frame_at(call->sp);
	struct {
		uint64_t slot;
		const void *original;
		uint64_t words;
		const void *state;
		uint64_t mark, session, frame_pointer, back;
	} is;

	_Static_assert(sizeof(is) == sizeof(*at) - FRAME_SLOT, "the end of a thunk's frame");
	return call->sp > sp &&
	       peek_read(&thread->peek, sp, &is, (uint64_t)&at->slot, sizeof(is)) &&
	       is.mark == call->mark && is.state == thread && is.session == thread->session &&
	       is.slot == call->record.head.lane && is.back == call->back;
}

static void abandon(struct ring *ring, struct probe_thread *thread, uint32_t clock)
{
	struct probe_call *call = &thread->call[--thread->depth];

	call->record.head.flags |= WIRE_UNFINISHED;
	call->record.end = time_of(thread, clock);
	capture_tell(ring, thread, call);
}

static void drop_stale(struct ring *ring, struct probe_thread *thread, uint64_t sp, uint32_t clock)
{
	while (thread->depth && !is_open(thread, &thread->call[thread->depth - 1], sp))
		abandon(ring, thread, clock);
}

/* Calls of a former session were told of when it ended. */
static void begin_session(struct probe_thread *thread)
{
	if (thread->session == gate->session)
		return;
	thread->session = gate->session;
	thread->depth = 0;
	ring_claim_reset(&thread->claim);
	thread->recent_generation = 0;
	thread->last = 0;
}

/* ---- entry --------------------------------------------------------------------------------- */

/* How many words to copy; UINT32_MAX: they cannot be seen, so the call has to go on by itself. */
static uint32_t words_to_copy(struct probe_thread *thread, const struct slot *slot,
                              const struct thunk_frame *frame)
{
	const uint32_t most = THUNK_STACK_MOST;
	uint64_t sp = (uint64_t)&frame->back, stack = (uint64_t)frame->stack;

	if (slot->words != PROBE_WORDS_UNKNOWN)
		return slot->words;
	if (peek_is_stack(&thread->peek, sp, stack, most * sizeof(uint64_t)))
		return most;
	/* the end of the stack may be nearer than that */
	if (thread->peek.top > stack && thread->peek.top - stack < most * sizeof(uint64_t) &&
	    peek_is_stack(&thread->peek, sp, stack, thread->peek.top - stack))
		return (uint32_t)((thread->peek.top - stack) / sizeof(uint64_t));
	return UINT32_MAX;
}

static void begin_record(struct probe_thread *thread, struct probe_call *call, uint64_t number,
                         const struct slot *slot)
{
	call->cookie = slot->cookie;
	call->record = (struct agent_probed){
		.head = { .type = AGENT_PROBED,
		          .flags = thread->depth ? WIRE_NESTED : 0,
		          .lane = (uint16_t)number },
		.tid = __atomic_load_n(&thread->tid, __ATOMIC_RELAXED),
		.depth = thread->depth,
	};
}

/* The last moment before the original: what was recorded so far is not its time. */
static void begin_time(struct ring *ring, struct probe_thread *thread, struct probe_call *call)
{
	struct agent_probed *record = &call->record;

	record->begin = record->end = time_of(thread, gate->clock);
	if (!gate->begins || record->head.flags & WIRE_NO_RETURN)
		return;
	record->head.type = AGENT_PROBE_BEGUN;
	capture_tell(ring, thread, call);
	record->head.type = AGENT_PROBED;
	record->head.flags |= WIRE_BEGUN;
}

/* With the thread taken. Whether to come back. */
static bool entered(struct ring *ring, struct probe_thread *thread, struct thunk_frame *frame)
{
	const struct slot *slot = &slots[frame->slot];
	uint64_t sp = (uint64_t)&frame->back;
	struct probe_call *call;

	drop_stale(ring, thread, sp, gate->clock);
	if (thread->depth == AGENT_PROBE_DEPTH_MAX) {
		capture_lost(AGENT_PROBE_DEPTH);
		return false;
	}
	call = &thread->call[thread->depth];
	begin_record(thread, call, frame->slot, slot);
	/* what is told of it before it begins, its texts, has a time as well */
	call->record.begin = time_of(thread, gate->clock);
	capture_entry(ring, thread, call, frame);
	frame->words = UINT32_MAX;
	if (__atomic_load_n(&slot->does, __ATOMIC_RELAXED) == PROBE_CALL)
		frame->words = words_to_copy(thread, slot, frame);
	if (frame->words == UINT32_MAX) {
		call->record.head.flags |= WIRE_NO_RETURN;
		capture_forget_kernels(call->cookie);
		begin_time(ring, thread, call);
		capture_tell(ring, thread, call);
		return false;
	}
	call->sp = sp;
	call->back = frame->back;
	call->mark = ++thread->marks * 0x9e3779b97f4a7c15ull ^ sp;
	frame->mark = call->mark;
	frame->state = thread;
	frame->session = thread->session;
	thread->depth++;
	begin_time(ring, thread, call);
	return true;
}

/* What an earlier stay of the thread in here has left, taken out of it by a longjmp. */
static struct ring *ring_of(struct probe_thread *thread)
{
	struct ring *ring = __atomic_load_n(&gate->ring, __ATOMIC_SEQ_CST);

	if (!ring)
		return NULL;
	begin_session(thread);
	if (thread->claim.end)
		capture_close_room(ring, thread);
	return ring;
}

uint64_t probe_enter(struct thunk_frame *frame)
{
	struct slot *slot = &slots[frame->slot];
	struct probe_thread *thread;
	struct ring *ring;
	bool back = false;

	frame->original = __atomic_load_n(&slot->original, __ATOMIC_ACQUIRE);
	if (__atomic_load_n(&slot->does, __ATOMIC_RELAXED) == PROBE_PASSES_ON || !gate ||
	    !__atomic_load_n(&gate->ring, __ATOMIC_RELAXED))
		return 0;
	thread = probe_thread_get(__atomic_load_n(&gate->pid, __ATOMIC_RELAXED),
	                          (uint64_t)&frame->back);
	if (!thread) {
		capture_lost(AGENT_PROBE_THREADS);
		return 0;
	}
	if (!probe_thread_take(thread, frame)) {
		capture_lost(AGENT_PROBE_REENTRY);
		return 0;
	}
	ring = ring_of(thread);
	if (ring)
		back = entered(ring, thread, frame);
	probe_thread_give(thread);
	return back;
}

/* ---- return -------------------------------------------------------------------------------- */

/* The call that returns now; those above it were left without a return. NULL: it is not known. */
static struct probe_call *call_of_return(struct ring *ring, struct probe_thread *thread,
                                         const struct thunk_frame *frame)
{
	uint64_t sp = (uint64_t)&frame->back;

	while (thread->depth && thread->call[thread->depth - 1].sp <= sp) {
		struct probe_call *call = &thread->call[thread->depth - 1];

		if (call->sp == sp && call->mark == frame->mark) {
			thread->depth--;
			return call;
		}
		abandon(ring, thread, gate->clock);
	}
	return NULL;
}

static void returned(struct ring *ring, struct probe_thread *thread,
                     const struct thunk_frame *frame, uint64_t end)
{
	struct probe_call *call;

	if (frame->session != thread->session)
		return; /* it was told of when its session ended */
	if (end > thread->last)
		thread->last = end;
	end = thread->last;
	call = call_of_return(ring, thread, frame);
	if (!call) {
		capture_lost(AGENT_PROBE_ENTRY);
		return;
	}
	call->record.end = end;
	call->record.result = (int32_t)frame->rax;
	if (!call->record.result)
		capture_return(ring, thread, call, (uint64_t)&frame->back);
	capture_forget_kernels(call->cookie);
	capture_tell(ring, thread, call);
}

void probe_exit(struct thunk_frame *frame)
{
	uint64_t end = ticks_or_ns(__atomic_load_n(&gate->clock, __ATOMIC_RELAXED));
	struct probe_thread *thread = probe_thread_own();
	struct ring *ring;

	if (!__atomic_load_n(&gate->ring, __ATOMIC_RELAXED))
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
	ring = ring_of(thread);
	if (ring)
		returned(ring, thread, frame, end);
	probe_thread_give(thread);
}

/* ---- slots --------------------------------------------------------------------------------- */

void probes_set(uint32_t number, const struct probe_plan *plan)
{
	struct slot *slot = &slots[number];

	slot->cookie = plan->cookie;
	slot->words = plan->stack_words;
	slot->does = PROBE_PASSES_ON;
	__atomic_store_n(&slot->original, plan->original, __ATOMIC_RELEASE);
}

void probes_turn(uint32_t number, enum probe_does does)
{
	__atomic_store_n(&slots[number].does, does, __ATOMIC_RELEASE);
}

const void *probes_thunk(uint32_t number)
{
	return probe_thunks + number * THUNK_BYTES;
}

/* ---- sessions ------------------------------------------------------------------------------ */

static int make_gate(void)
{
	void *memory;

	if (gate)
		return 0;
	memory = mmap(NULL, GATE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return -ENOMEM;
	/* before 4.14 a child that nobody is told of would write into memory that it lacks; and
	 * cuscope needs 5.8 */
	madvise(memory, GATE_BYTES, MADV_WIPEONFORK);
	__atomic_store_n(&gate, memory, __ATOMIC_RELEASE);
	return 0;
}

/* Of a thread that ended: its calls did not return. */
static void reap(struct probe_thread *thread)
{
	struct ring *ring = __atomic_load_n(&gate->ring, __ATOMIC_SEQ_CST);

	if (!ring || thread->session != gate->session)
		return;
	capture_close_room(ring, thread);
	while (thread->depth)
		abandon(ring, thread, gate->clock);
}

int probes_open(struct ring *ring, const struct probes_options *options)
{
	static uint32_t pid;

	if (make_gate())
		return -ENOMEM;
	if (gate->ring)
		return -EBUSY;
	if (pid != (uint32_t)getpid())
		probe_threads_forget();
	pid = (uint32_t)getpid();
	peek_prepare(options->may_read);
	probe_thread_reap = reap;
	open_ring = ring;
	open_clock = options->clock;
	__atomic_store_n(&gate->pid, pid, __ATOMIC_RELAXED); /* read before a thread is taken */
	__atomic_store_n(&gate->clock, options->clock, __ATOMIC_RELAXED);
	gate->begins = options->begins;
	gate->session = ++sessions;
	ring->claim = probe_thread_claim;
	ring->shared->probe_clock = options->clock;
	__atomic_store_n(&gate->ring, ring, __ATOMIC_SEQ_CST);
	return 0;
}

/* A thread's open calls will return when nobody listens any more. */
static bool close_thread(struct probe_thread *thread, unsigned *left_ms)
{
	if (!probe_thread_ended(thread) && !probe_thread_stop(thread, left_ms))
		return false;
	if (thread->session == sessions) {
		capture_close_room(open_ring, thread);
		while (thread->depth)
			abandon(open_ring, thread, open_clock);
	}
	if (__atomic_load_n(&thread->tid, __ATOMIC_ACQUIRE) == UINT32_MAX)
		probe_thread_free(thread);
	else
		probe_thread_give(thread);
	return true;
}

int probes_close(void)
{
	uint32_t n = probe_threads();
	unsigned left_ms = CLOSE_MOST_MS;
	int code = 0;

	if (!gate || !gate->ring)
		return 0;
	__atomic_store_n(&gate->ring, NULL, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < n; i++) {
		struct probe_thread *thread = probe_thread_at(i);

		if (thread && !close_thread(thread, &left_ms))
			code = -EBUSY;
	}
	capture_tell_lost(open_ring->shared);
	return code;
}

void probes_look(void)
{
	uint32_t n = probe_threads();

	if (!gate || !gate->ring)
		return;
	for (uint32_t i = 0; i < n; i++) {
		struct probe_thread *thread = probe_thread_at(i);

		if (!thread || !probe_thread_ended(thread))
			continue;
		reap(thread);
		probe_thread_free(thread);
	}
	open_ring->shared->probe_threads = n;
	capture_tell_lost(open_ring->shared);
}

void probes_forked(void)
{
	if (gate)
		memset(gate, 0, sizeof(*gate));
	capture_forked();
}

#else

/* There are no thunks for this machine yet. */
void probes_forked(void)
{
}

#endif
