// SPDX-License-Identifier: MIT
/*
 * Chrome's JSON as PyTorch's profiler (Kineto) writes it, for the tools that read that: its
 * viewers, Holistic Trace Analysis (HTA), and whatever looks for cudaLaunchKernel by name.
 * docs/export.md lists what those tools take for granted; the comments here say where it shows.
 *
 * Only what is a pair carries a correlation on its call and a flow: HTA counts both and wants as
 * many of each. What is a pair is known beforehand where a file is exported (sink.joined); else a
 * call that asked for GPU work waits for the work, and work for its call.
 */
#include <stdlib.h>
#include <string.h>

#include "analysis/correlations.h"
#include "analysis/pairs.h"
#include "base/json.h"
#include "base/number.h"
#include "base/xalloc.h"
#include "cuda/error.h"
#include "output/activity.h"
#include "output/args.h"
#include "output/chrome/chrome.h"
#include "output/format.h"
#include "output/fragments.h"

struct chrome {
	struct sink sink; /* first */
	struct chrome_writer writer;
	struct chrome_rows *rows;
	struct pairs *pairs;        /* where sink.joined is not known */
	struct fragments functions; /* what all events of a function begin with */
	bool is_over;               /* nothing is written any more */
};

/* A call or an activity that waits for the other half. */
struct waiting {
	struct half half; /* first */
	uint32_t pid, tid;
	union {
		struct waiting_call {
			uint64_t begin_ns, end_ns;
			const struct function *function;
			const struct kernel *kernel;
			uint32_t grid[3], block[3];
			uint64_t bytes;
			enum api_op op;
			bool has_bytes;
		} call;
		struct activity *activity; /* its own */
	};
};

#define ADD(out, text) buf_add(out, text, sizeof(text) - 1)

/* A damaged trace can say that something ended before it began. */
static uint64_t span_ns(uint64_t begin_ns, uint64_t end_ns)
{
	return end_ns > begin_ns ? end_ns - begin_ns : 0;
}

static void add_u64(struct buf *out, const char *key, uint64_t value)
{
	buf_puts(out, key);
	buf_u64(out, value);
}

static void add_triple(struct buf *out, const char *key, const uint32_t dims[3])
{
	buf_puts(out, key);
	for (int i = 0; i < 3; i++) {
		buf_puts(out, i ? ", " : "[");
		buf_u64(out, dims[i]);
	}
	buf_putc(out, ']');
}

/* ---- functions ------------------------------------------------------------------------------ */

/* "_ptsz", "_ptds": the default stream is the thread's. */
static void cut_variant(char *name)
{
	if (api_is_per_thread(name))
		name[strlen(name) - strlen("_ptsz")] = '\0';
}

/* "_v2" */
static void cut_version(char *name)
{
	size_t len = strlen(name), at = len;

	while (at && name[at - 1] >= '0' && name[at - 1] <= '9')
		at--;
	if (at < len && at > 2 && name[at - 2] == '_' && name[at - 1] == 'v')
		name[at - 2] = '\0';
}

/*
 * The name as CUPTI has it, without version or per-thread variant. Launches are hooked in the
 * driver only, where all pass, but it was the runtime that nearly every program called, and HTA
 * takes a trace without a cudaLaunchKernel for one of another vendor's GPU: so they have the
 * runtime's name.
 */
static void add_function_name(struct buf *out, const struct function *function)
{
	static const char *const runtime_name[][2] = {
		{ "cuLaunchKernel", "cudaLaunchKernel" },
		{ "cuLaunchKernelEx", "cudaLaunchKernelExC" },
		{ "cuLaunchCooperativeKernel", "cudaLaunchCooperativeKernel" },
	};
	char name[128];

	snprintf(name, sizeof(name), "%s", function->name);
	cut_variant(name);
	cut_version(name);
	for (size_t i = 0; i < sizeof(runtime_name) / sizeof(*runtime_name); i++) {
		if (!strcmp(name, runtime_name[i][0]))
			snprintf(name, sizeof(name), "%s", runtime_name[i][1]);
	}
	buf_json_string(out, name);
}

