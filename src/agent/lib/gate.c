// SPDX-License-Identifier: MIT
#include "agent/lib/gate.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/lib/clock.h"
#include "agent/lib/cupti_abi.h"

#define IDS      1024 /* above all of the driver's callback numbers */
#define PAUSE_NS 20000
#define LOOK_NS  50000000 /* who is held looks again, should nobody wake it */

/* A session's number; 0: calls are not counted. */
static uint32_t round_now, rounds;
static uint32_t closed;    /* a futex */
static uint64_t closed_ns; /* since when; of the session's thread */
static uint64_t inside;    /* calls that are waited for, below the session's number */
static int32_t captures;   /* of streams, that began since calls are counted */

/* The outermost call that this thread is in. What was counted in a former round is forgotten. */
static __thread struct {
	uint32_t round, depth;
	bool counted;
} here;
static __thread bool is_own; /* who closed it: not held by itself */

/* ---- which calls --------------------------------------------------------------------------- */

enum kind {
	KIND_NEW,
	KIND_COUNTS,
	KIND_INSTANTIATES, /* a graph */
	KIND_WAITS,        /* for what the GPU does: cuStreamSynchronize and its kin */
	KIND_WORKS,        /* gives the context work, or memory */
	KIND_CAPTURE_BEGINS,
	KIND_CAPTURE_ENDS,
	KIND_ANSWERS, /* what is known, and asks CUPTI nothing while it has a lock */
	KIND_SPARED,  /* the same, of which callbacks are not wanted any more */
};

/* CUresult of cuStreamEndCapture where there is no capture any more. */
#define CAPTURE_INVALIDATED 901
#define CAPTURE_UNJOINED    904

/* PyTorch makes thousands of these calls in a step. Later versions have a "_" behind the name. */
static bool answers(const char *function)
{
	static const char *const names[] = {
		"cuCtxGetCurrent",       "cuCtxGetDevice",         "cuCtxGetFlags",
		"cuDeviceGetAttribute",  "cuDeviceGetCount",       "cuDevicePrimaryCtxGetState",
		"cuPointerGetAttribute", "cuPointerGetAttributes", "cuStreamGetCaptureInfo",
		"cuStreamGetFlags",      "cuStreamGetPriority",    "cuStreamIsCapturing",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t len = strlen(names[i]);

		if (!strncmp(function, names[i], len) && (!function[len] || function[len] == '_'))
			return true;
	}
	return false;
}

static enum kind kind_by_name(const char *function)
{
	if (answers(function))
		return KIND_ANSWERS;
	if (strstr(function, "Synchronize"))
		return KIND_WAITS;
	if (!strncmp(function, "cuLaunch", 8) || !strncmp(function, "cuGraphLaunch", 13) ||
	    !strncmp(function, "cuMem", 5))
		return KIND_WORKS;
	if (!strncmp(function, "cuGraphInstantiate", 18))
		return KIND_INSTANTIATES;
	if (!strncmp(function, "cuStreamBeginCapture", 20))
		return KIND_CAPTURE_BEGINS;
	return strncmp(function, "cuStreamEndCapture", 18) ? KIND_COUNTS : KIND_CAPTURE_ENDS;
}

static uint8_t known[IDS];
static bool any_to_spare; /* of KIND_ANSWERS */

static enum kind kind_of(uint32_t id, const char *function)
{
	uint8_t kind;

	if (id >= IDS || !function)
		return KIND_COUNTS;
	kind = __atomic_load_n(&known[id], __ATOMIC_RELAXED);
	if (kind == KIND_NEW) {
		kind = (uint8_t)kind_by_name(function);
		__atomic_store_n(&known[id], kind, __ATOMIC_RELAXED);
		if (kind == KIND_ANSWERS)
			__atomic_store_n(&any_to_spare, true, __ATOMIC_RELEASE);
	}
	return kind;
}

/* What a capture forbids would end it. One that ends without that its begin was seen is none. */
static void note_capture(enum kind kind, const struct cupti_callback_data *data)
{
	int32_t now = __atomic_load_n(&captures, __ATOMIC_SEQ_CST);
	int32_t result = data->result ? *(const int32_t *)data->result : -1;

	if (kind == KIND_CAPTURE_BEGINS && !result)
		__atomic_add_fetch(&captures, 1, __ATOMIC_SEQ_CST);
	/* One that failed as it was of another thread, or stream, has ended nothing. */
	if (result && result != CAPTURE_INVALIDATED && result != CAPTURE_UNJOINED)
		return;
	while (kind == KIND_CAPTURE_ENDS && now > 0 &&
	       !__atomic_compare_exchange_n(&captures, &now, now - 1, false, __ATOMIC_SEQ_CST,
	                                    __ATOMIC_SEQ_CST))
		;
}

/* ---- threads of the program ---------------------------------------------------------------- */

/*
 * Counts this thread's call, and says whether it did. In the session that is on: that may have
 * ended since the call was entered, and another one begun, while the thread was held or had no
 * processor.
 */
