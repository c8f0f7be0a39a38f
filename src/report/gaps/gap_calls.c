// SPDX-License-Identifier: MIT
#include "report/gaps/gap_calls.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "analysis/memory.h"
#include "base/hash.h"
#include "report/gaps/nonblocking.h"
#include "analysis/streams.h"
#include "analysis/work.h"
#include "analysis/thread_ids.h"

#define ROOM_FIRST 4096u
#define WAITS_MOST 65536u /* streams with a wait that no work followed yet */

struct wait_key {
	uint64_t process, stream;
	uint64_t tid; /* of the per-thread default stream, which each thread has its own of */
};

struct wait {
	struct wait_key key;
	const struct function *function;
	UT_hash_handle hh;
};

struct gap_calls {
	struct gap_call_kept *kept; /* a ring: number n is at n modulo room, from 1 on */
	uint64_t room, last;        /* room: a power of two; last: number of the last call */
	uint64_t *asking;           /* numbers by those of work.h, modulo room */
	const struct work *work;    /* the caller's */
	struct thread_ids *ids;
	struct nonblocking *nonblocking;
	uint64_t *threads; /* by id: number of the thread's last call */
	size_t n_threads;
	const struct function **functions; /* by id */
	size_t n_functions;
	struct wait *waits;
};

struct gap_calls *gap_calls_new(const struct work *work)
{
	struct gap_calls *calls = xcalloc(1, sizeof(*calls));

	calls->work = work;
	calls->ids = thread_ids_new();
	calls->nonblocking = nonblocking_new();
	return calls;
}

static void forget_waits(struct gap_calls *calls)
{
	struct wait *wait, *next;

	HASH_ITER (hh, calls->waits, wait, next) {
		HASH_DELETE(hh, calls->waits, wait);
		free(wait);
	}
}

void gap_calls_free(struct gap_calls *calls)
{
	if (!calls)
		return;
	forget_waits(calls);
	thread_ids_free(calls->ids);
	nonblocking_free(calls->nonblocking);
	free(calls->kept);
	free(calls->asking);
	free(calls->threads);
	free(calls->functions);
	free(calls);
}

/* ---- the ring ------------------------------------------------------------------------------ */

static struct gap_call_kept *at(const struct gap_calls *calls, uint64_t number)
{
	return &calls->kept[number & (calls->room - 1)];
}

/* From one number to an earlier one, if that will be there as long as the later one is. */
static uint32_t distance(uint64_t from, uint64_t to)
{
	return to && from - to < GAP_CALLS_KEPT ? (uint32_t)(from - to) : 0;
}

static void enter(struct gap_calls *calls, uint64_t number)
{
	const struct gap_call_kept *kept = at(calls, number);

	if (kept->number)
		calls->asking[kept->number & (calls->room - 1)] = number;
}

static void make_room(struct gap_calls *calls)
{
	struct gap_call_kept *old = calls->kept;
	uint64_t had = calls->room;

	if (calls->last < had || had == GAP_CALLS_KEPT)
		return;
	calls->room = had ? 2 * had : ROOM_FIRST;
	calls->kept = xmalloc(calls->room * sizeof(*calls->kept));
	free(calls->asking);
	calls->asking = xcalloc(calls->room, sizeof(*calls->asking));
	for (uint64_t i = 1; i <= calls->last; i++) { /* before it is as large as can be, nothing */
		*at(calls, i) = old[i & (had - 1)];   /* was let go */
		enter(calls, i);
	}
	free(old);
}

/* Number of the one that is `back` before it; 0: none that is kept. */
static uint64_t before(const struct gap_calls *calls, uint64_t number, uint32_t back)
{
	uint64_t found = back && back < number ? number - back : 0;

	return found && calls->last - found < calls->room ? found : 0;
}

/* ---- calls that make a stream wait --------------------------------------------------------- */

static struct wait_key wait_key(const struct event *event, uint64_t stream)
{
	return (struct wait_key){ event->process->id, stream,
		                  stream == STREAM_PER_THREAD ? event->tid : 0 };
}

static void keep_wait(struct gap_calls *calls, const struct event *event, uint64_t stream)
{
	struct wait_key key = wait_key(event, stream);
	struct wait *wait;

	HASH_FIND(hh, calls->waits, &key, sizeof(key), wait);
	if (!wait) {
		if (HASH_COUNT(calls->waits) >= WAITS_MOST)
			forget_waits(calls);
		wait = xcalloc(1, sizeof(*wait));
		wait->key = key;
		HASH_ADD(hh, calls->waits, key, sizeof(wait->key), wait);
	}
	wait->function = event->call->function;
}

