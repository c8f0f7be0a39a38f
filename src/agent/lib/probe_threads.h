/* SPDX-License-Identifier: MIT */
/*
 * What each thread is in, of calls of diverted functions. A thread finds its state by one
 * thread-local word; the states lie in memory of their own, and those of threads that ended are
 * used again.
 *
 * `busy` is set by a thread while it is in here. So a signal handler that makes a call meanwhile is
 * told from it, and whoever takes the ring away waits until nobody is. That one sets it, too, to
 * another value: a thread that a longjmp took out of here may go on with its own, not with that.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/lib/peek.h"
#include "agent/lib/ring.h"
#include "agent/lib/thunks.h"
#include "agent/lib/ticks.h"
#include "agent/wire.h"
#include "bpf/wire.h"

/* A call that has not returned, as it will be told. */
struct probe_call {
	uint64_t slot;
	uint64_t sp; /* where its return address lies, */
	uint64_t back;
	uint64_t mark; /* and what its thunk's frame holds for as long as it is there */
	uint64_t cookie;
	uint64_t hole;  /* above its stack, where memory ends; 0: not looked for, or not found */
	uint32_t level; /* how many calls around it on its stack are told of */
	bool untold;    /* a launch of the runtime that came to the driver */
	struct agent_probed record;
	uint64_t word[WIRE_WORDS];
};

enum probe_thread_busy { PROBE_THREAD_FREE, PROBE_THREAD_BUSY, PROBE_THREAD_STOPPED };

struct probe_thread {
	uint32_t busy;     /* enum probe_thread_busy */
	uint32_t tid;      /* 0: of no thread */
	uint32_t pid;      /* a child of fork has the memory, but not the threads */
	uint32_t shares;   /* `counts` with other threads */
	uint64_t counting; /* the innermost call that is only counted: its frame pointer; or 0 */
	uint64_t *counts;  /* by slot; NULL: none yet */
	struct peek peek;
	uint64_t busy_at;     /* the thunk's frame of who set it */
	uint64_t session;     /* that the calls are of */
	uint64_t last;        /* time */
	uint64_t marks;       /* made so far */
	uint64_t launching;   /* `sp` of the launch that it is in, outside of all others; or 0 */
	uint32_t correlation; /* of the last one: CUPTI's number of the kernel, or 0; */
	uint32_t round;       /* for the agent begins with CUPTI again, as do its numbers */
	uint32_t depth; /* calls that it is in, on all of its stacks, in the order of their begin */
	struct ring_claim claim;
	uint64_t chance;                    /* 0: none yet */
	uint16_t walks;                     /* the last one's number */
	__u64 walks_paid[WIRE_STACK_KINDS]; /* by enum wire_stack_kind: wire_due.h */
	uint64_t recent_generation;         /* of the names: older ones are void */
	uint64_t recent[WIRE_RECENT]; /* kernels that this thread launched and that are named */
	struct probe_call call[AGENT_PROBE_DEPTH_MAX];
	union {
		struct agent_probe_name name;
		_Alignas(8) char bytes[AGENT_RECORD_MAX];
	} text;
};

_Static_assert(offsetof(struct probe_thread, pid) == THREAD_PID, "layout");
_Static_assert(offsetof(struct probe_thread, shares) == THREAD_SHARES, "layout");
_Static_assert(offsetof(struct probe_thread, counting) == THREAD_COUNTING, "layout");
_Static_assert(offsetof(struct probe_thread, counts) == THREAD_COUNTS, "layout");
_Static_assert(offsetof(struct probe_thread, peek.low) == THREAD_LOW, "layout");
_Static_assert(offsetof(struct probe_thread, peek.high) == THREAD_HIGH, "layout");

/* Never back: the clocks of two processors may differ by a tick. */
static inline uint64_t probe_thread_now(struct probe_thread *thread, uint32_t clock)
{
	uint64_t now = ticks_or_ns(clock);

	if (now > thread->last)
		thread->last = now;
	return thread->last;
}

/* The calling thread's, made where it has none; NULL: there is no memory, or it is the child of a
 * vfork. `pid`: the process that is recorded. */
struct probe_thread *probe_thread_get(uint32_t pid, uint64_t sp);

/* In another process than that of the states: it is the child of a fork, and begins without any. */
void probe_threads_forget(void);

/* The calling thread's: for thunks.S. */
extern __thread struct probe_thread *probe_own;

/* The same, if it has one. */
struct probe_thread *probe_thread_own(void);

/* Whether a call that is only counted is around one at `sp`. What it has left may be no frame any
 * more, if a longjmp took the thread out of it. */
bool probe_thread_is_counting(struct probe_thread *thread, uint64_t sp);

/* Sets `busy`, for `by`, the thunk's frame. False: it is set, and the thread is in here indeed. */
bool probe_thread_take(struct probe_thread *thread, const struct thunk_frame *by);
void probe_thread_give(struct probe_thread *thread);

/* Waits until a thread is not in here, and keeps it out until probe_thread_give. False: it took all
 * that was left. */
bool probe_thread_stop(struct probe_thread *thread, unsigned *left_ms);

/* What the ring asks for, by its numbers, which begin with 1. */
struct ring_claim *probe_thread_claim(uint64_t number);

/* The state by number; NULL: there is none with that number. */
struct probe_thread *probe_thread_at(uint32_t number);
uint32_t probe_threads(void);

/* Whether a state's thread is no more; then it is the caller's, busy, until it is freed. */
bool probe_thread_ended(struct probe_thread *thread);
void probe_thread_free(struct probe_thread *thread);

/* Held by who looks for threads that ended; a thread's first call does not wait for it. False: it
 * took all that was left. */
bool probe_threads_lock(unsigned *left_ms);
void probe_threads_unlock(void);

/* What is to be done to states of threads that ended, before they are used again. */
extern void (*probe_thread_reap)(struct probe_thread *thread);

/* ---- probe counts -------------------------------------------------------------------------- */

/*
 * The memory in which calls are counted (AGENT_SLOT_COUNT), and all of those that children of fork
 * make, who have the parent's memory and nobody who records. It is mapped at one address for as
 * long as the process lives: shared with cuscope in a session, and nobody's between two. So a
 * thread that is on its way through a thunk then adds to a number that is not looked at, and to
 * nothing else.
 */

/* A session's, from now on. False: there is no memory, and nothing can be recorded either. */
bool counts_open(int memfd);
void counts_close(void);

/* A thread's share, by slot; *shares: it is not its alone. Until counts_give, which may get NULL.
 */
uint64_t *counts_take(bool *shares);

/* A call in a child of fork, which nobody records. */
void counts_of_child(uint64_t slot);

/* How many shares have ever been somebody's; never less than what is told already. */
void counts_tell_shares(struct agent_shared *shared);
