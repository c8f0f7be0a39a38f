/* SPDX-License-Identifier: MIT */
/*
 * What formats share. A format is a consumer that begins with a struct sink and turns events into
 * whole lines or packets. sink.c stands in front of it: it joins calls and work, says which events
 * the filters let through, writes what the format has appended, and counts. Private to src/output.
 */
#ifndef CUSCOPE_OUTPUT_FORMAT_H
#define CUSCOPE_OUTPUT_FORMAT_H

#include "analysis/stack_counts.h"
#include "base/lines.h"
#include "output/sink.h"

/* The first member of every format's own struct. */
struct sink {
	struct consumer consumer; /* first: what callers hold */
	/* The format's. It appends whole lines (or packets, where lines.binary is set) to
	 * lines.pending; a failure of another kind than writing ends the trace. */
	const struct consumer_ops *format;
	bool wanted; /* by the filters: the event that the format is given, which gets all */
	struct sink_options options;
	bool hide_nested;
	bool ended;     /* what was written is all of it */
	bool gpu;       /* the format shows threads' names, activities and ranges, too */
	bool samples;   /* the format shows samples of stacks */
	bool gpu_times; /* the run says that there are activities */
	struct lines lines;
	uint64_t begin_ns; /* of the trace */
	int64_t realtime_offset_ns;
	uint64_t calls;             /* written */
	uint64_t counted;           /* of them: see event_is_counted() */
	uint64_t last_ns;           /* the end of the last of these */
	struct stack_counts stacks; /* of what was written */

	/* Calls and work: scout.c, and where that is not asked work_now(work), for each event. */
	struct work *work;
	bool joins;                                     /* the format asks for it */
	bool (*asks_for_work)(const struct call *call); /* NULL: the format need not know */
	/* Which calls have work, and which work has its call; NULL: not known beforehand. */
	struct correlations *joined;
	struct consumer scout;
	void (*look_ahead)(struct sink *sink, const struct event *event); /* of it; NULL: none */
	uint64_t unjoined; /* left for want of room */
};

/* Whether it is after all that --max-events lets through; sink_wants() asks it first. */
bool sink_is_over(const struct sink *sink, const struct event *event);

/* Whether the filters let it through. */
bool sink_wants(const struct sink *sink, const struct event *event);

/* Counts a call that was written, or will be. */
void sink_count(struct sink *sink, const struct event *event);

/* Prepares a zeroed sink; returns what create() returns. */
struct consumer *sink_init(struct sink *sink, const struct consumer_ops *format,
                           const struct sink_options *options);

/*
 * Whether B lines wait for their calls' ends: a filter that only the end can answer is on, and a
 * format that writes pairs has to write both lines then.
 */
bool sink_begins_late(const struct sink_options *options);

/* Appends a time relative to the trace's begin, in ms. */
void sink_add_time(const struct sink *sink, struct buf *out, uint64_t time_ns, unsigned decimals);

struct consumer *table_new(const struct sink_options *options);
struct consumer *jsonl_new(const struct sink_options *options);
struct consumer *log_new(const struct sink_options *options);
struct consumer *csv_new(const struct sink_options *options);
struct consumer *svg_new(const struct sink_options *options);
struct consumer *sqlite_new(const struct sink_options *options);
struct consumer *chrome_new(const struct sink_options *options);
struct consumer *perfetto_new(const struct sink_options *options);

#endif
