// SPDX-License-Identifier: MIT
#include "agent/lib/probe_threads.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- probe counts -------------------------------------------------------------------------- */

#define OWNED (AGENT_COUNT_CHILDREN - 1) /* by one thread; the next is for all others */

static char *counts_memory;     /* of AGENT_COUNTS_BYTES */
static uint64_t counts_taken;   /* a bit for each share that a thread has for itself */
static uint32_t counts_highest; /* shares before this one were somebody's */

_Static_assert(AGENT_COUNT_SHARES <= 64, "bits of a word");

/* By mmap alone: the program's filter of system calls may be against others. */
static bool counts_map(int flags, int memfd, off_t from)
{
	void *now = mmap(counts_memory, AGENT_COUNTS_BYTES, PROT_READ | PROT_WRITE,
	                 flags | (counts_memory ? MAP_FIXED : 0), memfd, from);

	if (now == MAP_FAILED)
		return false;
	if (!counts_memory)
		counts_memory = now;
	return true;
}

bool counts_open(int memfd)
{
	return counts_map(MAP_SHARED, memfd, AGENT_COUNTS_AT);
}

void counts_close(void)
{
	if (counts_memory)
		counts_map(MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

static void raise_to(uint32_t *number, uint32_t least)
{
	uint32_t was = __atomic_load_n(number, __ATOMIC_RELAXED);

	while (was < least && !__atomic_compare_exchange_n(number, &was, least, true,
	                                                   __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static uint64_t *share_at(uint32_t share)
{
	raise_to(&counts_highest, share + 1);
	return (uint64_t *)counts_memory + (size_t)share * AGENT_SLOTS_MOST;
}

uint64_t *counts_take(bool *shares)
{
	uint64_t was = __atomic_load_n(&counts_taken, __ATOMIC_RELAXED), bit;
	uint32_t share;

	*shares = false;
	do {
		share = ~was ? (uint32_t)__builtin_ctzll(~was) : OWNED;
		if (share >= OWNED) {
			*shares = true;
			return share_at(OWNED);
		}
		bit = 1ull << share;
	} while (!__atomic_compare_exchange_n(&counts_taken, &was, was | bit, true,
	                                      __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
	return share_at(share);
}

static void counts_give(uint64_t *counts)
{
	size_t share =
		counts ? (size_t)(counts - (uint64_t *)counts_memory) / AGENT_SLOTS_MOST : OWNED;

	if (share < OWNED)
		__atomic_fetch_and(&counts_taken, ~(1ull << share), __ATOMIC_RELEASE);
}

/* In memory that is shared with the parent, and so with cuscope. */
void counts_of_child(uint64_t slot)
{
	uint64_t *share =
		(uint64_t *)counts_memory + (size_t)AGENT_COUNT_CHILDREN * AGENT_SLOTS_MOST;

	if (counts_memory && slot < AGENT_SLOTS_MOST)
		__atomic_fetch_add(&share[slot], 1, __ATOMIC_RELAXED);
}

void counts_tell_shares(struct agent_shared *shared)
{
	raise_to(&shared->probe_shares, __atomic_load_n(&counts_highest, __ATOMIC_RELAXED));
}

/* In another process than that of the shares. */
static void counts_forget(void)
{
	counts_taken = 0;
	counts_highest = 0;
}

/* ---- probe threads ------------------------------------------------------------------------- */

#define THREADS_MOST 4095 /* and one that is none: see ring.h */
#define REAP_LEAST   16
#define ENDED        UINT32_MAX /* a tid: being freed */

/*
 * Descriptors of thread-local memory (module.mk asks for them): where the C library has room beside
 * each thread, this word is there from the thread's beginning. Elsewhere the first use allocates,
 * which a signal handler must not do.
 */
__thread struct probe_thread *probe_own;

static struct probe_thread *states[THREADS_MOST];
static uint32_t n_states;
static uint32_t reaping; /* somebody looks for threads that ended: so each is found by one alone */
static uint32_t reap_at = REAP_LEAST; /* as many states: those of ended threads are looked for */

void (*probe_thread_reap)(struct probe_thread *thread);

static uint32_t gettid_now(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

/* ---- who has it ---------------------------------------------------------------------------- */

/*
 * It is set: by a thread that is in here, below us, or by one that a handler's longjmp has taken
 * out of here. The second only where we are the same thread, on the same stack, and not below it.
 * (A thread that has another one's thread-local memory has a stack of its own.)
 */
static bool was_left(const struct probe_thread *thread, const struct thunk_frame *by)
{
	stack_t other;
	int error = errno;
	bool left;

	left = (uint64_t)by >= thread->busy_at && gettid_now() == thread->tid &&
	       peek_is_one_stack(thread->busy_at, (uint64_t)by) && sigaltstack(NULL, &other) == 0 &&
	       !(other.ss_flags & SS_ONSTACK);
	errno = error;
	return left;
}

/* Where it is free; else what it is. */
static uint32_t become(struct probe_thread *thread, uint32_t busy)
{
	uint32_t was = PROBE_THREAD_FREE;

	__atomic_compare_exchange_n(&thread->busy, &was, busy, false, __ATOMIC_SEQ_CST,
	                            __ATOMIC_SEQ_CST);
	return was;
}

bool probe_thread_take(struct probe_thread *thread, const struct thunk_frame *by)
{
	uint32_t was = become(thread, PROBE_THREAD_BUSY);

	if (was == PROBE_THREAD_STOPPED || (was == PROBE_THREAD_BUSY && !was_left(thread, by)))
		return false;
	thread->busy_at = (uint64_t)by;
	return true;
}

void probe_thread_give(struct probe_thread *thread)
{
	__atomic_store_n(&thread->busy, PROBE_THREAD_FREE, __ATOMIC_RELEASE);
}

bool probe_thread_stop(struct probe_thread *thread, unsigned *left_ms)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	while (become(thread, PROBE_THREAD_STOPPED) != PROBE_THREAD_FREE) {
		if (!*left_ms)
			return false;
		--*left_ms;
		nanosleep(&pause, NULL);
	}
	return true;
}

/* ---- of threads that ended ----------------------------------------------------------------- */

struct probe_thread *probe_thread_at(uint32_t number)
{
	return number < THREADS_MOST ? __atomic_load_n(&states[number], __ATOMIC_ACQUIRE) : NULL;
}

struct ring_claim *probe_thread_claim(uint64_t number)
{
	struct probe_thread *thread = probe_thread_at((uint32_t)number - 1);

	return thread ? &thread->claim : NULL;
}

uint32_t probe_threads(void)
{
	uint32_t n = __atomic_load_n(&n_states, __ATOMIC_ACQUIRE);

	return n < THREADS_MOST ? n : THREADS_MOST;
}

void probe_threads_forget(void)
{
	memset(states, 0, sizeof(states));
	counts_forget();
	n_states = 0;
	reaping = 0;
	reap_at = REAP_LEAST;
}

bool probe_thread_ended(struct probe_thread *thread)
{
	uint32_t tid = __atomic_load_n(&thread->tid, __ATOMIC_ACQUIRE);
	int error = errno;
	bool ended;

	if (!tid || tid == ENDED)
		return false;
	ended = syscall(SYS_tgkill, getpid(), tid, 0) < 0 && errno == ESRCH;
	errno = error;
	if (!ended || !__atomic_compare_exchange_n(&thread->tid, &tid, ENDED, false,
	                                           __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return false;
	/* acquires what it wrote last, even if it ended in here */
	__atomic_exchange_n(&thread->busy, PROBE_THREAD_STOPPED, __ATOMIC_SEQ_CST);
	return true;
}

void probe_thread_free(struct probe_thread *thread)
{
	thread->depth = 0;
	thread->launching = 0;
	thread->correlation = 0;
	thread->claim.end = 0;
	counts_give(thread->counts);
	thread->counts = NULL;
	thread->counting = 0;
	__atomic_store_n(&thread->busy, PROBE_THREAD_FREE, __ATOMIC_SEQ_CST);
	__atomic_store_n(&thread->tid, 0, __ATOMIC_RELEASE);
}

bool probe_threads_lock(unsigned *left_ms)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	while (__atomic_exchange_n(&reaping, 1, __ATOMIC_ACQUIRE)) {
		if (!*left_ms)
			return false;
		--*left_ms;
		nanosleep(&pause, NULL);
	}
	return true;
}

void probe_threads_unlock(void)
{
	__atomic_store_n(&reaping, 0, __ATOMIC_RELEASE);
}

static void reap(void)
{
	uint32_t n = probe_threads(), alive = 0;
	unsigned no_time = 0;

	if (n < __atomic_load_n(&reap_at, __ATOMIC_RELAXED) || !probe_threads_lock(&no_time))
		return;
	for (uint32_t i = 0; i < n; i++) {
		struct probe_thread *thread = probe_thread_at(i);

		if (!thread)
			continue;
		if (probe_thread_ended(thread)) {
			if (probe_thread_reap)
				probe_thread_reap(thread);
			probe_thread_free(thread);
		} else if (__atomic_load_n(&thread->tid, __ATOMIC_RELAXED)) {
			alive++;
		}
	}
	__atomic_store_n(&reap_at, 2 * alive > REAP_LEAST ? 2 * alive : REAP_LEAST,
	                 __ATOMIC_RELAXED);
	probe_threads_unlock();
}

/* ---- a thread's first call ----------------------------------------------------------------- */

static struct probe_thread *free_state(uint32_t tid)
{
	uint32_t n = probe_threads();

	for (uint32_t i = 0; i < n; i++) {
		struct probe_thread *thread = probe_thread_at(i);
		uint32_t nobody = 0;

		if (thread && !__atomic_load_n(&thread->tid, __ATOMIC_RELAXED) &&
		    __atomic_compare_exchange_n(&thread->tid, &nobody, tid, false, __ATOMIC_ACQ_REL,
		                                __ATOMIC_RELAXED))
			return thread;
	}
	return NULL;
}

static struct probe_thread *new_state(uint32_t tid)
{
	struct probe_thread *thread;
	uint32_t number;

	if (probe_threads() >= THREADS_MOST)
		return NULL;
	thread = mmap(NULL, sizeof(*thread), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
	              -1, 0);
	if (thread == MAP_FAILED)
		return NULL;
	thread->tid = tid;
	number = __atomic_fetch_add(&n_states, 1, __ATOMIC_ACQ_REL);
	if (number < THREADS_MOST) {
		thread->claim.number = number + 1;
		__atomic_store_n(&states[number], thread, __ATOMIC_RELEASE);
		return thread;
	}
	__atomic_store_n(&n_states, THREADS_MOST, __ATOMIC_RELEASE);
	munmap(thread, sizeof(*thread));
	return NULL;
}

static struct probe_thread *make(uint32_t pid, uint64_t sp)
{
	uint32_t tid = gettid_now();
	struct probe_thread *thread;
	int error = errno;

	if ((uint32_t)getpid() != pid)
		return NULL;
	reap();
	thread = free_state(tid);
	if (!thread)
		thread = new_state(tid);
	errno = error;
	if (!thread)
		return NULL;
	thread->pid = pid;
	thread->session = 0;
	peek_thread(&thread->peek, sp);
	probe_own = thread;
	return thread;
}

struct probe_thread *probe_thread_get(uint32_t pid, uint64_t sp)
{
	struct probe_thread *own = probe_own;

	return own && own->pid == pid ? own : make(pid, sp);
}

struct probe_thread *probe_thread_own(void)
{
	return probe_own;
}

bool probe_thread_is_counting(struct probe_thread *thread, uint64_t sp)
{
	uint64_t at = thread->counting - FRAME_BYTES + FRAME_STATE;
	const void *state;

	return thread->counting > sp && peek_read(&thread->peek, sp, &state, at, sizeof(state)) &&
	       state == thread;
}