static bool shown_as_runtime(const struct function *function)
{
	return function->layer == LAYER_RUNTIME || function->cls == CLASS_LAUNCH;
}

/* `"cat": "cuda_runtime", "name": "cudaMalloc", "pid": ` */
static const struct buf *function_text(struct chrome *chrome, const struct function *function)
{
	struct buf *text = fragment(&chrome->functions, function->id);

	if (!text->len) {
		buf_printf(text, "\"cat\": \"%s\", \"name\": ",
		           shown_as_runtime(function) ? "cuda_runtime" : "cuda_driver");
		add_function_name(text, function);
		buf_puts(text, ", \"pid\": ");
	}
	return text;
}

/* ---- calls ---------------------------------------------------------------------------------- */

/* Up to the args; end_ns 0: an instant. */
static void begin_call(struct chrome *chrome, const struct function *function, uint32_t pid,
                       uint32_t tid, uint64_t begin_ns, uint64_t end_ns)
{
	struct buf *out = chrome->writer.out;
	const struct buf *text = function_text(chrome, function);

	chrome_begin_event(&chrome->writer);
	buf_puts(out, end_ns ? "\"ph\": \"X\", " : "\"ph\": \"i\", \"s\": \"t\", ");
	buf_add(out, text->data, text->len);
	buf_u64(out, pid);
	add_u64(out, ", \"tid\": ", tid);
	ADD(out, ", \"ts\": ");
	chrome_add_time(&chrome->writer, begin_ns);
	if (end_ns) {
		ADD(out, ", \"dur\": ");
		buf_fixed(out, span_ns(begin_ns, end_ns), 3);
	}
	ADD(out, ", \"args\": {");
}

/* What the tools do not ask for; no "stream", by which HTA knows what ran on a GPU. */
static void add_work(struct buf *out, const struct waiting_call *call)
{
	if (call->kernel) {
		ADD(out, ", \"kernel\": ");
		buf_json_string(out, call->kernel->name);
		add_triple(out, ", \"grid\": ", call->grid);
		add_triple(out, ", \"block\": ", call->block);
	}
	if (call->has_bytes)
		add_u64(out, ", \"bytes\": ", call->bytes);
}

static struct waiting_call work_of(const struct call *call)
{
	struct waiting_call work = {
		.begin_ns = call->begin_ns,
		.end_ns = call->end_ns,
		.function = call->function,
		.kernel = call->kernel,
		.bytes = call->args.bytes,
		.op = call->op,
		.has_bytes = (call->op == OP_COPY || call->op == OP_SET || call->op == OP_ALLOC) &&
		             !(call->flags & CALL_SIZE_UNKNOWN),
	};

	memcpy(work.grid, call->args.grid, sizeof(work.grid));
	memcpy(work.block, call->args.block, sizeof(work.block));
	return work;
}

/* Closes the args; what stands first in them has no comma before it. */
static void end_args(struct buf *out, size_t begin)
{
	if (out->len > begin && out->data[begin] == ',') {
		memmove(out->data + begin, out->data + begin + 2, out->len - begin - 2);
		out->len -= 2;
	}
	ADD(out, "}}");
}

uint64_t chrome_correlation(uint32_t process, uint64_t correlation)
{
	return correlation + ((uint64_t)process << 40);
}

static uint64_t correlation_id(const struct half *half)
{
	return chrome_correlation(half->process, half->correlation);
}

static void write_waiting_call(struct chrome *chrome, const struct waiting *w, bool paired)
{
	struct buf *out = chrome->writer.out;
	size_t args;

	begin_call(chrome, w->call.function, w->pid, w->tid, w->call.begin_ns, w->call.end_ns);
	args = out->len;
	if (paired)
		add_u64(out, ", \"correlation\": ", correlation_id(&w->half));
	add_work(out, &w->call);
	end_args(out, args);
}

