/* SPDX-License-Identifier: MIT */
/*
 * What formats share. A format is a consumer that begins with a struct sink and turns events into
 * whole lines or packets. sink.c stands in front of it: it joins calls and work, says which events
 * the filters let through, writes what the format has appended, and counts. Private to src/output.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/stack_counts.h"
#include "base/buf.h"
#include "base/lines.h"
#include "output/sink.h"
#include "trace/event.h"

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

	/* Calls and work: sink_scout(), and where that is not asked work_now(work), for each event.
	 */
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
struct consumer *parquet_new(const struct sink_options *options);
struct consumer *chrome_new(const struct sink_options *options);
struct consumer *perfetto_new(const struct sink_options *options);
struct consumer *page_new(const struct sink_options *options); /* src/page, which knows reports */

/*
 * Text by id, made when an id is first seen: what the lines of a process, a function or a kernel
 * have in common. Private to src/output.
 */

/* Zeroed: empty. */
struct fragments {
	struct buf *text;
	size_t n;
};

/* The text of `id`, empty where it still has to be made. Until the next call. */
struct buf *fragment(struct fragments *fragments, uint32_t id);

void fragments_free(struct fragments *fragments);

/*
 * How long work waited for the GPU: from the end of the call that asked for it to its begin, as
 * cuda_kern_exec reckons it. What began before its call had returned did not wait. Known where the
 * sink's window knows the call: the format sets sink->joins. Private to src/output.
 */

struct delay {
	bool queued; /* it waited */
	uint64_t queue_ns;
	uint64_t early_ns; /* it seems to have begun before its call: the clocks differ */
	uint32_t tid;      /* of the thread that asked for it; 0: not known */
};

/* Of the EVENT_ACTIVITY that is under way; of a wait (EVENT_RANGE) the thread only. */
struct delay delay_of(const struct sink *sink, const struct event *event);

/* Which device a context is of: activities say it, waits do not. Private to src/output. */

struct contexts;

struct contexts *contexts_new(void);
void contexts_free(struct contexts *contexts);

void contexts_note(struct contexts *contexts, const struct process *process,
                   const struct activity *activity);

/* False where no activity of that context was noted. */
bool contexts_device(const struct contexts *contexts, const struct process *process,
                     uint32_t context, uint32_t *device);

/* One decoded argument of a call as text: the words that the formats share. Private
 * to src/output. */

/* Arguments that a call has, and their names and types. */
size_t call_args(const struct call *call, const struct api_arg **args);

/* Whether an argument's value is known: outputs are not before the end, nor after a failure. */
bool call_has_output(const struct call *call);

/* "0" for the default stream, "legacy", "per-thread", else the handle. */
void add_stream(struct buf *out, const struct call *call, uint64_t stream);

/* Whether call->args.stream is one: not that of a stream whose creation failed. */
bool call_has_stream(const struct call *call);

/* "(196,1,1)" */
void add_dims(struct buf *out, const uint32_t dims[3]);

/* As a person reads it: sizes with units, handles in hexadecimal, strings in quotes. */
void add_arg(struct buf *out, const struct call *call, const struct api_arg *args, size_t i);

/* A plain number as every output has it. False: the type is none, and nothing was added. */
bool add_arg_number(struct buf *out, enum api_type type, uint64_t value);

/* A value of this type as JSON: numbers, handles and addresses as "0x1f", texts as they are. */
void add_arg_json(struct buf *out, const struct call *call, enum api_type type, uint64_t value);

/* "[196,1,1]" */
void add_dims_json(struct buf *out, const uint32_t dims[3]);

/* The value of a T_FLOAT, whose bits are in the low half of the word. */
float arg_float(uint64_t word);

/* "cudaErrorMemoryAllocation (2)", "error 12345 (12345)" */
void add_result(struct buf *out, const struct call *call);
