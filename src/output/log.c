// SPDX-License-Identifier: MIT
/*
 * Lines of the form that ebpf_cuda_monitoring's logfile.txt has, for programs that read it:
 *
 *   2024-06-20 15:39:15,040 - [cuMemAlloc_v2] pid: 1, tid: 1, time_start: 12, time_end: 34,
 *   devPtr: 0x7f0, size: 64, result: CUDA_SUCCESS (0)
 *
 * (on one line). What that program read wrongly is right here: block dimensions, shared memory
 * and milliseconds. New are the kernel's name and the result, at the end, and lines about what ran
 * on the GPU and about ranges, which have a word in place of a function.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analysis/missed.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "output/describe.h"
#include "output/format.h"

struct log {
	struct sink sink; /* first */
	time_t second;    /* that `stamp` is of */
	char stamp[32];   /* "2024-06-20 15:39:15" in local time */
};

static void add_wall_time(struct log *log, struct buf *out, uint64_t time_ns)
{
	/* a damaged file may say any time: without a sign nothing overflows */
	uint64_t wall_ns = time_ns + (uint64_t)log->sink.realtime_offset_ns;
	time_t second = (time_t)(wall_ns / 1000000000);
	unsigned ms = (unsigned)(wall_ns / 1000000 % 1000);
	struct tm tm;

	if (second != log->second || !log->stamp[0]) {
		localtime_r(&second, &tm);
		strftime(log->stamp, sizeof(log->stamp), "%Y-%m-%d %H:%M:%S", &tm);
		log->second = second;
	}
	buf_puts(out, log->stamp);
	buf_putc(out, ',');
	buf_putc(out, (char)('0' + ms / 100));
	buf_putc(out, (char)('0' + ms / 10 % 10));
	buf_putc(out, (char)('0' + ms % 10));
}

static void add_u64(struct buf *out, const char *label, uint64_t value)
{
	buf_puts(out, ", ");
	buf_puts(out, label);
	buf_puts(out, ": ");
	buf_u64(out, value);
}

/* "gridDimX: 1, gridDimY: 40, gridDimZ: 8", whatever the prototype calls them. */
static void add_dims_xyz(struct buf *out, const char *what, const uint32_t dims[3])
{
	char label[] = "blockDimX";

	for (int i = 0; i < 3; i++) {
		snprintf(label, sizeof(label), "%sDim%c", what, 'X' + i);
		add_u64(out, label, dims[i]);
	}
}

/* Handles in hexadecimal, but the default stream 0 as that program wrote it. */
static void add_value(struct buf *out, const struct call *call, enum api_type type, uint64_t value)
{
	if (add_arg_number(out, type, value))
		return;
	switch (type) {
	case T_STREAM:
		if (value)
			buf_hex(out, value);
		else
			buf_putc(out, '0');
		break;
	case T_STRING:
		if (call->text) {
			buf_putc(out, '"');
			text_add_safe(out, call->text);
			buf_putc(out, '"');
			break;
		}
		/* fall through */
	default:
		buf_hex(out, value);
		break;
	}
}

static void add_args(struct buf *out, const struct call *call)
{
	const struct api_arg *args;
	size_t n = call_args(call, &args);

	for (size_t i = 0; i < n; i++) {
		if (args[i].type == T_GRID || args[i].type == T_BLOCK) {
			bool grid = args[i].type == T_GRID;

			add_dims_xyz(out, grid ? "grid" : "block",
			             grid ? call->args.grid : call->args.block);
			continue;
		}
		buf_puts(out, ", ");
		text_add_safe(out, args[i].name);
		buf_puts(out, ": ");
		add_value(out, call, args[i].type, call->args.arg[i]);
	}
}

static void add_outcome(struct buf *out, const struct call *call)
{
	if (call->kernel) {
		AT_END(buf_free) struct buf shown = { 0 };

		buf_puts(&shown, "");
		kernel_add_shown(call->kernel, &shown);
		buf_puts(out, ", kernel: ");
		text_add_safe(out, shown.data);
	}
	if (call->flags & CALL_CAPTURED)
		buf_puts(out, ", captured: true");
	if (call->flags & CALL_UNFINISHED) {
		buf_puts(out, ", result: unfinished");
	} else if (!(call->flags & CALL_NO_RETURN)) {
		buf_puts(out, ", result: ");
		add_result(out, call);
	}
}

/* ---- what is no call ------------------------------------------------------------------------- */

static void add_text(struct buf *out, const char *label, const char *text)
{
	buf_puts(out, ", ");
	buf_puts(out, label);
	buf_puts(out, ": ");
	text_add_safe(out, text);
}

