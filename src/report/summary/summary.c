// SPDX-License-Identifier: MIT
#include "report/summary/summary.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "base/map.h"
#include "report/reports.h"
#include "report/summary/summary_page.h"
#include "base/file.h"
#include "base/lines.h"
#include "base/xalloc.h"
#include "cuda/error.h"
#include "trace/event.h"

/* ---- summary report ------------------------------------------------------------------------ */

/* The report `summary`: what a trace prints at its end, of a file. */

static void summary_report_init(void *self)
{
	struct report_writer *writer = self;
	const struct table_options *table = table_options(writer->table);
	struct summary_options calls = {
		.color = table->color,
		.width = table->width,
		.top = table->top,
		.work = writer->options.work,
	};

	if (table_form_is_json(table->form))
		calls.json_stream = table->out;
	else
		calls.text = table->out;
	writer->analysis = summary_new(&calls);
}

const struct report_kind summary_report = { .init = summary_report_init };

/* ---- summary ------------------------------------------------------------------------------- */

struct summary {
	struct consumer consumer; /* first: what callers hold */
	struct summary_options options;
	char *json_path;
	struct tally tally;
	struct gpu_tally gpu;

	struct function_tally **function_by_id; /* a shortcut past the hash by name */
	size_t n_functions;

	/* By id, and by name only at the end: a kernel's name may be found after its launches. */
	struct kernel_count {
		const struct kernel *kernel;
		uint64_t launches, captured;
		struct recurrence seen;
	} * kernel_by_id;
	size_t n_kernels;

	enum met { UNMET, SEEN, CALLED } * processes; /* by id */
	size_t n_processes;
};

static struct function_tally *function_tally(struct summary *summary,
                                             const struct function *function)
{
	struct function_tally **by_id =
		BY_ID(summary->function_by_id, summary->n_functions, function->id);
	struct function_tally *row = *by_id;

	if (row)
		return row;
	row = MAP_FIND_TEXT(summary->tally.functions, function->name);
	if (!row) {
		row = xcalloc(1, sizeof(*row));
		row->function = function;
		HASH_ADD_KEYPTR(hh, summary->tally.functions, function->name,
		                strlen(function->name), row);
	}
	return *by_id = row;
}

static struct kernel_count *kernel_count(struct summary *summary, const struct kernel *kernel)
{
	struct kernel_count *count = BY_ID(summary->kernel_by_id, summary->n_kernels, kernel->id);

	count->kernel = kernel;
	return count;
}

static void add_kernel(struct tally *tally, const struct kernel_count *count)
{
	const struct kernel *kernel = count->kernel;
	struct kernel_tally *row = MAP_FIND_TEXT(tally->kernels, kernel->name);

	if (!row) {
		row = xcalloc(1, sizeof(*row));
		row->name = kernel->name;
		row->resolved = kernel->resolved;
		HASH_ADD_KEYPTR(hh, tally->kernels, row->name, strlen(row->name), row);
	}
	row->launches += count->launches;
	row->captured += count->captured;
	if (count->seen.times > row->seen.times)
		row->seen = count->seen;
}

static void count_function(struct function_tally *row, const struct event *event)
{
	const struct call *call = event->call;

	row->calls++;
	recurrence_note(&row->seen, event->time_ns);
	row->nested += !!(call->flags & CALL_NESTED);
	row->failed += !!(call->flags & CALL_FAILED);
	row->unfinished += !!(call->flags & CALL_UNFINISHED);
	if (call_has_end(call))
		spread_add(&row->durations, call_duration_ns(call));
}

static void add_transfer(struct transfer_count *into, const struct call *call)
{
	into->count++;
	if (call->flags & CALL_SIZE_UNKNOWN)
		into->unsized++;
	else
		into->bytes += call->args.bytes;
}

static void count_launch(struct summary *summary, const struct event *event)
{
	struct kernel_count *kernel;

	summary->tally.launches += call_launches(event->call);
	if (!event->call->kernel)
		return;
	kernel = kernel_count(summary, event->call->kernel);
	kernel->launches += call_launches(event->call);
	recurrence_note(&kernel->seen, event->time_ns);
}

/* What a call that did its work did. */
static void count_work(struct summary *summary, const struct event *event)
{
	const struct call *call = event->call;
	struct tally *tally = &summary->tally;

	recurrence_note(&tally->work[call->op], event->time_ns);
	switch (call->op) {
	case OP_LAUNCH:
		count_launch(summary, event);
		break;
	case OP_GRAPH_LAUNCH:
		tally->graph_launches++;
		break;
	case OP_HOST_LAUNCH:
		tally->host_launches++;
		break;
	case OP_COPY:
		add_transfer(&tally->copies[call->args.direction], call);
		add_transfer(&tally->all_copies, call);
		break;
	case OP_SET:
		add_transfer(&tally->sets, call);
		break;
	case OP_SYNC:
		tally->syncs++;
		tally->sync_ns += call_duration_ns(call);
		break;
	default:
		break;
	}
}

static void count_captured(struct summary *summary, const struct call *call)
{
	if (call->op != OP_LAUNCH) {
		summary->tally.captured_other++;
		return;
	}
	summary->tally.captured_launches += call_launches(call);
	if (call->kernel)
		kernel_count(summary, call->kernel)->captured += call_launches(call);
}