static bool count_in(bool counted)
{
	uint64_t now = __atomic_load_n(&inside, __ATOMIC_SEQ_CST);

	while (counted) {
		if (now >> 32 != here.round) {
			here.round = __atomic_load_n(&round_now, __ATOMIC_SEQ_CST);
			now = __atomic_load_n(&inside, __ATOMIC_SEQ_CST);
			if (!here.round) /* one begins: to that, it is a call from before */
				return false;
		} else if (__atomic_compare_exchange_n(&inside, &now, now + 1, false,
		                                       __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
			return true;
		}
	}
	return false;
}

static void count_out(void)
{
	uint64_t now = __atomic_load_n(&inside, __ATOMIC_SEQ_CST);

	while (here.counted && now >> 32 == here.round &&
	       !__atomic_compare_exchange_n(&inside, &now, now - 1, false, __ATOMIC_SEQ_CST,
	                                    __ATOMIC_SEQ_CST))
		;
	here.counted = false;
}

/* Either the one who closes sees this call, or this call sees that it is closed. */
static void enter(bool counted)
{
	const struct timespec look = { .tv_nsec = LOOK_NS };
	uint64_t until = 0;
	int error = errno;

	here.counted = count_in(counted);
	while (__atomic_load_n(&closed, __ATOMIC_SEQ_CST)) {
		if (!until)
			until = clock_now() + GATE_HELD_MOST_NS;
		else if (clock_now() > until)
			break;
		count_out();
		syscall(SYS_futex, &closed, FUTEX_WAIT_PRIVATE, 1, &look, NULL, 0);
		here.counted = count_in(counted);
	}
	errno = error;
}

bool gate_graph_begins(uint32_t id, const struct cupti_callback_data *data)
{
	enum kind kind = kind_of(id, data->function);

	return (kind == KIND_CAPTURE_BEGINS || kind == KIND_INSTANTIATES) &&
	       data->site == CUPTI_ENTER && !is_own &&
	       (!here.depth || here.round != __atomic_load_n(&round_now, __ATOMIC_ACQUIRE));
}

bool gate_call(uint32_t id, const struct cupti_callback_data *data)
{
	uint32_t round = __atomic_load_n(&round_now, __ATOMIC_ACQUIRE);
	enum kind kind = kind_of(id, data->function);

	if (is_own || !round || kind >= KIND_ANSWERS)
		return false;
	if (here.round != round) {
		here.round = round;
		here.depth = 0;
	}
	if (data->site == CUPTI_ENTER) {
		if (!here.depth++)
			enter(kind != KIND_WAITS);
		return false;
	}
	if (kind >= KIND_CAPTURE_BEGINS)
		note_capture(kind, data);
	if (here.depth && !--here.depth)
		count_out();
	return kind == KIND_WORKS && data->result && !*(const int32_t *)data->result;
}

/* ---- the session's thread ------------------------------------------------------------------ */

bool gate_counts(void)
{
	return __atomic_load_n(&round_now, __ATOMIC_RELAXED) != 0;
}

void gate_begin(void)
{
	if (!++rounds)
		rounds = 1;
	for (size_t i = 0; i < IDS; i++) {
		if (__atomic_load_n(&known[i], __ATOMIC_RELAXED) == KIND_SPARED)
			__atomic_store_n(&known[i], KIND_NEW, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&inside, (uint64_t)rounds << 32, __ATOMIC_SEQ_CST);
	__atomic_store_n(&captures, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&round_now, rounds, __ATOMIC_RELEASE);
}

void gate_end(void)
{
	__atomic_store_n(&round_now, 0, __ATOMIC_RELEASE);
	gate_open();
}

uint32_t gate_spare(void)
{
	if (!__atomic_load_n(&any_to_spare, __ATOMIC_RELAXED))
		return 0;
	__atomic_store_n(&any_to_spare, false, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < IDS; i++) {
		if (__atomic_load_n(&known[i], __ATOMIC_SEQ_CST) != KIND_ANSWERS)
			continue;
		__atomic_store_n(&known[i], KIND_SPARED, __ATOMIC_RELAXED);
		__atomic_store_n(&any_to_spare, true, __ATOMIC_RELAXED); /* there may be more */
		return i;
	}
	return 0;
}

void gate_forked(void)
{
	round_now = closed = 0;
	inside = 0;
	captures = 0;
	is_own = false;
}

bool gate_close(uint64_t most_ns)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	uint64_t until = clock_now() + most_ns;

	is_own = true;
	closed_ns = clock_now();
	__atomic_store_n(&closed, 1, __ATOMIC_SEQ_CST);
	while ((uint32_t)__atomic_load_n(&inside, __ATOMIC_SEQ_CST) ||
	       __atomic_load_n(&captures, __ATOMIC_SEQ_CST)) {
		if (clock_now() > until || __atomic_load_n(&captures, __ATOMIC_SEQ_CST)) {
			gate_open();
			return false;
		}
		nanosleep(&pause, NULL);
	}
	return true;
}

bool gate_lasts(void)
{
	return clock_now() - closed_ns < GATE_HELD_MOST_NS / 2;
}

void gate_open(void)
{
	is_own = false;
	__atomic_store_n(&closed, 0, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &closed, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}
