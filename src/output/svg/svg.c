// SPDX-License-Identifier: MIT
/*
 * Memory over time as a picture (memory_plot.h), of a whole trace: drawn when it ends. No filter of
 * single calls applies: a picture of some of the memory would be wrong.
 */
#include "output/svg/svg.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analysis/memory.h"
#include "analysis/missed.h"
#include "base/array.h"
#include "base/buf.h"
#include "base/xalloc.h"
#include "output/format.h"
#include "output/svg/memory_plot.h"

struct svg {
	struct sink sink; /* first */
	struct memory *memory;
	struct memory_plot *plot;
};

static void follow(void *data, const struct memory_change *change)
{
	const struct memory_allocation *a = change->allocation;
	struct svg *svg = data;

	if (a->kind != MEMORY_VMM_VA) /* address space, no memory */
		memory_plot_sample(svg->plot, change->time_ns, a->process, a->kind,
		                   change->live_bytes);
}

static int svg_begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct svg *svg = (struct svg *)self;

	svg->plot = memory_plot_new(run->begin_ns);
	memory_tell_changes(svg->memory, follow, svg);
	return 0;
}

static bool is_failed_allocation(const struct event *event)
{
	return event->type == EVENT_CALL && event->call->op == OP_ALLOC &&
	       (event->call->flags & (CALL_FAILED | CALL_NESTED)) == CALL_FAILED;
}

static int svg_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct svg *svg = (struct svg *)self;

	if (sink_is_over(&svg->sink, event))
		return 0;
	memory_event(svg->memory, event);
	if (is_failed_allocation(event))
		memory_plot_failure(svg->plot, event->time_ns, event->process,
		                    api_memory(event->call->function->api),
		                    event->call->args.bytes);
	return 0;
}

/* "python train.py, on gpu1, 2026-11-20 12:27:41" */
static void add_subject(struct buf *out, const struct run_info *run)
{
	time_t seconds = ((int64_t)run->begin_ns + run->realtime_offset_ns) / 1000000000;
	char text[40];
	struct tm tm;

	if (run->command)
		buf_printf(out, "%s, ", run->command);
	if (run->hostname)
		buf_printf(out, "on %s, ", run->hostname);
	strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", localtime_r(&seconds, &tm));
	buf_puts(out, text);
}

static void add_note(struct buf *out, const struct run_info *run, uint64_t unknown)
{
	if (run->cut_short)
		buf_puts(out, "The trace was cut short. ");
	if (run->damaged_chunks)
		buf_printf(out, "The file is damaged: at least %llu events were left out. ",
		           (unsigned long long)run->damaged_events);
	if (!run->returns)
		buf_puts(out, "Returns were not recorded: addresses and failures are not known. ");
	if (missed_brief(out, run))
		buf_puts(out, " while it was recorded. ");
	if (unknown)
		buf_printf(out, "%llu freed memory whose allocation was not recorded. ",
		           (unsigned long long)unknown);
}

static int svg_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct svg *svg = (struct svg *)self;
	struct memory_plot_frame frame = { .end_ns = run->end_ns };
	AT_END(buf_free) struct buf subject = { 0 }, note = { 0 };

	add_subject(&subject, run);
	add_note(&note, run, memory_unknown_frees(svg->memory));
	frame.subject = subject.data;
	frame.note = note.data;
	memory_plot_draw(svg->plot, &frame, &svg->sink.lines.pending);
	return 0;
}

static void svg_free(struct consumer *self)
{
	struct svg *svg = (struct svg *)self;

	memory_free(svg->memory);
	memory_plot_free(svg->plot);
	free(svg);
}

static const struct consumer_ops svg_ops = {
	.begin = svg_begin,
	.event = svg_event,
	.end = svg_end,
	.free = svg_free,
};

struct consumer *svg_new(const struct sink_options *options)
{
	struct svg *svg = xcalloc(1, sizeof(*svg));

	svg->memory = memory_new();
	return sink_init(&svg->sink, &svg_ops, options);
}

#define SECOND 1000000000ull
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

struct axis_unit {
	uint64_t size;
	const char *name;
};

uint64_t axis_step_bytes(uint64_t most, unsigned marks)
{
	uint64_t step = 1;

	while (most / step >= marks && step < 1ull << 62)
		step *= 2;
	return step;
}

