// SPDX-License-Identifier: MIT
#include "analysis/slowest.h"

#include <stdlib.h>

#include "base/order.h"
#include "base/xalloc.h"
#include "table/longest.h"

struct slowest {
	struct consumer consumer; /* first: what callers hold */
	struct longest calls;     /* struct slow_call */
	uint64_t unfinished;
};

static uint64_t duration_of(const struct slow_call *slow)
{
	return call_duration_ns(&slow->call);
}

ORDER_BY(longest_first, struct slow_call, DOWN_OF(duration_of), UP(call.begin_ns));

static int slowest_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct slowest *slowest = (struct slowest *)self;
	const struct call *call = event->call;
	const struct slow_call *last = longest_last(&slowest->calls), *gone;
	struct slow_call row;

	if (event->type != EVENT_CALL || call->flags & CALL_NESTED)
		return 0;
	slowest->unfinished += !!(call->flags & CALL_UNFINISHED);
	if (!call_has_end(call))
		return 0;
	if (last && call_duration_ns(call) < call_duration_ns(&last->call)) /* nearly all are */
		return 0;
	row = (struct slow_call){ *call, event->process, event->tid };
	if (!longest_wants(&slowest->calls, &row))
		return 0;
	row.call.text = call->text ? xstrdup(call->text) : NULL;
	gone = longest_keep(&slowest->calls, &row);
	if (gone)
		free((char *)gone->call.text);
	return 0;
}

uint64_t slowest_unfinished(const struct consumer *self)
{
	return ((const struct slowest *)self)->unfinished;
}

const struct slow_call *slowest_rows(struct consumer *self, size_t *n)
{
	return longest_rows(&((struct slowest *)self)->calls, n);
}

static void slowest_free(struct consumer *self)
{
	struct slowest *slowest = (struct slowest *)self;
	size_t n;
	const struct slow_call *rows = longest_rows(&slowest->calls, &n);

	for (size_t i = 0; i < n; i++)
		free((char *)rows[i].call.text);
	longest_free(&slowest->calls);
	free(slowest);
}

static const struct consumer_ops slowest_ops = { .event = slowest_event, .free = slowest_free };

struct consumer *slowest_new(size_t most)
{
	struct slowest *slowest = xcalloc(1, sizeof(*slowest));

	slowest->consumer.ops = &slowest_ops;
	longest_init(&slowest->calls, sizeof(struct slow_call), most, longest_first);
	return &slowest->consumer;
}
