// SPDX-License-Identifier: MIT
#include "output/sink.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/correlations.h"
#include "analysis/work.h"
#include "base/buf.h"
#include "output/format.h"

const struct sink_format sink_formats[] = {
	{ .name = "table",
	  .endings = { ".txt" },
	  .help = "a line a call, for people",
	  .create = table_new },
	{ .name = "jsonl",
	  .endings = { ".jsonl", ".jsonl.gz" },
	  .help = "a JSON object a line, for programs",
	  .create = jsonl_new },
	{ .name = "log",
	  .endings = { ".log" },
	  .help = "\"[cuMemAlloc_v2] pid: .., tid: .., time_start: ..\" lines",
	  .create = log_new },
	{ .name = "csv",
	  .endings = { ".csv", ".csv.gz" },
	  .help = "a row a call, for spreadsheets",
	  .create = csv_new },
	{ .name = "svg",
	  .endings = { ".svg" },
	  .help = "a picture of memory over time",
	  .create = svg_new },
	{ .name = "sqlite",
	  .endings = { ".sqlite", ".db" },
	  .help = "a database with the tables of Nsight Systems' export",
	  .binary = true,
	  .whole_file = true,
	  .create = sqlite_new },
	{ .name = "parquet",
	  .help = "a folder of such tables for each host and rank, for DuckDB and Spark",
	  .binary = true,
	  .whole_file = true,
	  .many_files = true,
	  .create = parquet_new },
	{ .name = "perfetto",
	  .endings = { ".pftrace", ".perfetto-trace" },
	  .help = "for ui.perfetto.dev and trace_processor",
	  .binary = true,
	  .create = perfetto_new },
	{ .name = "chrome",
	  .endings = { ".json", ".json.gz" },
	  .help = "as PyTorch's profiler writes it, for HTA and chrome://tracing",
	  .create = chrome_new },
	{ .name = "html",
	  .endings = { ".html" },
	  .help = "one page for a browser: why, a timeline, tables",
	  .create = page_new },
	{ 0 },
};

const struct sink_format *sink_format_by_name(const char *name)
{
	for (const struct sink_format *format = sink_formats; format->name; format++) {
		if (!strcmp(format->name, name))
			return format;
	}
	return NULL;
}

/* With something before the ending: a file of that name alone is hidden, and has none. */
static bool ends_with(const char *path, const char *ending)
{
	size_t len = strlen(path), ending_len = strlen(ending);

	return len > ending_len && !strcmp(path + len - ending_len, ending);
}

const struct sink_format *sink_format_by_ending(const char *path)
{
	for (const struct sink_format *format = sink_formats; format->name; format++) {
		for (const char *const *ending = format->endings; *ending; ending++) {
			if (ends_with(path, *ending))
				return format;
		}
	}
	return NULL;
}

void sink_format_names(struct buf *out)
{
	for (const struct sink_format *format = sink_formats; format->name; format++) {
		if (format > sink_formats)
			buf_puts(out, format[1].name ? ", " : " or ");
		buf_puts(out, format->name);
	}
}

void sink_format_endings(struct buf *out)
{
	size_t before = out->len;

	for (const struct sink_format *format = sink_formats; format->name; format++) {
		for (const char *const *ending = format->endings; *ending; ending++) {
			buf_puts(out, out->len > before ? ", " : "");
			buf_puts(out, *ending);
		}
	}
}

/* ---- which events ---------------------------------------------------------------------------- */

bool sink_begins_late(const struct sink_options *options)
{
	return options->failed_only || options->min_duration_ns;
}

bool sink_done(const struct consumer *consumer)
{
	const struct sink *sink = (const struct sink *)consumer;

	return sink->options.max_events && sink->counted >= sink->options.max_events;
}

bool sink_ended(const struct consumer *consumer)
{
	return ((const struct sink *)consumer)->ended;
}

static bool call_wanted(const struct sink *sink, const struct call *call)
{
	const struct sink_options *options = &sink->options;

	if (options->failed_only && !(call->flags & CALL_FAILED))
		return false;
	if (options->min_duration_ns &&
	    (!call_has_end(call) || call_duration_ns(call) < options->min_duration_ns))
		return false;
	return !(sink->hide_nested && (call->flags & CALL_NESTED));
}

/* A call that failed ran nothing, so --failed shows no activities. Other filters of calls do not
 * apply to them. */
static bool activity_wanted(const struct sink *sink, const struct activity *activity)
{
	return sink->gpu && !sink->options.failed_only &&
	       activity_duration_ns(activity) >= sink->options.min_duration_ns;
}

/* After the last call that is asked for, what ran until it ended may still become known. */
bool sink_is_over(const struct sink *sink, const struct event *event)
{
	uint64_t begin_ns = event->activity  ? event->activity->begin_ns
	                    : event->range   ? event->range->begin_ns
	                    : event->metrics ? event->metrics->begin_ns
	                    : event->stall   ? event->stall->begin_ns
	                                     : UINT64_MAX;

	return sink_done(&sink->consumer) && begin_ns > sink->last_ns;
}

