// SPDX-License-Identifier: MIT
#include "analysis/slowest.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

/* A heap whose root is the first that has to go. */
struct slowest {
	struct slow_call *calls;
	size_t n, most;
	uint64_t unfinished;
};

struct slowest *slowest_new(size_t most)
{
	struct slowest *slowest = xcalloc(1, sizeof(*slowest));

	slowest->most = most;
	slowest->calls = xcalloc(most + 1, sizeof(*slowest->calls));
	return slowest;
}

/* Whether `a` has to go before `b`. */
static bool goes_first(const struct call *a, const struct call *b)
{
	uint64_t one = call_duration_ns(a), other = call_duration_ns(b);

	return one != other ? one < other : a->begin_ns > b->begin_ns;
}

static void swap(struct slow_call *a, struct slow_call *b)
{
	struct slow_call old = *a;

	*a = *b;
	*b = old;
}

static void sift_up(struct slow_call *heap, size_t at)
{
	for (; at && goes_first(&heap[at].call, &heap[(at - 1) / 2].call); at = (at - 1) / 2)
		swap(&heap[at], &heap[(at - 1) / 2]);
}

static void sift_down(struct slow_call *heap, size_t n)
{
	for (size_t at = 0, child; (child = 2 * at + 1) < n; at = child) {
		if (child + 1 < n && goes_first(&heap[child + 1].call, &heap[child].call))
			child++;
		if (!goes_first(&heap[child].call, &heap[at].call))
			return;
		swap(&heap[at], &heap[child]);
	}
}

static void keep(struct slow_call *slot, const struct event *event)
{
	slot->call = *event->call;
	slot->call.text = event->call->text ? xstrdup(event->call->text) : NULL;
	slot->process = event->process;
	slot->tid = event->tid;
}

void slowest_event(struct slowest *slowest, const struct event *event)
{
	const struct call *call = event->call;

	if (event->type != EVENT_CALL || call->flags & CALL_NESTED || !slowest->most)
		return;
	slowest->unfinished += !!(call->flags & CALL_UNFINISHED);
	if (!call_has_end(call))
		return;
	if (slowest->n < slowest->most) {
		keep(&slowest->calls[slowest->n], event);
		sift_up(slowest->calls, slowest->n++);
	} else if (goes_first(&slowest->calls[0].call, call)) {
		free((char *)slowest->calls[0].call.text);
		keep(&slowest->calls[0], event);
		sift_down(slowest->calls, slowest->n);
	}
}

uint64_t slowest_unfinished(const struct slowest *slowest)
{
	return slowest->unfinished;
}

static int longest_first(const void *left, const void *right)
{
	const struct slow_call *a = left, *b = right;

	return goes_first(&b->call, &a->call) ? -1 : goes_first(&a->call, &b->call);
}

const struct slow_call *slowest_rows(struct slowest *slowest, size_t *n)
{
	qsort(slowest->calls, slowest->n, sizeof(*slowest->calls), longest_first);
	*n = slowest->n;
	return slowest->calls;
}

void slowest_free(struct slowest *slowest)
{
	if (!slowest)
		return;
	for (size_t i = 0; i < slowest->n; i++)
		free((char *)slowest->calls[i].call.text);
	free(slowest->calls);
	free(slowest);
}
