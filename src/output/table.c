// SPDX-License-Identifier: MIT
/*
 * The table for people:
 *
 *   TIME(ms) PROCESS       PID    TID  EVENT             DURATION  DETAILS
 *      0.412 vectorAdd    4242   4242  cudaMalloc        101.2 us  size=1.00 MiB -> 0x7f12c0000000
 *      0.530 vectorAdd    4242   4242  [kernel]           12.1 us  vectorAdd(..) GPU 0 stream 7
 *
 * Columns start narrow and widen when something needs it, so that they stay aligned from there on
 * and a terminal's width is left to the details.
 */
#include <stdlib.h>
#include <string.h>

#include "analysis/missed.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "output/format.h"
#include "output/describe.h"

#define TIME_COLUMNS     10
#define DURATION_COLUMNS 10
#define EVENT_COLUMNS    22 /* at first: cudaDeviceSynchronize fits */
#define EVENT_MOST       44
#define PROCESS_MOST     24 /* 15 characters, and some escapes */
#define PID_COLUMNS      6  /* at first */
#define DETAILS_LEAST    24 /* where a terminal leaves less, the line goes on in the next one */
#define SUBJECT_LEAST    20
#define INDENT           8  /* at least as much as what goes on in a next line stands in */
#define DEPTH_MOST       16 /* levels of nested calls that stand further in */

#define STYLE_OFF    "\033[0m"
#define STYLE_BOLD   "\033[1m"
#define STYLE_DIM    "\033[2m"
#define STYLE_RED    "\033[1;31m"
#define STYLE_YELLOW "\033[33m"

struct text_table {
	struct sink sink; /* first */
	bool headed;
	size_t process_columns, pid_columns, tid_columns, event_columns;
	struct buf cell; /* scratch */
	struct description details;
};

/* Colours tell what matters at a glance: work for the GPU, data on the way, waiting. */
static const char *const class_style[CLASS_COUNT] = {
	[CLASS_LAUNCH] = "\033[32m",
	[CLASS_MEMORY] = "\033[36m",
	[CLASS_TRANSFER] = "\033[34m",
	[CLASS_SYNC] = STYLE_YELLOW,
};

static void style(struct text_table *table, const char *code)
{
	if (table->sink.options.color && code)
		buf_puts(&table->sink.lines.pending, code);
}

/* ---- cells --------------------------------------------------------------------------------- */

static size_t widen(size_t *columns, size_t want, size_t most)
{
	if (want > *columns)
		*columns = want < most ? want : most;
	return *columns;
}

/* The scratch cell, padded on the left or the right; returns the columns it took. */
static size_t add_cell(struct text_table *table, size_t columns, bool left, const char *code)
{
	struct buf *out = &table->sink.lines.pending;
	size_t used = text_columns(table->cell.data);
	size_t blanks = used < columns ? columns - used : 0;

	buf_fill(out, ' ', left ? 0 : blanks);
	style(table, code);
	buf_add(out, table->cell.data, table->cell.len);
	if (code)
		style(table, STYLE_OFF);
	buf_fill(out, ' ', left ? blanks : 0);
	buf_reset(&table->cell);
	return used + blanks;
}

static size_t add_number_cell(struct text_table *table, size_t *columns, uint32_t number)
{
	buf_u64(&table->cell, number);
	widen(columns, table->cell.len, table->cell.len);
	return add_cell(table, *columns, false, NULL);
}

/* "-" where no thread asked for it that is known. */
static size_t add_tid_cell(struct text_table *table, uint32_t tid)
{
	if (tid)
		return add_number_cell(table, &table->tid_columns, tid);
	buf_putc(&table->cell, '-');
	return add_cell(table, table->tid_columns, false, NULL);
}

static void add_duration(struct text_table *table, const struct call *call)
{
	const char *code = NULL;

	if (call->flags & CALL_UNFINISHED) {
		buf_puts(&table->cell, "unfinished");
		code = STYLE_YELLOW;
	} else if (call->flags & CALL_NO_RETURN) {
		buf_putc(&table->cell, '-');
	} else {
		buf_duration(&table->cell, call_duration_ns(call));
	}
	add_cell(table, DURATION_COLUMNS, false, code);
}

/* ---- details ------------------------------------------------------------------------------- */

static size_t columns_of(const struct buf *text)
{
	return text->len ? text_columns(text->data) : 0;
}

/* Room for one part when `others` columns are taken by the rest of the line. */
static size_t room_beside(size_t room, size_t others, size_t least)
{
	return room > others + least ? room - others : least;
}

static void add_part(struct text_table *table, const struct buf *part, bool after, const char *code)
{
	struct buf *out = &table->sink.lines.pending;

	if (!part->len)
		return;
	if (after)
		buf_putc(out, ' ');
	style(table, code);
	buf_add(out, part->data, part->len);
	if (code)
		style(table, STYLE_OFF);
}

