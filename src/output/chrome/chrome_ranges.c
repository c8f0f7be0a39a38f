// SPDX-License-Identifier: MIT
/*
 * Ranges as Kineto has them. What a thread pushes and pops is a user_annotation in the thread's
 * row, by which HTA knows iterations ("ProfilerStep#3"); what starts here and ends there is no
 * slice, since slices of a row have to nest. Waits stand beside the streams, overhead in a process
 * of its own.
 */
#include "output/chrome/chrome.h"

#include <string.h>

#include "analysis/event_waits.h"

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
