// SPDX-License-Identifier: MIT
#include "output/delays.h"

#include <stdlib.h>

#include "base/xalloc.h"
#include "analysis/pairs.h"
#include "output/format.h"

struct asked {
	struct half half; /* first */
	uint64_t end_ns;  /* 0: not known */
	uint32_t tid;
};

struct delays {
	struct pairs *pairs;
	struct sink *sink; /* the caller's */
};

struct delays *delays_new(struct sink *sink)
{
	struct delays *delays = xcalloc(1, sizeof(*delays));

	delays->sink = sink;
	delays->pairs = pairs_new(sizeof(struct asked), NULL, NULL);
	return delays;
}

void delays_free(struct delays *delays)
{
	if (!delays)
		return;
	pairs_free(delays->pairs);
	free(delays);
}

static bool can_be_waited_for(const struct call *call)
{
	return call_asks_for_work(call) ||
	       (call->op == OP_SYNC && call->correlation && !(call->flags & CALL_NESTED));
}

void delays_event(struct delays *delays, const struct event *event)
{
	struct asked *asked;

	if (delays->sink->gpu_times || event->type == EVENT_ACTIVITY || event->type == EVENT_RANGE)
		pairs_expect_late(delays->pairs, PAIRS_BYTES_LIVE);
	if (event->type != EVENT_CALL || !can_be_waited_for(event->call))
		return;
	asked = pairs_add(delays->pairs, event->process->id, event->call->correlation, true);
	asked->end_ns = call_has_end(event->call) ? event->call->end_ns : 0;
	asked->tid = event->tid;
}

struct delay delay_of(struct delays *delays, const struct event *event)
{
	const struct activity *activity = event->activity;
	uint64_t correlation = activity ? activity->correlation : event->range->correlation;
	struct asked *asked = NULL;

	if (correlation)
		asked = pairs_find(delays->pairs, event->process->id, correlation);
	if (!asked && correlation) {
		pairs_missed(delays->pairs, event->process->id, correlation);
		delays->sink->unjoined = pairs_unjoined(delays->pairs);
	}
	if (!asked)
		return (struct delay){ .tid = event->tid };
	pairs_meet(delays->pairs, asked);
	if (!activity || !asked->end_ns || activity->begin_ns < asked->end_ns)
		return (struct delay){ .tid = asked->tid };
	return (struct delay){ true, activity->begin_ns - asked->end_ns, asked->tid };
}
