// SPDX-License-Identifier: MIT
/*
 * Memory over time as a picture (memory_plot.h), of a whole trace: drawn when it ends. No filter of
 * single calls applies: a picture of some of the memory would be wrong.
 */
#include <stdlib.h>
#include <time.h>

#include "analysis/memory.h"
#include "analysis/missed.h"
#include "base/buf.h"
#include "base/xalloc.h"
#include "output/format.h"
#include "output/svg/memory_plot.h"

struct svg {
	struct sink sink; /* first */
	struct memory *memory;
	struct memory_plot *plot;
};

static struct svg *svg_of(struct consumer *self)
{
	return (struct svg *)self;
}

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
	struct svg *svg = svg_of(self);

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
	struct svg *svg = svg_of(self);

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
	struct svg *svg = svg_of(self);
	struct memory_plot_frame frame = { .end_ns = run->end_ns };
	struct buf subject = { 0 }, note = { 0 };

	add_subject(&subject, run);
	add_note(&note, run, memory_unknown_frees(svg->memory));
	frame.subject = subject.data;
	frame.note = note.data;
	memory_plot_draw(svg->plot, &frame, &svg->sink.lines.pending);
	buf_free(&subject);
	buf_free(&note);
	return 0;
}

static void svg_free(struct consumer *self)
{
	struct svg *svg = svg_of(self);

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
