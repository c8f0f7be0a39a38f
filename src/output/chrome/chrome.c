// SPDX-License-Identifier: MIT
/*
 * Chrome's JSON as PyTorch's profiler (Kineto) writes it, for the tools that read that: its
 * viewers, Holistic Trace Analysis (HTA), and whatever looks for cudaLaunchKernel by name. What
 * those tools take for granted is listed in docs/export.md. The comments here say where it shows.
 *
 * Of calls that ask for work only what is a pair carries a correlation and a flow: HTA counts both
 * and wants as many of each. All other calls have theirs, as waits refer to them. What is a pair is
 * known beforehand where a file is exported (sink.joined); else a call that asked for GPU work is
 * written when the work comes, or when it has left the window.
 */
#include <stdlib.h>
#include <string.h>

#include "analysis/correlations.h"
#include "analysis/event_waits.h"
#include "analysis/work.h"
#include "base/array.h"
#include "base/number.h"
#include "base/xalloc.h"
#include "cuda/error.h"
#include "output/describe.h"
#include "output/format.h"
#include "output/chrome/chrome.h"

/* What a call that waits for its work shows beside what the window keeps of it. */
struct details {
	const struct kernel *kernel;
	uint64_t bytes;
	uint32_t grid[3], block[3];
	uint32_t stack; /* its number; 0: none */
	bool has_bytes;
};

/* Marks of calls in the window: not written yet, and with a flow that begins there. */
enum { WAITS = 1, TIED };

struct chrome {
	struct sink sink; /* first */
	struct chrome_writer writer;
	struct chrome_rows *rows;
	struct details *waiting; /* of calls that wait, by their places in the window */
	uint32_t n_waiting;
	struct chrome_stacks *stacks;
	struct event_waits *event_waits;
	struct chrome_annotations *annotations;
	struct chrome_gpu gpu;
	struct fragments functions; /* what all events of a function begin with */
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
 * driver only, where all pass. But nearly every program called the runtime, and HTA takes a trace
 * without a cudaLaunchKernel for one of another vendor's GPU. So they have the runtime's name.
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
	for (size_t i = 0; i < ARRAY_SIZE(runtime_name); i++) {
		if (!strcmp(name, runtime_name[i][0]))
			snprintf(name, sizeof(name), "%s", runtime_name[i][1]);
	}
	buf_json_string(out, name);
}

static bool shown_as_runtime(const struct function *function)
{
	return function->layer == LAYER_RUNTIME || function->cls == CLASS_LAUNCH;
}

/* "kernel" is what ran on a GPU, to the tools. */
static const char *category_of(const struct function *function)
{
	if (!layer_is_cuda(function->layer))
		return function->layer == LAYER_KERNEL ? "kernel_side" : "hook";
	return shown_as_runtime(function) ? "cuda_runtime" : "cuda_driver";
}

/* `"cat": "cuda_runtime", "name": "cudaMalloc", "pid": ` */
static const struct buf *function_text(struct chrome *chrome, const struct function *function)
{
	struct buf *text = fragment(&chrome->functions, function->id);

	if (!text->len) {
		buf_printf(text, "\"cat\": \"%s\", \"name\": ", category_of(function));
		if (layer_is_cuda(function->layer))
			add_function_name(text, function);
		else
			buf_json_string(text, function->name);
		buf_puts(text, ", \"pid\": ");
	}
	return text;
}

/* ---- calls ---------------------------------------------------------------------------------- */

/* Up to the args; end_ns 0: an instant; `stack`: its number or 0. */
static void begin_call(struct chrome *chrome, const struct function *function, uint32_t pid,
                       uint32_t tid, uint64_t begin_ns, uint64_t end_ns, uint32_t stack)
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
	if (stack)
		add_u64(out, ", \"sf\": ", stack);
	ADD(out, ", \"args\": {");
}

/* What the tools do not ask for; no "stream", by which HTA knows what ran on a GPU. */
static void add_details(struct buf *out, const struct details *details)
{
	if (details->kernel) {
		ADD(out, ", \"kernel\": ");
		kernel_add_json(details->kernel, out);
		chrome_add_triple(out, ", \"grid\": ", details->grid);
		chrome_add_triple(out, ", \"block\": ", details->block);
	}
	if (details->has_bytes)
		add_u64(out, ", \"bytes\": ", details->bytes);
}