static bool range_wanted(const struct sink *sink, const struct range *range)
{
	return sink->gpu && !sink->options.failed_only &&
	       range_duration_ns(range) >= sink->options.min_duration_ns;
}

bool sink_wants(const struct sink *sink, const struct event *event)
{
	if (sink_is_over(sink, event))
		return false;
	switch (event->type) {
	case EVENT_CALL:
	case EVENT_OTHER_CALL:
		return call_wanted(sink, event->call);
	case EVENT_CALL_BEGIN:
		/* a begin that no end will follow is no half of a pair */
		return sink->options.begin_end && !sink_begins_late(&sink->options) &&
		       !(event->call->flags & CALL_NO_RETURN);
	case EVENT_PROCESS:
	case EVENT_EXIT:
		return true;
	case EVENT_THREAD:
		return sink->gpu;
	case EVENT_ACTIVITY:
		return activity_wanted(sink, event->activity);
	case EVENT_RANGE:
		return range_wanted(sink, event->range);
	case EVENT_SAMPLE:
		return sink->samples && !sink->options.failed_only;
	case EVENT_METRICS:
	case EVENT_STALL:
		return !sink->options.failed_only;
	}
	return false;
}

void sink_count(struct sink *sink, const struct event *event)
{
	if (event->type != EVENT_CALL)
		return;
	sink->calls++;
	if (!event_is_counted(event, sink->options.by_name))
		return;
	sink->counted++;
	sink->last_ns = event->time_ns;
}

uint64_t sink_unjoined(const struct consumer *consumer)
{
	return ((const struct sink *)consumer)->unjoined;
}

/* ---- the consumer ---------------------------------------------------------------------------- */

/* What a format fails with stays, so that nothing is written after it. */
static int failed(struct sink *sink, int rc, const struct err *err)
{
	if (rc && !sink->lines.failure.code)
		sink->lines.failure = *err;
	return rc;
}

static int sink_begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct sink *sink = (struct sink *)self;

	sink->begin_ns = run->begin_ns;
	sink->realtime_offset_ns = run->realtime_offset_ns;
	sink->gpu_times = run->gpu_times;
	work_begin(sink->work, run);
	if (sink->format->begin && failed(sink, sink->format->begin(self, run, err), err))
		return sink->lines.failure.code;
	return lines_flush(&sink->lines, err);
}

static int sink_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct sink *sink = (struct sink *)self;
	bool aside = event->type == EVENT_METRICS || event->type == EVENT_STALL;

	if (lines_full(&sink->lines)) /* what is there gets its end */
		return lines_say_full(&sink->lines, err);
	if ((event->type == EVENT_METRICS && !sink->format->metrics) ||
	    (event->type == EVENT_STALL && !sink->format->stalls))
		return 0;
	if (sink->joins && !aside && !sink->options.work)
		work_feed(sink->work, event);
	sink->wanted = sink_wants(sink, event);
	if (failed(sink, sink->format->event(self, event, err), err))
		return sink->lines.failure.code;
	if (sink->wanted) {
		sink_count(sink, event);
		stack_counts_event(&sink->stacks, event);
	}
	return lines_added(&sink->lines, err);
}

static int sink_flush(struct consumer *self, struct err *err)
{
	return lines_flush(&((struct sink *)self)->lines, err);
}

static int sink_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct sink *sink = (struct sink *)self;
	struct run_info told = *run;

	told.output_full = lines_full(&sink->lines);
	if (sink->joins && !sink->joined)
		sink->unjoined += work_unjoined(sink->work);
	if (sink->format->end)
		failed(sink, sink->format->end(self, &told, err), err);
	sink->ended = !lines_end(&sink->lines, err);
	return sink->lines.failure.code;
}

static void sink_free(struct consumer *self)
{
	struct sink *sink = (struct sink *)self;

	lines_free(&sink->lines);
	correlations_free(sink->joined);
	work_free(sink->work);
	sink->format->free(self);
}

static const struct consumer_ops sink_ops = {
	.metrics = true,
	.stalls = true,
	.begin = sink_begin,
	.event = sink_event,
	.flush = sink_flush,
	.end = sink_end,
	.free = sink_free,
};

struct consumer *sink_init(struct sink *sink, const struct consumer_ops *format,
                           const struct sink_options *options)
{
	sink->consumer.ops = &sink_ops;
	sink->format = format;
	sink->options = *options;
	sink->work = work_share(options->work);
	lines_init(&sink->lines, options->out, "the trace");
	sink->lines.ends_itself = true;
	if (options->path && ends_with(options->path, ".gz"))
		lines_compress(&sink->lines);
	return &sink->consumer;
}

void sink_add_time(const struct sink *sink, struct buf *out, uint64_t time_ns, unsigned decimals)
{
	bool before = time_ns < sink->begin_ns; /* a call that was under way when the trace began */
	uint64_t ns = before ? sink->begin_ns - time_ns : time_ns - sink->begin_ns;

	for (unsigned digits = 6; digits > decimals; digits--)
		ns = (ns + (digits - 1 == decimals ? 5 : 0)) / 10;
	if (before)
		buf_putc(out, '-');
	buf_fixed(out, ns, decimals);
}
