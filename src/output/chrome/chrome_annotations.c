// SPDX-License-Identifier: MIT
/*
 * What NVTX ranges are on a GPU: from the begin of the first to the end of the last piece of work
 * that was asked for in a range, by its thread and in no range within it, for each stream. Ranges
 * are known when they end, and so after their calls: a file is gone through ahead for them. While a
 * program is traced there are none.
 */
#include <stdlib.h>
#include <string.h>

#include "analysis/work.h"
#include "base/map.h"
#include "base/xalloc.h"
#include "output/chrome/chrome.h"

/* What is kept at most: some 20 MiB of each. */
#define RANGES_MOST (1u << 18)
#define NAMES_MOST  ((size_t)16 << 20)
#define CALLS_MOST  (1u << 18)
#define SPANS_MOST  (1u << 18)

#define OUTER_MOST 256 /* ranges around one that are looked at for a call */

#define NONE UINT32_MAX

struct chrome_name {
	UT_hash_handle hh;
	char text[];
};

struct chrome_range {
	uint64_t begin_ns, end_ns;
	const char *name;
	uint32_t process, tid;
	uint32_t outer; /* the range around it; NONE: there is none */
};

/* No padding in the two keys. */
struct chrome_call {
	struct chrome_call_key {
		uint64_t correlation, process;
	} key;
	uint32_t range;
	UT_hash_handle hh;
};

struct chrome_span {
	struct chrome_span_key {
		uint32_t range, device, stream;
	} key;
	uint64_t begin_ns, end_ns;
	const struct process *process;
	UT_hash_handle hh;
};

struct chrome_annotations {
	struct chrome_name *names;
	size_t name_bytes;
	struct chrome_range *ranges;
	uint32_t n_ranges, cap_ranges;
	struct chrome_call *calls;
	struct chrome_span *spans;
};

struct chrome_annotations *chrome_annotations_new(void)
{
	return xcalloc(1, sizeof(struct chrome_annotations));
}

void chrome_annotations_free(struct chrome_annotations *all)
{
	MAP_FREE(all->names, free);
	MAP_FREE(all->calls, free);
	MAP_FREE(all->spans, free);
	free(all->ranges);
	free(all);
}

/* ---- ranges, ahead --------------------------------------------------------------------------- */

/* NULL: there is no room. */
static const char *keep_name(struct chrome_annotations *all, const char *text)
{
	size_t len = strlen(text);
	struct chrome_name *name = MAP_FIND_BYTES(all->names, text, len);

	if (name)
		return name->text;
	if (all->name_bytes + len > NAMES_MOST)
		return NULL;
	name = xcalloc(1, sizeof(*name) + len + 1);
	memcpy(name->text, text, len);
	HASH_ADD_KEYPTR(hh, all->names, name->text, len, name);
	all->name_bytes += sizeof(*name) + len + 1;
	return name->text;
}

void chrome_annotations_look_ahead(struct chrome_annotations *all, const struct event *event)
{
	const char *name;

	if (event->type != EVENT_RANGE || event->range->kind != RANGE_PUSHPOP ||
	    all->n_ranges == RANGES_MOST)
		return;
	name = keep_name(all, event->range->name);
	if (!name)
		return;
	if (all->n_ranges == all->cap_ranges) {
		all->cap_ranges = all->cap_ranges ? 2 * all->cap_ranges : 256;
		all->ranges = xrealloc(all->ranges, all->cap_ranges * sizeof(*all->ranges));
	}
	all->ranges[all->n_ranges++] =
		(struct chrome_range){ event->range->begin_ns, event->range->end_ns, name,
		                       event->process->id,     event->tid,           NONE };
}

/* By thread, then by begin; of two that begin together the longer one comes first. */
static int compare(const void *a, const void *b)
{
	const struct chrome_range *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return x->end_ns > y->end_ns ? -1 : x->end_ns < y->end_ns;
}

static bool is_within(const struct chrome_range *range, const struct chrome_range *outer)
{
	return range->process == outer->process && range->tid == outer->tid &&
	       range->end_ns <= outer->end_ns;
}

void chrome_annotations_begin(struct chrome_annotations *all)
{
	if (all->n_ranges)
		qsort(all->ranges, all->n_ranges, sizeof(*all->ranges), compare);
	for (uint32_t i = 1; i < all->n_ranges; i++) {
		uint32_t outer = i - 1;

		while (outer != NONE && !is_within(&all->ranges[i], &all->ranges[outer]))
			outer = all->ranges[outer].outer;
		all->ranges[i].outer = outer;
	}
}