/*
 * Makes the details fit: first a kernel's name gives way, then the end of the words; the result
 * stays, since a failure is what a reader looks for.
 */
static void fit(struct text_table *table, size_t room)
{
	struct description *d = &table->details;
	size_t result = d->result.len ? columns_of(&d->result) + 1 : 0;
	size_t words = d->words.len ? columns_of(&d->words) + 1 : 0;

	if (d->subject.len && columns_of(&d->subject) + words + result > room) {
		text_add_name(&table->cell, d->subject.data,
		              room_beside(room, words + result, SUBJECT_LEAST));
		buf_reset(&d->subject);
		buf_add(&d->subject, table->cell.data, table->cell.len);
		buf_reset(&table->cell);
	}
	if (d->words.len && columns_of(&d->subject) + words + result > room) {
		text_add_cut(&table->cell, d->words.data,
		             room_beside(room, columns_of(&d->subject) + 1 + result, 3));
		buf_reset(&d->words);
		buf_add(&d->words, table->cell.data, table->cell.len);
		buf_reset(&table->cell);
	}
}

/* The line is going to be wrapped between words, and no word of a name is to be too wide
 * for that. */
static void fit_narrow(struct text_table *table, size_t width)
{
	struct description *d = &table->details;
	size_t line = room_beside(width, INDENT, SUBJECT_LEAST);
	size_t others = columns_of(&d->words) + columns_of(&d->result) + 2;
	size_t room = room_beside(2 * line, others, SUBJECT_LEAST); /* in two more lines */

	if (!d->subject.len)
		return;
	text_add_name(&table->cell, d->subject.data, room < line ? room : line);
	buf_reset(&d->subject);
	buf_add(&d->subject, table->cell.data, table->cell.len);
	buf_reset(&table->cell);
}

static void add_details(struct text_table *table, bool failed, size_t used)
{
	struct description *d = &table->details;
	size_t width = table->sink.options.width;

	if (width && width < used + DETAILS_LEAST)
		fit_narrow(table, width);
	else if (width)
		fit(table, width - used);
	add_part(table, &d->subject, false, NULL);
	add_part(table, &d->words, d->subject.len, NULL);
	add_part(table, &d->result, d->subject.len || d->words.len, failed ? STYLE_RED : NULL);
}

/* ---- lines --------------------------------------------------------------------------------- */

static void add_header(struct text_table *table)
{
	struct buf *out = &table->sink.lines.pending;

	style(table, STYLE_BOLD);
	buf_printf(out, "%*s  %-*s %*s %*s  %-*s %*s  DETAILS", TIME_COLUMNS, "TIME(ms)",
	           (int)table->process_columns, "PROCESS", (int)table->pid_columns, "PID",
	           (int)table->tid_columns, "TID", (int)table->event_columns, "EVENT",
	           DURATION_COLUMNS, "DURATION");
	style(table, STYLE_OFF);
	buf_putc(out, '\n');
	table->headed = true;
}

/* The first process decides how wide its columns begin, so the header waits for it. */
static void prepare(struct text_table *table, const struct event *event)
{
	text_add_safe(&table->cell, event->process->comm);
	widen(&table->process_columns, text_columns(table->cell.data), PROCESS_MOST);
	buf_reset(&table->cell);
	if (!table->headed)
		add_header(table);
}

/* Up to the event; returns the columns that are taken by then, with those that come. */
static size_t begin_line(struct text_table *table, const struct event *event, uint64_t begin_ns,
                         uint32_t tid)
{
	struct buf *out = &table->sink.lines.pending;
	size_t used = 9; /* the blanks between columns */

	sink_add_time(&table->sink, &table->cell, begin_ns, 3);
	used += add_cell(table, TIME_COLUMNS, false, NULL);
	buf_puts(out, "  ");
	text_add_safe(&table->cell, event->process->comm);
	used += add_cell(table, table->process_columns, true, NULL);
	buf_putc(out, ' ');
	used += add_number_cell(table, &table->pid_columns, event->process->pid);
	buf_putc(out, ' ');
	used += add_tid_cell(table, tid);
	buf_puts(out, "  ");
	return used;
}

static void end_line(struct buf *out)
{
	while (out->data[out->len - 1] == ' ')
		out->len--;
	buf_putc(out, '\n');
}

/* A damaged file can say any depth. */
static size_t indent(uint32_t depth)
{
	return 2 * (size_t)(depth < DEPTH_MOST ? depth : DEPTH_MOST);
}