static struct details details_of(struct chrome *chrome, const struct call *call)
{
	struct details details = {
		.stack = chrome_stack(chrome->stacks, call->stack),
		.kernel = call->kernel,
		.bytes = call->args.bytes,
		.has_bytes = (call->op == OP_COPY || call->op == OP_SET || call->op == OP_ALLOC) &&
		             !(call->flags & CALL_SIZE_UNKNOWN),
	};

	memcpy(details.grid, call->args.grid, sizeof(details.grid));
	memcpy(details.block, call->args.block, sizeof(details.block));
	return details;
}

/* Of what is no CUDA call all that was recorded: a reader knows nothing of it beforehand. */
static void add_other_args(struct buf *out, const struct call *call)
{
	const struct api_arg *args;
	size_t n = call_args(call, &args);
	bool outputs = call_has_output(call);

	for (size_t i = 0; i < n; i++) {
		if (args[i].out && !outputs)
			continue;
		ADD(out, ", ");
		buf_json_string(out, args[i].name);
		ADD(out, ": ");
		add_arg_json(out, call, args[i].type, call->args.arg[i]);
	}
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

/* Also one that failed: HTA takes it for a launch by its name. */
static bool can_have_work(const struct call *call)
{
	return call->op == OP_LAUNCH || call->op == OP_GRAPH_LAUNCH || call->op == OP_COPY ||
	       call->op == OP_SET || call_asks_for_work(call);
}

static void write_call(struct chrome *chrome, const struct event *event, bool paired)
{
	const struct call *call = event->call;
	struct details details = details_of(chrome, call);
	struct buf *out = chrome->writer.out;
	uint64_t end_ns = call->flags & CALL_UNFINISHED ? event->time_ns : call->end_ns;
	const char *error = cuda_error_name(call->function->layer, call->result);
	size_t args;

	begin_call(chrome, call->function, event->process->pid, event->tid, call->begin_ns,
	           end_ns > call->begin_ns || call_has_end(call) ? end_ns : 0, details.stack);
	args = out->len;
	if (paired || (call->correlation && !can_have_work(call)))
		add_u64(out, ", \"correlation\": ",
		        chrome_correlation(event->process->id, call->correlation));
	if (call_is_cuda(call))
		add_details(out, &details);
	else
		add_other_args(out, call);
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

/* One that waited. */
static void write_waiting_call(struct chrome *chrome, const struct work_call *call, uint32_t place,
                               bool paired)
{
	struct buf *out = chrome->writer.out;
	size_t args;

	begin_call(chrome, call->function, call->process->pid, call->tid, call->begin_ns,
	           call->end_ns, chrome->waiting[place].stack);
	args = out->len;
	if (paired)
		add_u64(out, ", \"correlation\": ",
		        chrome_correlation(call->process->id, call->correlation));
	add_details(out, &chrome->waiting[place]);
	end_args(out, args);
}

/* ---- activities ----------------------------------------------------------------------------- */

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
	struct buf *out = chrome->writer.out, name = { 0 };
	uint32_t stack = chrome_stack(chrome->stacks, a->stack);

	buf_puts(&name, "");
	activity_name(a, &name);
	chrome_begin_event(&chrome->writer);
	buf_printf(out,
	           "\"ph\": \"X\", \"cat\": \"%s\", \"name\": ", activity_words[a->kind].chrome);
	buf_json_string(out, name.data);
	add_u64(out, ", \"pid\": ", a->device);
	add_u64(out, ", \"tid\": ", tid);
	ADD(out, ", \"ts\": ");
	chrome_add_time(&chrome->writer, a->begin_ns);
	ADD(out, ", \"dur\": ");
	buf_fixed(out, activity_duration_ns(a), 3);
	if (stack)
		add_u64(out, ", \"sf\": ", stack);
	add_u64(out, ", \"args\": {\"device\": ", a->device);
	add_u64(out, ", \"context\": ", a->context);
	add_u64(out, ", \"stream\": ", a->stream);
	add_u64(out, ", \"correlation\": ",
	        a->correlation ? chrome_correlation(process, a->correlation) : 0);
	if (a->kind == ACTIVITY_KERNEL)
		chrome_add_kernel(out, &chrome->gpu, a);
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

static void begin_flow(struct chrome *chrome, const struct process *process, uint32_t tid,
                       uint64_t correlation, uint64_t begin_ns)
{
	write_flow(chrome, "\"ph\": \"s\"", chrome_correlation(process->id, correlation),
	           process->pid, tid, begin_ns);
}

static void end_flow(struct chrome *chrome, uint32_t process, const struct activity *activity,
                     uint32_t tid)
{
	write_flow(chrome, "\"ph\": \"f\", \"bp\": \"e\"",
	           chrome_correlation(process, activity->correlation), activity->device, tid,
	           activity->begin_ns);
}

/* ---- pairs that are known beforehand --------------------------------------------------------- */

static bool asks_for_work(const struct call *call)
{
	return call_asks_for_work(call) && call_has_end(call);
}

static bool is_pair(const struct chrome *chrome, const struct event *event, uint64_t correlation,
                    enum correlation_mark other)
{
	return correlation &&
	       correlations_marks(chrome->sink.joined, event->process->id, correlation) & other;
}

static void add_known_call(struct chrome *chrome, const struct event *event)
{
	const struct call *call = event->call;
	bool paired =
		asks_for_work(call) && is_pair(chrome, event, call->correlation, CORRELATION_WORK);

	write_call(chrome, event, paired);
	if (paired)
		begin_flow(chrome, event->process, event->tid, call->correlation, call->begin_ns);
}

/* ---- pairs that the window joins ------------------------------------------------------------- */

static void keep_details(struct chrome *chrome, uint32_t place, const struct call *call)
{
	while (place >= chrome->n_waiting) {
		chrome->n_waiting = chrome->n_waiting ? 2 * chrome->n_waiting : 1024;
		chrome->waiting =
			xrealloc(chrome->waiting, chrome->n_waiting * sizeof(*chrome->waiting));
	}
	chrome->waiting[place] = details_of(chrome, call);
}

/* What ran for it before it returned was written then: but for its flow. */
static void tie_early(void *data, const struct work_done *done, const struct work_call *call)
{
	struct chrome *chrome = data;
	struct event event = { .type = EVENT_ACTIVITY,
		               .process = done->process,
		               .activity = done->activity };

	if (sink_wants(&chrome->sink, &event))
		end_flow(chrome, done->process->id, done->activity,
		         chrome_rows_activity(chrome->rows, done->process, done->activity));
}

static void add_call(struct chrome *chrome, const struct event *event)
{
	const struct work_now *now = work_now(chrome->sink.work);
	const struct call *call = event->call;

	if (!now->call || !asks_for_work(call)) {
		write_call(chrome, event, false);
	} else if (now->early) {
		write_call(chrome, event, true);
		begin_flow(chrome, event->process, event->tid, call->correlation, call->begin_ns);
		now->call->mark = TIED;
		work_tell_joined(chrome->sink.work, tie_early, chrome);
	} else {
		keep_details(chrome, now->place, call);
		now->call->mark = WAITS;
	}
}

static void write_in_vain(void *data, const struct work_call *call, uint32_t place)
{
	if (call->mark == WAITS)
		write_waiting_call(data, call, place, false);
}

/* Whether a flow is to end at an activity; it begins with the first that its call has. */
static bool tie(struct chrome *chrome)
{
	const struct work_now *now = work_now(chrome->sink.work);
	struct work_call *call = now->call;

	if (!call || !call->mark)
		return false;
	if (call->mark == WAITS) {
		write_waiting_call(chrome, call, now->place, true);
		begin_flow(chrome, call->process, call->tid, call->correlation, call->begin_ns);
		call->mark = TIED;
	}
	return true;
}

static void add_activity(struct chrome *chrome, const struct event *event)
{
	const struct activity *activity = event->activity;
	uint32_t process = event->process->id;
	uint32_t tid = chrome_rows_activity(chrome->rows, event->process, activity);
	bool paired = chrome->sink.joined
	                      ? is_pair(chrome, event, activity->correlation, CORRELATION_CALL)
	                      : tie(chrome);

	write_activity(chrome, process, activity, tid);
	if (paired)
		end_flow(chrome, process, activity, tid);
}

/* ---- the format ----------------------------------------------------------------------------- */

static int chrome_begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct chrome *chrome = (struct chrome *)self;

	chrome->sink.joins = !chrome->sink.joined;
	event_waits_rewind(chrome->event_waits);
	chrome_annotations_begin(chrome->annotations);
	chrome_gpu_of_run(&chrome->gpu, run);
	chrome_run_begin(&chrome->writer, &chrome->sink.options, run);
	return 0;
}

static int chrome_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct chrome *chrome = (struct chrome *)self;
	const struct work_now *now = work_now(chrome->sink.work);

	event_waits_event(chrome->event_waits, event);
	if (chrome->sink.joins && now->left)
		write_in_vain(chrome, now->left, now->left_place);
	if (!chrome->sink.wanted)
		return 0;
	chrome_annotations_event(chrome->annotations, event);
	switch (event->type) {
	case EVENT_CALL:
		chrome_rows_thread(chrome->rows, event->process, event->tid, NULL);
		if (chrome->sink.joined)
			add_known_call(chrome, event);
		else
			add_call(chrome, event);
		break;
	case EVENT_OTHER_CALL:
		chrome_rows_thread(chrome->rows, event->process, event->tid, NULL);
		write_call(chrome, event, false);
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
	case EVENT_RANGE:
		chrome_add_range(&chrome->writer, chrome->rows, chrome->event_waits, event);
		break;
	case EVENT_SAMPLE:
		chrome_rows_thread(chrome->rows, event->process, event->tid, NULL);
		chrome_add_sample(&chrome->writer, chrome->stacks, event);
		break;
	case EVENT_METRICS:
		chrome_add_metrics(&chrome->writer, event);
		break;
	case EVENT_EXIT:
	case EVENT_CALL_BEGIN:
	case EVENT_STALL:
		break;
	}
	return 0;
}

