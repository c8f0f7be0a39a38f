// SPDX-License-Identifier: MIT
#include "trace/chosen.h"

#include <stdlib.h>

#include "base/xalloc.h"
#include "trace/consumers.h"

struct chosen {
	struct consumer consumer; /* first: what callers hold */
	struct consumer *next;
	struct chosen_options options;
	uint64_t calls;
};

static struct chosen *chosen_of(struct consumer *self)
{
	return (struct chosen *)self;
}

bool chosen_enough(const struct consumer *self)
{
	const struct chosen *chosen = (const struct chosen *)self;

	return chosen->options.max_calls && chosen->calls >= chosen->options.max_calls;
}

static bool call_is(const struct chosen *chosen, const struct call *call)
{
	const struct chosen_options *o = &chosen->options;

	if (chosen_enough(&chosen->consumer) || (o->failed && !(call->flags & CALL_FAILED)))
		return false;
	return !o->min_duration_ns ||
	       (call_has_end(call) && call_duration_ns(call) >= o->min_duration_ns);
}

static bool event_is(const struct chosen *chosen, const struct event *event)
{
	const struct chosen_options *o = &chosen->options;

	switch (event->type) {
	case EVENT_CALL:
	case EVENT_OTHER_CALL:
		return call_is(chosen, event->call);
	case EVENT_ACTIVITY:
		return !o->failed && activity_duration_ns(event->activity) >= o->min_duration_ns;
	case EVENT_RANGE:
		return !o->failed && range_duration_ns(event->range) >= o->min_duration_ns;
	case EVENT_SAMPLE:
	case EVENT_METRICS:
		return !o->failed;
	default:
		return true;
	}
}

static int chosen_begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	return consumers_begin(&chosen_of(self)->next, 1, run, err);
}

static int chosen_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct chosen *chosen = chosen_of(self);

	if (!event_is(chosen, event))
		return 0;
	chosen->calls += event_is_counted(event, false);
	return consumers_event(&chosen->next, 1, event, err);
}

static int chosen_flush(struct consumer *self, struct err *err)
{
	return consumers_flush(&chosen_of(self)->next, 1, err);
}

static int chosen_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	return consumers_end(&chosen_of(self)->next, 1, run, err);
}

static void chosen_free(struct consumer *self)
{
	free(self);
}

static const struct consumer_ops ops = {
	.begin = chosen_begin,
	.metrics = true,
	.event = chosen_event,
	.flush = chosen_flush,
	.end = chosen_end,
	.free = chosen_free,
};

struct consumer *chosen_new(struct consumer *next, const struct chosen_options *options)
{
	struct chosen *chosen = xcalloc(1, sizeof(*chosen));

	chosen->consumer.ops = &ops;
	chosen->next = next;
	chosen->options = *options;
	return &chosen->consumer;
}