static void begin_other(struct log *log, const struct event *event, const char *group,
                        const char *word, uint32_t tid, uint64_t begin_ns, uint64_t end_ns)
{
	struct buf *out = &log->sink.lines.pending;

	add_wall_time(log, out, event->time_ns);
	buf_puts(out, " - [");
	buf_puts(out, group);
	buf_puts(out, word);
	buf_puts(out, "] pid: ");
	buf_u64(out, event->process->pid);
	add_u64(out, "tid", tid);
	add_u64(out, "time_start", begin_ns);
	add_u64(out, "time_end", end_ns);
}

static void add_activity(struct log *log, const struct event *event)
{
	const struct activity *a = event->activity;
	struct delay delay = delay_of(&log->sink, event);
	struct buf *out = &log->sink.lines.pending;

	begin_other(log, event, "gpu ", activity_words[a->kind].plain, delay.tid, a->begin_ns,
	            a->end_ns);
	add_u64(out, "device", a->device);
	add_u64(out, "context", a->context);
	add_u64(out, "stream", a->stream);
	if (delay.queued)
		add_u64(out, "queued", delay.queue_ns);
	if (a->graph)
		add_u64(out, "graph", a->graph);
	if (a->graph_node)
		add_u64(out, "node", a->graph_node);
	if (a->kind == ACTIVITY_KERNEL) {
		AT_END(buf_free) struct buf name = { 0 };

		buf_puts(&name, "");
		activity_name(a, &name);
		add_dims_xyz(out, "grid", a->grid);
		add_dims_xyz(out, "block", a->block);
		add_text(out, "kernel", a->kernel ? name.data : "unknown");
	} else if (a->kind != ACTIVITY_GRAPH_RUN) {
		AT_END(buf_free) struct buf name = { 0 };

		add_u64(out, "size", a->bytes);
		activity_name(a, &name);
		add_text(out, "operation", name.data);
	}
	buf_putc(out, '\n');
}

static void add_range(struct log *log, const struct event *event)
{
	const struct range *range = event->range;
	struct buf *out = &log->sink.lines.pending;

	begin_other(log, event, "", range_words[range->kind].plain, delay_of(&log->sink, event).tid,
	            range->begin_ns, range->end_ns);
	if (range->kind == RANGE_PUSHPOP)
		add_u64(out, "depth", range->depth);
	if (range->stream)
		add_u64(out, "stream", range->stream);
	if (range->domain)
		add_text(out, "domain", range->domain);
	add_text(out, "name", range->name);
	buf_putc(out, '\n');
}

/* ---- the format ------------------------------------------------------------------------------ */

static void add_call(struct log *log, const struct event *event)
{
	struct buf *out = &log->sink.lines.pending;
	const struct call *call = event->call;

	add_wall_time(log, out, event->time_ns);
	buf_puts(out, " - [");
	text_add_safe(out, call->function->name);
	buf_puts(out, "] pid: ");
	buf_u64(out, event->process->pid);
	add_u64(out, "tid", event->tid);
	add_u64(out, "time_start", call->begin_ns);
	add_u64(out, "time_end", call->end_ns);
	add_args(out, call);
	add_outcome(out, call);
	buf_putc(out, '\n');
}

static int log_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct log *log = (struct log *)self;

	if (!log->sink.wanted)
		return 0;
	if (event->type == EVENT_CALL || event->type == EVENT_OTHER_CALL)
		add_call(log, event);
	else if (event->type == EVENT_ACTIVITY)
		add_activity(log, event);
	else if (event->type == EVENT_RANGE)
		add_range(log, event);
	return 0;
}

static int log_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct log *log = (struct log *)self;
	struct buf *out = &log->sink.lines.pending, why = { 0 };

	if (missed_of_file(run, &why)) {
		add_wall_time(log, out, run->end_ns);
		buf_puts(out, " - [incomplete] pid: 0, tid: 0");
		add_u64(out, "time_start", run->begin_ns);
		add_u64(out, "time_end", run->end_ns);
		add_text(out, "why", why.data);
		buf_putc(out, '\n');
	}
	buf_free(&why);
	return 0;
}

static void log_free(struct consumer *self)
{
	free(self);
}

static const struct consumer_ops log_ops = {
	.event = log_event,
	.end = log_end,
	.free = log_free,
};

struct consumer *log_new(const struct sink_options *options)
{
	struct log *log = xcalloc(1, sizeof(*log));

	log->sink.gpu = true;
	log->sink.joins = true;
	return sink_init(&log->sink, &log_ops, options);
}