/* A call that has nothing to wait for. */
static void write_call(struct chrome *chrome, const struct event *event)
{
	const struct call *call = event->call;
	struct waiting_call work = work_of(call);
	struct buf *out = chrome->writer.out;
	uint64_t end_ns = call->flags & CALL_UNFINISHED ? event->time_ns : call->end_ns;
	const char *error = cuda_error_name(call->function->layer, call->result);
	size_t args;

	begin_call(chrome, call->function, event->process->pid, event->tid, call->begin_ns,
	           end_ns > call->begin_ns || call_has_end(call) ? end_ns : 0);
	args = out->len;
	add_work(out, &work);
	if (call->flags & CALL_FAILED) {
		ADD(out, ", \"error\": ");
		buf_json_string(out, error ? error : "unknown error");
	}
	if (call->flags & CALL_UNFINISHED)
		ADD(out, ", \"unfinished\": true");
	if (call->flags & CALL_CAPTURED)
		ADD(out, ", \"captured\": true");
	end_args(out, args);
}

/* ---- activities ----------------------------------------------------------------------------- */

static void add_kernel_args(struct buf *out, const struct activity *a)
{
	add_u64(out, ", \"registers per thread\": ", a->registers);
	add_u64(out, ", \"shared memory\": ", (uint64_t)a->shmem_static + a->shmem_dynamic);
	add_triple(out, ", \"grid\": ", a->grid);
	add_triple(out, ", \"block\": ", a->block);
}

static void add_transfer_args(struct buf *out, const struct activity *a)
{
	uint64_t ns = activity_duration_ns(a);

	add_u64(out, ", \"bytes\": ", a->bytes);
	if (ns) { /* bytes a nanosecond */
		ADD(out, ", \"memory bandwidth (GB/s)\": ");
		buf_fixed(out, number_u64((double)a->bytes * 1e6 / (double)ns), 6);
	}
	if (a->kind == ACTIVITY_COPY && a->direction == DIRECTION_P2P) {
		add_u64(out, ", \"fromDevice\": ", a->device);
		add_u64(out, ", \"inDevice\": ", a->device);
		add_u64(out, ", \"toDevice\": ", a->peer_device);
	}
}

static void write_activity(struct chrome *chrome, uint32_t process, const struct activity *a,
                           uint32_t tid)
{
	static const char *const category[] = {
		[ACTIVITY_KERNEL] = "kernel",
		[ACTIVITY_COPY] = "gpu_memcpy",
		[ACTIVITY_SET] = "gpu_memset",
		[ACTIVITY_GRAPH_RUN] = "kernel", /* it is time of the GPU as theirs is */
	};
	struct buf *out = chrome->writer.out, name = { 0 };

	buf_puts(&name, "");
	activity_name(a, &name);
	chrome_begin_event(&chrome->writer);
	buf_printf(out, "\"ph\": \"X\", \"cat\": \"%s\", \"name\": ", category[a->kind]);
	buf_json_string(out, name.data);
	add_u64(out, ", \"pid\": ", a->device);
	add_u64(out, ", \"tid\": ", tid);
	ADD(out, ", \"ts\": ");
	chrome_add_time(&chrome->writer, a->begin_ns);
	ADD(out, ", \"dur\": ");
	buf_fixed(out, activity_duration_ns(a), 3);
	add_u64(out, ", \"args\": {\"device\": ", a->device);
	add_u64(out, ", \"context\": ", a->context);
	add_u64(out, ", \"stream\": ", a->stream);
	add_u64(out, ", \"correlation\": ",
	        a->correlation ? chrome_correlation(process, a->correlation) : 0);
	if (a->kind == ACTIVITY_KERNEL)
		add_kernel_args(out, a);
	else if (a->kind != ACTIVITY_GRAPH_RUN)
		add_transfer_args(out, a);
	if (a->graph)
		add_u64(out, ", \"graph id\": ", a->graph);
	if (a->graph_node)
		add_u64(out, ", \"graph node id\": ", a->graph_node);
	ADD(out, "}}");
	buf_free(&name);
}

