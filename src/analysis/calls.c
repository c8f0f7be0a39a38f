// SPDX-License-Identifier: MIT
#include "analysis/calls.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "analysis/errors.h"
#include "analysis/tally.h"
#include "base/file.h"
#include "base/lines.h"
#include "base/xalloc.h"
#include "cuda/error.h"

struct calls {
	struct consumer consumer; /* first: what callers hold */
	struct calls_options options;
	char *json_path;
	struct tally tally;
	struct gpu_tally gpu;

	struct function_tally **function_by_id; /* a shortcut past the hash by name */
	size_t n_functions;

	/* By id, and by name only at the end: a kernel's name may be found after its launches. */
	struct kernel_count {
		const struct kernel *kernel;
		uint64_t launches, captured;
	} * kernel_by_id;
	size_t n_kernels;

	bool *process_called; /* by id: whether it made a call */
	size_t n_processes;
};

static struct calls *calls_of(struct consumer *consumer)
{
	return (struct calls *)consumer;
}

static struct function_tally *function_tally(struct calls *calls, const struct function *function)
{
	struct function_tally *row;

	calls->function_by_id = by_id_room(calls->function_by_id, &calls->n_functions,
	                                   sizeof(*calls->function_by_id), function->id);
	row = calls->function_by_id[function->id];
	if (row)
		return row;
	HASH_FIND_STR(calls->tally.functions, function->name, row);
	if (!row) {
		row = xcalloc(1, sizeof(*row));
		row->function = function;
		HASH_ADD_KEYPTR(hh, calls->tally.functions, function->name, strlen(function->name),
		                row);
	}
	return calls->function_by_id[function->id] = row;
}

static struct kernel_count *kernel_count(struct calls *calls, const struct kernel *kernel)
{
	calls->kernel_by_id = by_id_room(calls->kernel_by_id, &calls->n_kernels,
	                                 sizeof(*calls->kernel_by_id), kernel->id);
	calls->kernel_by_id[kernel->id].kernel = kernel;
	return &calls->kernel_by_id[kernel->id];
}

static void add_kernel(struct tally *tally, const struct kernel_count *count)
{
	const struct kernel *kernel = count->kernel;
	struct kernel_tally *row;

	HASH_FIND_STR(tally->kernels, kernel->name, row);
	if (!row) {
		row = xcalloc(1, sizeof(*row));
		row->name = kernel->name;
		row->resolved = kernel->resolved;
		HASH_ADD_KEYPTR(hh, tally->kernels, row->name, strlen(row->name), row);
	}
	row->launches += count->launches;
	row->captured += count->captured;
}

static void count_error(struct tally *tally, const struct function_tally *function, int32_t code)
{
	struct error_key key = { function, code };
	struct error_tally *row;

	if (HASH_COUNT(tally->errors) >= ERRORS_MAX)
		HASH_FIND(hh, tally->errors, &key, sizeof(key), row);
	if (HASH_COUNT(tally->errors) >= ERRORS_MAX && !row)
		key.code = INT32_MAX;

	HASH_FIND(hh, tally->errors, &key, sizeof(key), row);
	if (!row) {
		row = xcalloc(1, sizeof(*row));
		row->key = key;
		HASH_ADD(hh, tally->errors, key, sizeof(row->key), row);
	}
	row->count++;
}

static void count_function(struct function_tally *row, const struct call *call)
{
	row->calls++;
	row->nested += !!(call->flags & CALL_NESTED);
	row->failed += !!(call->flags & CALL_FAILED);
	row->unfinished += !!(call->flags & CALL_UNFINISHED);
	if (call_has_end(call))
		sketch_add(&row->durations, call_duration_ns(call));
}

static void add_transfer(struct transfer_count *into, const struct call *call)
{
	into->count++;
	if (call->flags & CALL_SIZE_UNKNOWN)
		into->unsized++;
	else
		into->bytes += call->args.bytes;
}

/* What a call that did its work did. */
static void count_work(struct calls *calls, const struct call *call)
{
	struct tally *tally = &calls->tally;

	switch (call->op) {
	case OP_LAUNCH:
		tally->launches++;
		if (call->kernel)
			kernel_count(calls, call->kernel)->launches++;
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

static void count_captured(struct calls *calls, const struct call *call)
{
	if (call->op != OP_LAUNCH) {
		calls->tally.captured_other++;
		return;
	}
	calls->tally.captured_launches++;
	if (call->kernel)
		kernel_count(calls, call->kernel)->captured++;
}

static void count_call(struct calls *calls, const struct call *call)
{
	struct function_tally *function = function_tally(calls, call->function);
	struct tally *tally = &calls->tally;

	count_function(function, call);
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
		count_error(tally, function, call->result);
	} else if (call->flags & CALL_CAPTURED) {
		count_captured(calls, call);
	} else {
		count_work(calls, call);
	}
}

/* Processes that never called CUDA (a shell, what comes before an exec) are not worth counting. */
static void count_process(struct calls *calls, const struct process *process)
{
	calls->process_called = by_id_room(calls->process_called, &calls->n_processes,
	                                   sizeof(*calls->process_called), process->id);
	calls->tally.processes += !calls->process_called[process->id];
	calls->process_called[process->id] = true;
}

static int calls_begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	return 0;
}