/* Above a second: what clocks count in. */
static uint64_t step_of_clock(uint64_t most, unsigned marks)
{
	static const uint64_t steps[] = {
		SECOND,      2 * SECOND,  5 * SECOND, 10 * SECOND, 15 * SECOND,
		30 * SECOND, MINUTE,      2 * MINUTE, 5 * MINUTE,  10 * MINUTE,
		15 * MINUTE, 30 * MINUTE, HOUR,       2 * HOUR,    3 * HOUR,
		6 * HOUR,    12 * HOUR,   DAY,        2 * DAY,     7 * DAY,
	};
	size_t n = ARRAY_SIZE(steps);
	uint64_t step;

	for (size_t i = 0; i < n; i++) {
		if (most / steps[i] < marks)
			return steps[i];
	}
	for (step = steps[n - 1]; most / step >= marks && step < 1ull << 62;)
		step *= 2;
	return step;
}

uint64_t axis_step_ns(uint64_t most, unsigned marks)
{
	for (uint64_t step = 1; step < SECOND; step *= 10) {
		if (most / step < marks)
			return step;
		if (most / (2 * step) < marks)
			return 2 * step;
		if (most / (5 * step) < marks)
			return 5 * step;
	}
	return step_of_clock(most, marks);
}

/* Without the zeros at its end that say nothing. */
static void add_decimal(struct buf *out, double value, unsigned decimals)
{
	char text[48];
	size_t len = (size_t)snprintf(text, sizeof(text), "%.*f", (int)decimals, value);

	while (decimals && text[len - 1] == '0')
		len--;
	if (text[len - 1] == '.')
		len--;
	buf_add(out, text, len);
}

/* In the largest unit that is not larger than the value, exact to `exact`; 0: two decimals. */
static void add_in_units(struct buf *out, uint64_t value, uint64_t exact,
                         const struct axis_unit *units)
{
	const struct axis_unit *unit = units;
	unsigned decimals = exact ? 0 : 2;

	while (unit[1].name && value >= unit[1].size)
		unit++;
	for (uint64_t size = unit->size; exact && size > exact; size /= 10)
		decimals++;
	add_decimal(out, (double)value / (double)unit->size, decimals);
	buf_puts(out, unit->name);
}

void axis_add_bytes(struct buf *out, uint64_t bytes)
{
	static const struct axis_unit units[] = {
		{ 1, " B" },
		{ 1ull << 10, " KiB" },
		{ 1ull << 20, " MiB" },
		{ 1ull << 30, " GiB" },
		{ 1ull << 40, " TiB" },
		{ 1ull << 50, " PiB" },
		{ 0, NULL },
	};

	add_in_units(out, bytes, 0, units);
}

/* "1 h 10 min", "2 min 30 s": two units, since these are no tens of each other. */
static void add_two_units(struct buf *out, uint64_t ns)
{
	static const struct axis_unit units[] = {
		{ DAY, " d" },
		{ HOUR, " h" },
		{ MINUTE, " min" },
		{ SECOND, " s" },
	};
	const struct axis_unit *unit = units;

	while (ns < unit->size)
		unit++;
	ns += unit[1].size / 2; /* which can make it one of the unit before */
	if (unit > units && ns >= unit[-1].size)
		unit--;
	buf_u64(out, ns / unit->size);
	buf_puts(out, unit->name);
	ns = ns % unit->size / unit[1].size;
	if (!ns)
		return;
	buf_putc(out, ' ');
	buf_u64(out, ns);
	buf_puts(out, unit[1].name);
}

/* "1:23:20.5", "2:30": hours, minutes and seconds. */
static void add_clock(struct buf *out, uint64_t ns, uint64_t exact)
{
	unsigned decimals = 0;

	for (uint64_t size = SECOND; size > exact; size /= 10)
		decimals++;
	if (ns >= HOUR)
		buf_printf(out, "%llu:", (unsigned long long)(ns / HOUR));
	buf_printf(out, ns >= HOUR ? "%02u:" : "%u:", (unsigned)(ns % HOUR / MINUTE));
	if (ns % MINUTE < 10 * SECOND)
		buf_putc(out, '0');
	add_decimal(out, (double)(ns % MINUTE) / (double)SECOND, decimals);
}

void axis_add_ns(struct buf *out, uint64_t ns, uint64_t exact)
{
	static const struct axis_unit units[] = {
		{ 1, " ns" }, { 1000, " us" }, { 1000000, " ms" }, { SECOND, " s" }, { 0, NULL },
	};

	if (!ns)
		buf_putc(out, '0');
	else if (ns < MINUTE)
		add_in_units(out, ns, exact, units);
	else if (!exact || exact >= MINUTE)
		add_two_units(out, ns);
	else
		add_clock(out, ns, exact);
}