static void add_call(struct text_table *table, const struct event *event)
{
	struct buf *out = &table->sink.lines.pending;
	const struct call *call = event->call;
	bool nested = call->flags & CALL_NESTED || !call_is_cuda(call);
	size_t used = begin_line(table, event, call->begin_ns, event->tid);

	buf_fill(&table->cell, ' ', nested ? indent(call->depth) : 0);
	text_add_safe(&table->cell, call->function->name);
	widen(&table->event_columns, text_columns(table->cell.data), EVENT_MOST);
	used += add_cell(table, table->event_columns, true,
	                 nested ? STYLE_DIM : class_style[call->function->cls]);
	buf_putc(out, ' ');
	add_duration(table, call);
	used += DURATION_COLUMNS;
	buf_puts(out, "  ");
	describe(call, &table->details);
	add_details(table, call->flags & CALL_FAILED, used);
	end_line(out);
}

/* What is no call stands in brackets. */
static void add_other(struct text_table *table, const char *name, uint64_t duration_ns, size_t used)
{
	struct buf *out = &table->sink.lines.pending;

	buf_printf(&table->cell, "[%s]", name);
	used += add_cell(table, table->event_columns, true, STYLE_DIM);
	buf_putc(out, ' ');
	buf_duration(&table->cell, duration_ns);
	used += add_cell(table, DURATION_COLUMNS, false, NULL);
	buf_puts(out, "  ");
	add_details(table, false, used);
	end_line(out);
}

static void add_activity(struct text_table *table, const struct event *event)
{
	const struct activity *activity = event->activity;
	struct delay delay = delay_of(&table->sink, event);
	size_t used = begin_line(table, event, activity->begin_ns, delay.tid);

	describe_activity(activity, &delay, &table->details);
	add_other(table, activity_words[activity->kind].plain, activity_duration_ns(activity),
	          used);
}

static void add_range(struct text_table *table, const struct event *event)
{
	const struct range *range = event->range;
	struct delay delay = delay_of(&table->sink, event);
	size_t used = begin_line(table, event, range->begin_ns, delay.tid);

	describe_range(range, &table->details);
	add_other(table, range_words[range->kind].plain, range_duration_ns(range), used);
}

static void add_wait(struct text_table *table, const struct event *event)
{
	const struct sample *sample = event->sample;
	uint64_t begin_ns =
		event->time_ns > sample->weight_ns ? event->time_ns - sample->weight_ns : 0;
	size_t used = begin_line(table, event, begin_ns, event->tid);

	describe_wait(sample, &table->details);
	add_other(table, "off cpu", sample->weight_ns, used);
}

/* ---- the format ---------------------------------------------------------------------------- */

/* Of samples those that say what a thread waited for, and when. */
static bool has_line(const struct sink *sink, const struct event *event)
{
	enum event_type type = event->type;

	if (type == EVENT_SAMPLE)
		return event->sample->wait && sample_is_stretch(event->sample) &&
		       event->sample->weight_ns >= sink->options.min_duration_ns;
	return type == EVENT_CALL || type == EVENT_OTHER_CALL || type == EVENT_ACTIVITY ||
	       type == EVENT_RANGE;
}

static int table_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct text_table *table = (struct text_table *)self;
	struct sink *sink = &table->sink;
	size_t from;

	if (!sink->wanted || !has_line(sink, event))
		return 0;
	from = sink->lines.pending.len;
	prepare(table, event);
	if (event->call)
		add_call(table, event);
	else if (event->type == EVENT_ACTIVITY)
		add_activity(table, event);
	else if (event->type == EVENT_SAMPLE)
		add_wait(table, event);
	else
		add_range(table, event);
	text_wrap_lines(&sink->lines.pending, from, sink->options.width);
	return 0;
}

static int table_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	AT_END(buf_free) struct buf why = { 0 };

	if (!((struct text_table *)self)->headed)
		add_header((struct text_table *)self);
	if (missed_of_file(run, &why))
		buf_printf(&((struct text_table *)self)->sink.lines.pending, "not all: %s\n",
		           why.data);
	return 0;
}

static void table_free(struct consumer *self)
{
	struct text_table *table = (struct text_table *)self;

	description_free(&table->details);
	buf_free(&table->cell);
	free(table);
}

static const struct consumer_ops table_ops = {
	.event = table_event,
	.end = table_end,
	.free = table_free,
};

struct consumer *table_new(const struct sink_options *options)
{
	struct text_table *table = xcalloc(1, sizeof(*table));

	table->process_columns = strlen("PROCESS");
	table->pid_columns = table->tid_columns = PID_COLUMNS;
	table->event_columns = EVENT_COLUMNS;
	table->sink.samples = true;
	buf_puts(&table->cell, ""); /* never NULL from here on */
	table->sink.joins = true;
	table->sink.gpu = true;
	table->sink.hide_nested = !options->verbose;
	return sink_init(&table->sink, &table_ops, options);
}