static int chrome_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct chrome *chrome = (struct chrome *)self;

	if (!chrome->sink.joined)
		work_each_open(chrome->sink.work, write_in_vain, chrome);
	chrome_annotations_write(chrome->annotations, &chrome->writer, chrome->rows);
	chrome_rows_end(chrome->rows, run);
	chrome_run_end(&chrome->writer, chrome->rows, chrome->stacks, &chrome->sink, run);
	return 0;
}

static void chrome_free(struct consumer *self)
{
	struct chrome *chrome = (struct chrome *)self;

	fragments_free(&chrome->functions);
	chrome_rows_free(chrome->rows);
	chrome_stacks_free(chrome->stacks);
	event_waits_free(chrome->event_waits);
	chrome_annotations_free(chrome->annotations);
	free(chrome->waiting);
	free(chrome);
}

static const struct consumer_ops chrome_ops = {
	.metrics = true,
	.begin = chrome_begin,
	.event = chrome_event,
	.end = chrome_end,
	.free = chrome_free,
};

static void look_ahead(struct sink *sink, const struct event *event)
{
	struct chrome *chrome = (struct chrome *)sink;

	event_waits_event(chrome->event_waits, event);
	chrome_rows_look_ahead(chrome->rows, event);
	if (sink_wants(sink, event))
		chrome_annotations_look_ahead(chrome->annotations, event);
}

struct consumer *chrome_new(const struct sink_options *options)
{
	struct chrome *chrome = xcalloc(1, sizeof(*chrome));
	struct consumer *consumer = sink_init(&chrome->sink, &chrome_ops, options);

	chrome->sink.gpu = true;
	chrome->sink.samples = true;
	chrome->stacks = chrome_stacks_new();
	chrome->event_waits = event_waits_new();
	chrome->annotations = chrome_annotations_new();
	chrome->sink.look_ahead = look_ahead;
	chrome->sink.hide_nested = true;
	chrome->writer.out = &chrome->sink.lines.pending;
	chrome->rows = chrome_rows_new(&chrome->writer);
	chrome->sink.asks_for_work = asks_for_work;
	return consumer;
}
