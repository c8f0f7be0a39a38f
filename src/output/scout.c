// SPDX-License-Identifier: MIT
/*
 * Goes through a trace ahead of a sink and notes, of what the sink will write, which calls ask for
 * work and which work names its call.
 */
#include "analysis/correlations.h"
#include "output/format.h"

#include <stddef.h>

static struct sink *sink_of(struct consumer *scout)
{
	return (struct sink *)((char *)scout - offsetof(struct sink, scout));
}

static int scout_begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct sink *sink = sink_of(self);

	correlations_free(sink->joined);
	sink->joined = correlations_new();
	sink->unjoined = 0;
	return 0;
}

static void note(struct sink *sink, const struct event *event, uint64_t correlation,
                 enum correlation_mark mark)
{
	if (!correlations_mark(sink->joined, event->process->id, correlation, mark))
		sink->unjoined++;
}

static int scout_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct sink *sink = sink_of(self);

	if (sink->look_ahead)
		sink->look_ahead(sink, event);
	if (!sink_wants(sink, event))
		return 0;
	if (event->type == EVENT_CALL && sink->asks_for_work(event->call))
		note(sink, event, event->call->correlation, CORRELATION_CALL);
	else if (event->type == EVENT_ACTIVITY && event->activity->correlation)
		note(sink, event, event->activity->correlation, CORRELATION_WORK);
	sink_count(sink, event);
	return 0;
}

/* As if nothing had been counted. */
static int scout_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct sink *sink = sink_of(self);

	sink->calls = sink->counted = sink->last_ns = 0;
	return 0;
}

static void scout_free(struct consumer *self)
{
}

static const struct consumer_ops scout_ops = {
	.begin = scout_begin,
	.event = scout_event,
	.end = scout_end,
	.free = scout_free, /* it is a part of the sink */
};

struct consumer *sink_scout(struct consumer *consumer)
{
	struct sink *sink = (struct sink *)consumer;

	if (!sink->asks_for_work)
		return NULL;
	sink->scout.ops = &scout_ops;
	return &sink->scout;
}
