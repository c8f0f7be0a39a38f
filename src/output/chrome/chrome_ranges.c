// SPDX-License-Identifier: MIT
/*
 * Ranges as Kineto has them. What a thread pushes and pops is a user_annotation in the thread's
 * row, by which HTA knows iterations ("ProfilerStep#3"); what starts here and ends there is no
 * slice, since slices of a row have to nest. Waits stand beside the streams, overhead in a process
 * of its own.
 */
#include <stdlib.h>
#include <string.h>

#include "analysis/event_waits.h"
#include "analysis/work.h"
#include "base/map.h"
#include "base/order.h"
#include "base/xalloc.h"
#include "output/chrome/chrome.h"

#define ADD(out, text) buf_add(out, text, sizeof(text) - 1)

static void begin_event(struct chrome_writer *writer, const char *phase, const char *category,
                        const struct range *range)
{
	chrome_begin_event(writer);
	buf_printf(writer->out, "\"ph\": \"%s\", \"cat\": \"%s\", \"name\": ", phase, category);
	buf_json_string(writer->out, range->name);
}

static void add_track(struct chrome_writer *writer, int64_t pid, uint32_t tid, uint64_t time_ns)
{
	struct buf *out = writer->out;

	ADD(out, ", \"pid\": ");
	buf_s64(out, pid);
	ADD(out, ", \"tid\": ");
	buf_u64(out, tid);
	ADD(out, ", \"ts\": ");
	chrome_add_time(writer, time_ns);
}

static void add_duration(struct buf *out, const struct range *range)
{
	ADD(out, ", \"dur\": ");
	buf_fixed(out, range_duration_ns(range), 3);
}

static void add_domain(struct buf *out, const struct range *range)
{
	ADD(out, ", \"args\": {");
	if (range->domain) {
		ADD(out, "\"domain\": ");
		buf_json_string(out, range->domain);
	}
	ADD(out, "}}");
}

static void add_annotation(struct chrome_writer *writer, const struct event *event)
{
	begin_event(writer, "X", "user_annotation", event->range);
	add_track(writer, event->process->pid, event->tid, event->range->begin_ns);
	add_duration(writer->out, event->range);
	add_domain(writer->out, event->range);
}

static void add_mark(struct chrome_writer *writer, const struct event *event)
{
	begin_event(writer, "i\", \"s\": \"t", "user_annotation", event->range);
	add_track(writer, event->process->pid, event->tid, event->range->begin_ns);
	add_domain(writer->out, event->range);
}

static void add_half(struct chrome_writer *writer, const struct event *event, const char *phase,
                     uint64_t time_ns)
{
	begin_event(writer, phase, "user_annotation", event->range);
	ADD(writer->out, ", \"id\": ");
	buf_u64(writer->out, writer->last_id);
	add_track(writer, event->process->pid, event->tid, time_ns);
	add_domain(writer->out, event->range);
}

/* What nests with nothing. */
static void add_start_end(struct chrome_writer *writer, const struct event *event)
{
	writer->last_id++;
	add_half(writer, event, "b", event->range->begin_ns);
	add_half(writer, event, "e", event->range->end_ns);
}

static void add_s64(struct buf *out, const char *key, int64_t value)
{
	buf_puts(out, key);
	buf_s64(out, value);
}

/* Which record of which event it waits for; as Kineto has it, -1 is not known. */
static void add_awaited(struct buf *out, const struct event_waits *waits, const struct event *event)
{
	const struct range *range = event->range;
	struct event_wait on = { 0 };

	if (strcmp(range->name, "Event Sync") && strcmp(range->name, "Stream Wait Event"))
		return;
	event_waits_find(waits, event->process, range->correlation, &on);
	add_s64(out, ", \"wait_on_stream\": ", on.stream ? (int64_t)on.stream : -1);
	add_s64(out, ", \"wait_on_cuda_event_record_corr_id\": ",
	        on.record ? (int64_t)chrome_correlation(event->process->id, on.record) : -1);
	add_s64(out, ", \"wait_on_cuda_event_id\": ", (int64_t)on.event);
}

static void add_wait(struct chrome_writer *writer, struct chrome_rows *rows,
                     const struct event_waits *waits, const struct event *event)
{
	const struct range *range = event->range;
	struct buf *out = writer->out;
	uint32_t device, tid = chrome_rows_wait(rows, event->process, range, &device);

	begin_event(writer, "X", "cuda_sync", range);
	add_track(writer, device, tid, range->begin_ns);
	add_duration(out, range);
	ADD(out, ", \"args\": {\"cuda_sync_kind\": ");
	buf_json_string(out, range->name);
	add_awaited(out, waits, event);
	add_s64(out, ", \"stream\": ", range->stream ? (int64_t)range->stream : -1);
	add_s64(out, ", \"correlation\": ",
	        range->correlation
	                ? (int64_t)chrome_correlation(event->process->id, range->correlation)
	                : 0);
	add_s64(out, ", \"device\": ", device);
	add_s64(out, ", \"context\": ", range->context);
	ADD(out, "}}");
}

static void add_overhead(struct chrome_writer *writer, struct chrome_rows *rows,
                         const struct event *event)
{
	uint32_t row = chrome_rows_overhead(rows, event->range);
	struct range named = *event->range;

	if (!*named.name)
		named.name = "GPU times not measured";
	begin_event(writer, "X", "overhead", &named);
	add_track(writer, -1, row, event->range->begin_ns);
	add_duration(writer->out, event->range);
	buf_printf(writer->out, ", \"args\": {\"pid\": %u, \"tid\": %u}}", event->process->pid,
	           event->tid);
}

void chrome_add_range(struct chrome_writer *writer, struct chrome_rows *rows,
                      const struct event_waits *waits, const struct event *event)
{
	if (event->range->kind < RANGE_SYNC)
		chrome_rows_thread(rows, event->process, event->tid, NULL);
	switch (event->range->kind) {
	case RANGE_PUSHPOP:
		add_annotation(writer, event);
		break;
	case RANGE_STARTEND:
		add_start_end(writer, event);
		break;
	case RANGE_MARK:
		add_mark(writer, event);
		break;
	case RANGE_SYNC:
		add_wait(writer, rows, waits, event);
		break;
	case RANGE_OVERHEAD:
	case RANGE_NOT_MEASURED: /* Kineto has no place for it; nothing is known of the GPU then */
		add_overhead(writer, rows, event);
		break;
	case RANGE_COUNT:
		break;
	}
}

/*
 * What NVTX ranges are on a GPU: from the begin of the first to the end of the last piece of work
 * that was asked for in a range, by its thread and in no range within it, for each stream. Ranges
 * are known when they end, and so after their calls: a file is gone through ahead for them. While a
 * program is traced there are none.
 */

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
ORDER_BY(compare, struct chrome_range, UP(process), UP(tid), UP(begin_ns), DOWN(end_ns));

static bool is_within(const struct chrome_range *range, const struct chrome_range *outer)
{
	return range->process == outer->process && range->tid == outer->tid &&
	       range->end_ns <= outer->end_ns;
}

void chrome_annotations_begin(struct chrome_annotations *all)
{
	SORT(all->ranges, all->n_ranges, compare);
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