static int calls_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct calls *calls = calls_of(self);

	memory_event(calls->tally.memory, event);
	gpu_tally_event(&calls->gpu, event);
	if (event->type != EVENT_CALL)
		return 0;
	count_process(calls, event->process);
	count_call(calls, event->call);
	return 0;
}

static int print_text(struct calls *calls, const struct run_info *run, struct err *err)
{
	struct lines lines;
	int rc;

	lines_init(&lines, calls->options.text, "the summary");
	summary_text(&calls->tally, run, &calls->options, &lines.pending);
	rc = lines_flush(&lines, err);
	lines_free(&lines);
	return rc;
}

static int write_json(struct calls *calls, const struct run_info *run, struct err *err)
{
	struct buf text = { 0 };
	int rc;

	summary_json(&calls->tally, run, &text);
	rc = file_replace(calls->json_path, calls->options.json_mode, &text, err);
	buf_free(&text);
	return rc;
}

static int print_json(struct calls *calls, const struct run_info *run, struct err *err)
{
	struct lines lines;
	int rc;

	lines_init(&lines, calls->options.json_stream, "the summary");
	summary_json(&calls->tally, run, &lines.pending);
	rc = lines_flush(&lines, err);
	lines_free(&lines);
	return rc;
}

/* Names of kernels may be found after their launches: rows by name are made when they are shown. */
static void name_kernels(struct calls *calls)
{
	struct kernel_tally *row, *next;

	HASH_ITER (hh, calls->tally.kernels, row, next) {
		HASH_DELETE(hh, calls->tally.kernels, row);
		free(row);
	}
	for (size_t i = 0; i < calls->n_kernels; i++) {
		if (calls->kernel_by_id[i].kernel)
			add_kernel(&calls->tally, &calls->kernel_by_id[i]);
	}
}

int calls_print(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct calls *calls = calls_of(self);

	name_kernels(calls);
	return print_text(calls, run, err);
}

/* A summary that cannot be written in one form is still written in the other. */
static int calls_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct calls *calls = calls_of(self);
	int rc = 0, rc_text = 0;

	name_kernels(calls);
	if (calls->json_path)
		rc = write_json(calls, run, err);
	if (calls->options.json_stream && !rc)
		rc = print_json(calls, run, err);
	if (calls->options.text)
		rc_text = print_text(calls, run, rc ? NULL : err);
	return rc ? rc : rc_text;
}

static void calls_free(struct consumer *self)
{
	struct calls *calls = calls_of(self);
	struct function_tally *function, *next_function;
	struct kernel_tally *kernel, *next_kernel;
	struct error_tally *error, *next_error;

	HASH_ITER (hh, calls->tally.errors, error, next_error) {
		HASH_DELETE(hh, calls->tally.errors, error);
		free(error);
	}
	HASH_ITER (hh, calls->tally.kernels, kernel, next_kernel) {
		HASH_DELETE(hh, calls->tally.kernels, kernel);
		free(kernel);
	}
	HASH_ITER (hh, calls->tally.functions, function, next_function) {
		HASH_DELETE(hh, calls->tally.functions, function);
		sketch_free(&function->durations);
		free(function);
	}
	memory_free(calls->tally.memory);
	gpu_tally_free(&calls->gpu);
	free(calls->function_by_id);
	free(calls->kernel_by_id);
	free(calls->process_called);
	free(calls->json_path);
	free(calls);
}

static const struct consumer_ops calls_ops = {
	.begin = calls_begin,
	.event = calls_event,
	.end = calls_end,
	.free = calls_free,
};

const struct tally *calls_tally(const struct consumer *calls)
{
	return &((const struct calls *)calls)->tally;
}

struct consumer *calls_new(const struct calls_options *options)
{
	struct calls *calls = xcalloc(1, sizeof(*calls));

	calls->consumer.ops = &calls_ops;
	calls->options = *options;
	calls->json_path = options->json ? xstrdup(options->json) : NULL;
	calls->tally.memory = memory_new();
	gpu_tally_init(&calls->gpu);
	calls->tally.gpu = &calls->gpu;
	return &calls->consumer;
}
