// SPDX-License-Identifier: MIT
#include "analysis/slowest.h"

#include <stdlib.h>

#include "base/xalloc.h"
#include "table/longest.h"

struct slowest {
	struct longest calls; /* struct slow_call */
	uint64_t unfinished;
};

static int longest_first(const void *left, const void *right)
{
	const struct call *a = &((const struct slow_call *)left)->call;
	const struct call *b = &((const struct slow_call *)right)->call;
	uint64_t one = call_duration_ns(a), other = call_duration_ns(b);

	if (one != other)
		return one < other ? 1 : -1;
	return (a->begin_ns > b->begin_ns) - (a->begin_ns < b->begin_ns);
}

struct slowest *slowest_new(size_t most)
{
	struct slowest *slowest = xcalloc(1, sizeof(*slowest));

	longest_init(&slowest->calls, sizeof(struct slow_call), most, longest_first);
	return slowest;
}

void slowest_event(struct slowest *slowest, const struct event *event)
{
	const struct call *call = event->call;
	const struct slow_call *last = longest_last(&slowest->calls), *gone;
	struct slow_call row;

	if (event->type != EVENT_CALL || call->flags & CALL_NESTED)
		return;
	slowest->unfinished += !!(call->flags & CALL_UNFINISHED);
	if (!call_has_end(call))
		return;
	if (last && call_duration_ns(call) < call_duration_ns(&last->call)) /* nearly all are */
		return;
	row = (struct slow_call){ *call, event->process, event->tid };
	if (!longest_wants(&slowest->calls, &row))
		return;
	row.call.text = call->text ? xstrdup(call->text) : NULL;
	gone = longest_keep(&slowest->calls, &row);
	if (gone)
		free((char *)gone->call.text);
}

uint64_t slowest_unfinished(const struct slowest *slowest)
{
	return slowest->unfinished;
}

const struct slow_call *slowest_rows(struct slowest *slowest, size_t *n)
{
	return longest_rows(&slowest->calls, n);
}

void slowest_free(struct slowest *slowest)
{
	const struct slow_call *rows;
	size_t n;

	if (!slowest)
		return;
	rows = slowest_rows(slowest, &n);
	for (size_t i = 0; i < n; i++)
		free((char *)rows[i].call.text);
	longest_free(&slowest->calls);
	free(slowest);
}