/* ---- flows ---------------------------------------------------------------------------------- */

static void write_flow(struct chrome *chrome, const char *phase, uint64_t id, uint32_t pid,
                       uint32_t tid, uint64_t time_ns)
{
	struct buf *out = chrome->writer.out;

	chrome_begin_event(&chrome->writer);
	buf_puts(out, phase);
	add_u64(out, ", \"id\": ", id);
	add_u64(out, ", \"pid\": ", pid);
	add_u64(out, ", \"tid\": ", tid);
	ADD(out, ", \"ts\": ");
	chrome_add_time(&chrome->writer, time_ns);
	ADD(out, ", \"cat\": \"ac2g\", \"name\": \"ac2g\"}");
}

static void write_paired_call(struct chrome *chrome, const struct waiting *w)
{
	write_waiting_call(chrome, w, true);
	write_flow(chrome, "\"ph\": \"s\"", correlation_id(&w->half), w->pid, w->tid,
	           w->call.begin_ns);
}

static void write_paired_activity(struct chrome *chrome, uint32_t process,
                                  const struct activity *activity, uint32_t tid)
{
	write_activity(chrome, process, activity, tid);
	write_flow(chrome, "\"ph\": \"f\", \"bp\": \"e\"",
	           chrome_correlation(process, activity->correlation), activity->device, tid,
	           activity->begin_ns);
}

/* ---- pairs ---------------------------------------------------------------------------------- */

static bool asks_for_work(const struct call *call)
{
	return call_asks_for_work(call) && call_has_end(call);
}

static void leave(void *data, const struct half *half)
{
	struct chrome *chrome = data;
	const struct waiting *waiting = (const struct waiting *)half;

	if (half->call && !chrome->is_over)
		write_waiting_call(chrome, waiting, false);
	else if (!half->call && !chrome->is_over)
		write_activity(chrome, half->process, waiting->activity, waiting->tid);
	if (!half->call)
		free(waiting->activity);
}

static void keep_call(struct chrome *chrome, const struct waiting *call)
{
	struct waiting *place =
		pairs_add(chrome->pairs, call->half.process, call->half.correlation, true);

	place->pid = call->pid;
	place->tid = call->tid;
	place->call = call->call;
}

static void add_asking_call(struct chrome *chrome, const struct event *event)
{
	uint32_t process = event->process->id;
	uint64_t correlation = event->call->correlation;
	struct waiting *other = pairs_find(chrome->pairs, process, correlation);
	struct waiting call = {
		.half = { .correlation = correlation, .process = process, .call = true },
		.pid = event->process->pid,
		.tid = event->tid,
		.call = work_of(event->call),
	};
	unsigned marks;

	if (chrome->sink.joined) {
		marks = correlations_marks(chrome->sink.joined, process, correlation);
		if (marks & CORRELATION_WORK)
			write_paired_call(chrome, &call);
		else
			write_waiting_call(chrome, &call, false);
	} else if (!other || other->half.call) {
		keep_call(chrome, &call);
	} else {
		write_paired_call(chrome, &call);
		write_paired_activity(chrome, process, other->activity, other->tid);
		free(other->activity);
		pairs_remove(chrome->pairs, other);
	}
}

/* It came before its call has returned. */
static void keep_activity(struct chrome *chrome, const struct event *event, uint32_t tid)
{
	struct waiting *place =
		pairs_add(chrome->pairs, event->process->id, event->activity->correlation, false);

	place->tid = tid;
	place->activity = xmalloc(sizeof(*place->activity));
	*place->activity = *event->activity;
}