static const struct function *take_wait(struct gap_calls *calls, const struct event *event,
                                        uint64_t stream)
{
	struct wait_key key = wait_key(event, stream);
	const struct function *function;
	struct wait *wait;

	if (!calls->waits)
		return NULL;
	HASH_FIND(hh, calls->waits, &key, sizeof(key), wait);
	if (!wait)
		return NULL;
	function = wait->function;
	HASH_DELETE(hh, calls->waits, wait);
	free(wait);
	return function;
}

/* ---- events -------------------------------------------------------------------------------- */

static uint64_t stream_of(const struct call *call)
{
	uint64_t stream = call_stream(call);

	return stream == STREAM_LEGACY ? 0 : stream;
}

static uint32_t function_id(struct gap_calls *calls, const struct function *function)
{
	calls->functions = by_id_room(calls->functions, &calls->n_functions,
	                              sizeof(*calls->functions), function->id);
	calls->functions[function->id] = function;
	return function->id;
}

static void link_to_thread(struct gap_calls *calls, struct gap_call_kept *kept)
{
	uint64_t *last;

	calls->threads = by_id_room(calls->threads, &calls->n_threads, sizeof(*calls->threads),
	                            kept->thread);
	last = &calls->threads[kept->thread];
	if (kept->thread != THREAD_ID_OTHERS) /* several threads: no order among their calls */
		kept->back = distance(calls->last, *last);
	*last = calls->last;
}

static void keep_call(struct gap_calls *calls, const struct event *event)
{
	const struct call *call = event->call;
	uint64_t stream = stream_of(call);
	const struct function *waited = NULL;
	const struct work_call *asked = work_now(calls->work)->call;
	struct gap_call_kept *kept;
	bool asks = call_asks_for_work(call);

	make_room(calls);
	calls->last++;
	kept = at(calls, calls->last);
	if (asks)
		waited = take_wait(calls, event, stream);
	*kept = (struct gap_call_kept){
		.begin_ns = call->begin_ns,
		.end_ns = call_has_end(call) && call->end_ns > call->begin_ns ? call->end_ns
		                                                              : call->begin_ns,
		.stream = stream,
		.number = asked ? asked->number : 0,
		.tid = event->tid,
		.function = function_id(calls, call->function),
		.waited = waited ? function_id(calls, waited) + 1 : 0,
		.thread = thread_ids_of(calls->ids, event),
		.op = (uint8_t)call->op,
		.stack = call->stack,
		.nonblocking = nonblocking_has(calls->nonblocking, event->process->id, stream),
		.async = call->function->api && api_is_async(call->function->api),
	};
	link_to_thread(calls, kept);
	enter(calls, calls->last);
}

void gap_calls_event(struct gap_calls *calls, const struct event *event)
{
	const struct call *call = event->call;

	if (event->type == EVENT_THREAD) /* its number can have been another thread's */
		thread_ids_renew(calls->ids, event);
	if (event->type != EVENT_CALL)
		return;
	nonblocking_event(calls->nonblocking, event);
	if ((call->op == OP_EVENT_WAIT || call->op == OP_HOST_LAUNCH) && call_counts(call))
		keep_wait(calls, event, stream_of(call));
	if (!(call->flags & CALL_NESTED))
		keep_call(calls, event);
}

uint32_t gap_calls_thread(const struct gap_calls *calls, const struct event *event)
{
	return thread_ids_find(calls->ids, event);
}

/* ---- looking up ---------------------------------------------------------------------------- */

const struct gap_call_kept *gap_calls_find(const struct gap_calls *calls, uint64_t number)
{
	uint64_t found = number && calls->room ? calls->asking[number & (calls->room - 1)] : 0;

	if (!found || calls->last - found >= calls->room || at(calls, found)->number != number)
		return NULL;
	return at(calls, found);
}

/* A call's place in the ring tells its number: of the last `room` ones, the one that is there. */
static uint64_t number_of(const struct gap_calls *calls, const struct gap_call_kept *call)
{
	uint64_t place = (uint64_t)(call - calls->kept);

	return calls->last - ((calls->last - place) & (calls->room - 1));
}

const struct gap_call_kept *gap_calls_before(const struct gap_calls *calls,
                                             const struct gap_call_kept *call)
{
	uint64_t number = before(calls, number_of(calls, call), call->back);

	return number ? at(calls, number) : NULL;
}

const struct function *gap_call_function(const struct gap_calls *calls,
                                         const struct gap_call_kept *call)
{
	return calls->functions[call->function];
}

const struct function *gap_call_waited(const struct gap_calls *calls,
                                       const struct gap_call_kept *call)
{
	return call->waited ? calls->functions[call->waited - 1] : NULL;
}
