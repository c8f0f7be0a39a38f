/* SPDX-License-Identifier: MIT */
/*
 * Calls that asked for GPU work, and the work: one window in which each finds the other. Either
 * may come first: a kernel ends after its launch returned, a copy that its caller waits for ends
 * before; and what ran is known up to seconds later.
 *
 * A call is kept until its work comes, however many calls are made meanwhile: what bounds the
 * window is how much is open, not how far apart the two are. A graph's launch is kept for more of
 * its nodes after the first has come, but makes room where that is needed. Where there is none, the
 * oldest call of the process that has most calls open leaves: no process can take the room of
 * another. Of work that came before its call WORK_EARLY pieces wait. What had to leave and was
 * missed is counted.
 *
 * All that look at the same events share one window: work_consumer() stands in front of them, and
 * after it each asks what the event has joined. Who has none to share gets one of its own from
 * work_share(NULL) and feeds it by work_event(), which does nothing to one that is fed already.
 */
#pragma once

#include "trace/event.h"

#define WORK_BYTES      (192u << 20) /* of calls at most: of a file, */
#define WORK_BYTES_LIVE (48u << 20)  /* and beside other things while a program is traced */
#define WORK_EARLY      (1u << 15)   /* pieces of work, 200 bytes each */

struct work_call {
	const struct process *process;
	const struct function *function;
	uint64_t correlation;
	uint64_t number; /* of those that work can name, in the order in which they came; 0: a wait
	                  */
	uint64_t begin_ns, end_ns; /* end: 0 where it is not known */
	uint64_t stream;           /* as call_stream() says */
	uint32_t tid;
	uint8_t op;    /* enum api_op */
	uint8_t asks;  /* call_asks_for_work() */
	uint8_t queue; /* work.c's own */
	uint8_t mark;  /* for the sink, of which there is one: 0 at first */
};

/* 0 where the end is not known. */
static inline uint64_t work_call_ns(const struct work_call *call)
{
	return call->end_ns > call->begin_ns ? call->end_ns - call->begin_ns : 0;
}

/* What ran. */
struct work_done {
	const struct process *process;
	const struct activity *activity;
};

/* Of the event that came last; valid until the next. */
struct work_now {
	/* An activity's: the call that asked for it. A wait's (RANGE_SYNC): the one that waited. A
	 * call's: itself, as it is kept. NULL: not known, or none. */
	struct work_call *call;
	bool waits; /* an activity whose call may come yet */
	bool first; /* the first activity of its call; with `waits`, the first that waits for it */
	bool early; /* a call: what ran for it had come before */
	const struct work_call *left; /* another call, which left for want of room; NULL: none */
	uint32_t place, left_place;   /* of the two in the window: small numbers, used again */
};

struct work;

/* With one owner; each that shares it is one more. */
struct work *work_new(size_t bytes);
struct work *work_share(struct work *shared);
void work_free(struct work *work);
bool work_is_shared(const struct work *work); /* has more owners than one */

/* The consumer that feeds it, in front of those that share it. Its free() is work_free(). */
struct consumer *work_consumer(struct work *work);

/* One of those that share it feeds it for all others, and comes before them. */
void work_feed(struct work *work, const struct event *event);

/* Optional: where no GPU times were recorded only few calls are kept. */
void work_begin(struct work *work, const struct run_info *run);
void work_event(struct work *work, const struct event *event);

const struct work_now *work_now(const struct work *work);

/* `call` is NULL where it was not seen. Both are valid during the call only. */
typedef void (*work_tell)(void *data, const struct work_done *done, const struct work_call *call);

/* As work_event(), and tells what the event has joined, and what it ended the waiting of. Work
 * whose call comes later is told then: not in the order of its ends. */
void work_join(struct work *work, const struct event *event, work_tell tell, void *data);
void work_tell_joined(const struct work *work, work_tell tell, void *data);

/* After the last event: those that still wait for their call. */
void work_tell_rest(const struct work *work, work_tell tell, void *data);

/* After the last event: the calls whose work has not come, and their places. */
void work_each_open(const struct work *work,
                    void (*tell)(void *data, const struct work_call *call, uint32_t place),
                    void *data);

/* Work, and calls with work, whose other half had left for want of room. */
uint64_t work_unjoined(const struct work *work);

/* Whether it is a kernel, and that the launch, of a kernel or of a graph, that it was run for. */
bool work_is_launched(const struct work_done *done, const struct work_call *call);

/*
 * Whether an activity can name this call: of calls within each other the outermost one is named,
 * and what failed or was recorded into a graph did not run. Functions that are not known are taken
 * by what their names say.
 */
bool call_asks_for_work(const struct call *call);