static void join_activity(struct chrome *chrome, const struct event *event, uint32_t tid)
{
	uint32_t process = event->process->id;
	uint64_t correlation = event->activity->correlation;
	struct waiting *other = NULL;

	pairs_expect_late(chrome->pairs, PAIRS_BYTES);
	if (correlation)
		other = pairs_find(chrome->pairs, process, correlation);
	if (other && other->half.call) {
		if (!other->half.met)
			write_paired_call(chrome, other);
		pairs_meet(chrome->pairs, other);
		write_paired_activity(chrome, process, event->activity, tid);
	} else if (correlation && !other) {
		keep_activity(chrome, event, tid);
	} else {
		write_activity(chrome, process, event->activity, tid);
	}
}

static void add_activity(struct chrome *chrome, const struct event *event)
{
	const struct activity *activity = event->activity;
	uint32_t process = event->process->id;
	uint32_t tid = chrome_rows_activity(chrome->rows, event->process, activity);

	if (!chrome->sink.joined)
		join_activity(chrome, event, tid);
	else if (activity->correlation &&
	         correlations_marks(chrome->sink.joined, process, activity->correlation) &
	                 CORRELATION_CALL)
		write_paired_activity(chrome, process, activity, tid);
	else
		write_activity(chrome, process, activity, tid);
}

/* ---- the format ----------------------------------------------------------------------------- */

static struct chrome *chrome_of(struct sink *sink)
{
	return (struct chrome *)sink;
}

static void chrome_begin(struct sink *sink, const struct run_info *run)
{
	struct chrome *chrome = chrome_of(sink);

	if (run->gpu_times)
		pairs_expect_late(chrome->pairs, PAIRS_BYTES);
	chrome_run_begin(&chrome->writer, &sink->options, run);
}

static void chrome_event(struct sink *sink, const struct event *event)
{
	struct chrome *chrome = chrome_of(sink);

	switch (event->type) {
	case EVENT_CALL:
		chrome_rows_thread(chrome->rows, event->process, event->tid, NULL);
		if (asks_for_work(event->call))
			add_asking_call(chrome, event);
		else
			write_call(chrome, event);
		break;
	case EVENT_ACTIVITY:
		add_activity(chrome, event);
		break;
	case EVENT_PROCESS:
		chrome_rows_process(chrome->rows, event->process);
		break;
	case EVENT_THREAD:
		chrome_rows_thread(chrome->rows, event->process, event->tid, event->thread);
		break;
	case EVENT_EXIT:
		chrome_rows_ended(chrome->rows, event->process);
		break;
	case EVENT_RANGE:
		chrome_add_range(&chrome->writer, chrome->rows, event);
		break;
	case EVENT_CALL_BEGIN:
		break;
	}
}

static void chrome_end(struct sink *sink, const struct run_info *run)
{
	struct chrome *chrome = chrome_of(sink);

	pairs_end(chrome->pairs);
	sink->unjoined += pairs_unjoined(chrome->pairs);
	chrome_run_end(&chrome->writer, chrome->rows, sink, run);
}

static void chrome_free(struct sink *sink)
{
	struct chrome *chrome = chrome_of(sink);

	chrome->is_over = true;
	pairs_end(chrome->pairs);
	fragments_free(&chrome->functions);
	chrome_rows_free(chrome->rows);
	pairs_free(chrome->pairs);
	free(chrome);
}

static const struct sink_ops chrome_ops = {
	.begin = chrome_begin,
	.event = chrome_event,
	.end = chrome_end,
	.free = chrome_free,
};

struct consumer *chrome_new(const struct sink_options *options)
{
	struct chrome *chrome = xcalloc(1, sizeof(*chrome));
	struct consumer *consumer = sink_init(&chrome->sink, &chrome_ops, options);

	chrome->sink.gpu = true;
	chrome->sink.hide_nested = true;
	chrome->writer.out = &chrome->sink.lines.pending;
	chrome->rows = chrome_rows_new(&chrome->writer);
	chrome->sink.asks_for_work = asks_for_work;
	chrome->pairs = pairs_new(sizeof(struct waiting), leave, chrome);
	return consumer;
}
