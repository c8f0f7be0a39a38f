/* SPDX-License-Identifier: MIT */
/*
 * The calls of the last while, for the analysis of gaps. From the call that asked for an activity,
 * which work.h knows, one can go back through the calls of the same thread. The last GAP_CALLS_KEPT
 * are kept, and no more, since activities come seconds late. At 300,000 launches a second, which is
 * as fast as they come, that is more than three seconds.
 */
#ifndef CUSCOPE_REPORT_GAPS_GAP_CALLS_H
#define CUSCOPE_REPORT_GAPS_GAP_CALLS_H

#include "trace/event.h"

#define GAP_CALLS_KEPT (1u << 20) /* a power of two; 64 bytes each */

struct gap_call_kept {
	uint64_t begin_ns, end_ns; /* end: the begin where it is not known */
	uint64_t stream;           /* 0: the default one, also where it names none */
	uint64_t number;           /* as work.h counts those that ask for work; 0: it does not */
	uint32_t tid;
	uint32_t function, waited; /* ids; waited: plus one, see gap_call_waited() */
	uint32_t thread;           /* dense id */
	uint32_t back;             /* to the one before of this thread; 0: none */
	uint8_t op;                /* enum api_op */
	bool async;
	bool nonblocking;          /* the stream does not wait for the default one */
	const struct stack *stack; /* in which it began; NULL: not known */
};

struct gap_calls;

/* `work` is fed with each event before. */
struct work;
struct gap_calls *gap_calls_new(const struct work *work);
void gap_calls_free(struct gap_calls *calls);
void gap_calls_event(struct gap_calls *calls, const struct event *event);

/* All that follows is valid until the next event. */

/* The dense id of a thread, once it has made a call; THREAD_ID_OTHERS: it has not, or has none. */
uint32_t gap_calls_thread(const struct gap_calls *calls, const struct event *event);

/* The call with this number; NULL: too long ago, or 0. */
const struct gap_call_kept *gap_calls_find(const struct gap_calls *calls, uint64_t number);

/* The one that the same thread ended before, of those that no other call made; NULL: none. */
const struct gap_call_kept *gap_calls_before(const struct gap_calls *calls,
                                             const struct gap_call_kept *call);

const struct function *gap_call_function(const struct gap_calls *calls,
                                         const struct gap_call_kept *call);

/*
 * What was put on the stream between this call and the work before it that makes the stream wait:
 * cudaStreamWaitEvent, cudaLaunchHostFunc; NULL: nothing.
 */
const struct function *gap_call_waited(const struct gap_calls *calls,
                                       const struct gap_call_kept *call);

#endif