/* ---- what ran for them ----------------------------------------------------------------------- */

/* The innermost range of a thread at a time. */
static uint32_t range_at(const struct chrome_annotations *all, const struct event *event,
                         uint64_t time_ns)
{
	const struct chrome_range key = { time_ns, 0, NULL, event->process->id, event->tid, 0 };
	uint32_t low = 0, high = all->n_ranges, at;

	while (low < high) { /* behind the last that begins by then */
		uint32_t middle = low + (high - low) / 2;

		if (compare(&all->ranges[middle], &key) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || all->ranges[low - 1].process != key.process ||
	    all->ranges[low - 1].tid != key.tid)
		return NONE;
	at = low - 1;
	for (int i = 0; i < OUTER_MOST && at != NONE; i++, at = all->ranges[at].outer) {
		if (all->ranges[at].end_ns >= time_ns)
			return at;
	}
	return NONE;
}

static void note_call(struct chrome_annotations *all, const struct event *event)
{
	struct chrome_call_key key = { event->call->correlation, event->process->id };
	uint32_t range = range_at(all, event, event->call->begin_ns);
	struct chrome_call *call;

	if (range == NONE || HASH_COUNT(all->calls) >= CALLS_MOST)
		return;
	call = MAP_FIND(all->calls, &key);
	if (call)
		return;
	call = MAP_ADD(all->calls, key, &key);
	call->range = range;
}

static void extend(struct chrome_span *span, const struct activity *activity)
{
	if (activity->begin_ns < span->begin_ns)
		span->begin_ns = activity->begin_ns;
	if (activity->end_ns > span->end_ns)
		span->end_ns = activity->end_ns;
}

/* Of a graph's launch there is more to come; else the call has had its work. */
static void note_work(struct chrome_annotations *all, const struct event *event)
{
	const struct activity *activity = event->activity;
	struct chrome_call_key key = { activity->correlation, event->process->id };
	struct chrome_span_key of = { 0, activity->device, activity->stream };
	struct chrome_span *span;
	struct chrome_call *call = MAP_FIND(all->calls, &key);

	if (!call)
		return;
	of.range = call->range;
	if (!activity->graph)
		MAP_DROP(all->calls, call);
	span = MAP_FIND(all->spans, &of);
	if (!span && HASH_COUNT(all->spans) >= SPANS_MOST)
		return;
	if (!span) {
		span = xcalloc(1, sizeof(*span));
		*span = (struct chrome_span){ of, activity->begin_ns, activity->end_ns,
			                      event->process, span->hh };
		HASH_ADD(hh, all->spans, key, sizeof(span->key), span);
	}
	extend(span, activity);
}

void chrome_annotations_event(struct chrome_annotations *all, const struct event *event)
{
	if (!all->n_ranges)
		return;
	if (event->type == EVENT_CALL && event->call->correlation &&
	    call_asks_for_work(event->call))
		note_call(all, event);
	else if (event->type == EVENT_ACTIVITY)
		note_work(all, event);
}

/* ---- writing --------------------------------------------------------------------------------- */

static int by_end(const struct chrome_span *a, const struct chrome_span *b)
{
	return a->end_ns < b->end_ns ? -1 : a->end_ns > b->end_ns;
}

void chrome_annotations_write(struct chrome_annotations *all, struct chrome_writer *writer,
                              struct chrome_rows *rows)
{
	struct buf *out = writer->out;
	struct chrome_span *span, *next;

	HASH_SORT(all->spans, by_end); /* as rows want them */
	HASH_ITER (hh, all->spans, span, next) {
		uint32_t tid =
			chrome_rows_annotation(rows, span->process, span->key.device,
		                               span->key.stream, span->begin_ns, span->end_ns);

		chrome_begin_event(writer);
		buf_puts(out, "\"ph\": \"X\", \"cat\": \"gpu_user_annotation\", \"name\": ");
		buf_json_string(out, all->ranges[span->key.range].name);
		buf_printf(out, ", \"pid\": %u, \"tid\": %u, \"ts\": ", span->key.device, tid);
		chrome_add_time(writer, span->begin_ns);
		buf_puts(out, ", \"dur\": ");
		buf_fixed(out, span->end_ns > span->begin_ns ? span->end_ns - span->begin_ns : 0,
		          3);
		buf_puts(out, ", \"args\": {}}");
	}
}