static __attribute__((noinline)) void count_call(struct summary *summary, const struct event *event)
{
	const struct call *call = event->call;
	struct tally *tally = &summary->tally;

	count_function(function_tally(summary, call->function), event);
	if (call->flags & CALL_NESTED) {
		tally->nested++;
		return;
	}
	tally->calls++;
	tally->entry_only += !!(call->flags & CALL_NO_RETURN);
	if (call->flags & CALL_UNFINISHED) {
		tally->unfinished++;
	} else if (call->flags & CALL_FAILED) {
		tally->failed++;
		tally->after_shutdown +=
			cuda_error_is_shutdown(call->function->layer, call->result);
		tally->errors->ops->event(tally->errors, event, NULL);
	} else if (call->flags & CALL_CAPTURED) {
		count_captured(summary, call);
	} else {
		count_work(summary, event);
	}
}

/* Many never call CUDA: a shell, what comes before an exec. */
static void count_process(struct summary *summary, const struct process *process, bool calls)
{
	struct tally *tally = &summary->tally;
	enum met *met = BY_ID(summary->processes, summary->n_processes, process->id);

	if (*met == CALLED || (*met == SEEN && !calls))
		return;
	tally->processes_without_calls += calls ? 0 : 1;
	tally->processes_without_calls -= *met == SEEN;
	tally->processes += calls;
	*met = calls ? CALLED : SEEN;
}

static int summary_begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	work_begin(((struct summary *)self)->gpu.work, run);
	return 0;
}

static int summary_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct summary *summary = (struct summary *)self;

	memory_event(summary->tally.memory, event);
	gpu_tally_event(&summary->gpu, event);
	if (event->type == EVENT_OTHER_CALL && event->call->function->layer == LAYER_KERNEL) {
		summary->tally.driver_calls++;
		summary->tally.driver_ns += call_duration_ns(event->call);
	}
	if (event->type == EVENT_PROCESS || event->type == EVENT_CALL)
		count_process(summary, event->process, event->type == EVENT_CALL);
	if (event->type != EVENT_CALL)
		return 0;
	count_call(summary, event);
	return 0;
}

static int print(struct summary *summary, const struct run_info *run, FILE *out, bool json,
                 struct err *err)
{
	AT_END(lines_free) struct lines lines;
	int rc;

	lines_init(&lines, out, "the summary");
	rc = json ? summary_json(&summary->tally, run, &lines.pending, err)
	          : summary_text(&summary->tally, run, &summary->options, &lines.pending, err);
	return rc ? rc : lines_flush(&lines, err);
}

static int write_json(struct summary *summary, const struct run_info *run, struct err *err)
{
	AT_END(buf_free) struct buf text = { 0 };
	int rc = summary_json(&summary->tally, run, &text, err);

	return rc ? rc : file_replace(summary->json_path, summary->options.json_mode, &text, err);
}

/* Names of kernels may be found after their launches: rows by name are made when they are shown. */
static void name_kernels(struct summary *summary)
{
	MAP_FREE(summary->tally.kernels, free);
	for (size_t i = 0; i < summary->n_kernels; i++) {
		if (summary->kernel_by_id[i].kernel)
			add_kernel(&summary->tally, &summary->kernel_by_id[i]);
	}
}

int summary_print(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct summary *summary = (struct summary *)self;

	name_kernels(summary);
	return print(summary, run, summary->options.text, false, err);
}

/* A summary that cannot be written in one form is still written in the other. */
static int summary_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct summary *summary = (struct summary *)self;
	struct run_info failed = { 0 };
	int rc = 0, rc_text = 0;

	name_kernels(summary);
	if (summary->json_path)
		rc = write_json(summary, run, err);
	if (summary->options.json_stream && !rc)
		rc = print(summary, run, summary->options.json_stream, true, err);
	if (rc)
		consumers_add_failure(&failed, run, err->text);
	if (summary->options.text)
		rc_text = print(summary, rc ? &failed : run, summary->options.text, false,
		                rc ? NULL : err);
	free((void *)failed.misses);
	work_free(
		summary->gpu.work); /* nothing comes any more: what was summed up is kept longer */
	summary->gpu.work = NULL;
	return rc ? rc : rc_text;
}

static void summary_free(struct consumer *self)
{
	struct summary *summary = (struct summary *)self;
	struct function_tally *function, *next_function;

	consumer_free(summary->tally.errors);
	MAP_FREE(summary->tally.kernels, free);
	HASH_ITER (hh, summary->tally.functions, function, next_function) {
		HASH_DELETE(hh, summary->tally.functions, function);
		spread_free(&function->durations);
		free(function);
	}
	memory_free(summary->tally.memory);
	gpu_tally_free(&summary->gpu);
	FREE_ALL(summary->function_by_id, summary->kernel_by_id, summary->processes,
	         summary->json_path, summary);
}

static const struct consumer_ops summary_ops = {
	.begin = summary_begin,
	.event = summary_event,
	.end = summary_end,
	.free = summary_free,
};

const struct tally *summary_tally(const struct consumer *summary)
{
	return &((const struct summary *)summary)->tally;
}

struct consumer *summary_new(const struct summary_options *options)
{
	struct summary *summary = xcalloc(1, sizeof(*summary));

	summary->consumer.ops = &summary_ops;
	summary->options = *options;
	summary->json_path = options->json ? xstrdup(options->json) : NULL;
	summary->tally.memory = memory_new();
	summary->tally.errors = errors_new();
	gpu_tally_init(&summary->gpu, options->work);
	summary->tally.gpu = &summary->gpu;
	return &summary->consumer;
}
