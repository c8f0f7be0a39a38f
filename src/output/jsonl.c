// SPDX-License-Identifier: MIT
/*
 * One JSON object a line; docs/jsonl.md describes the keys. This is the format for a million calls
 * a second, so nothing here goes through printf. What is the same for every call of a function or a
 * process is made once (struct fragments).
 */
#include <stdlib.h>
#include <string.h>

#include "analysis/memory.h"
#include "analysis/missed.h"
#include "base/json.h"
#include "base/number.h"
#include "base/xalloc.h"
#include "cuda/error.h"
#include "output/describe.h"
#include "output/format.h"
#include "output/jsonl_parts.h"

#define FORMAT_VERSION 1

struct jsonl {
	struct sink sink; /* first */
	uint64_t next_id;
	struct memory *memory; /* of all calls, shown or not, for total_allocated */
	uint64_t memory_bytes; /* of the allocation that the current call made or freed */
	bool gpu;              /* there are GPU times: calls tell their numbers */
	struct fragments names, functions, processes, kernels;
	struct jsonl_stacks stacks;
};

/* ---- pieces -------------------------------------------------------------------------------- */

/* A string constant, its length known to the compiler. */
#define ADD(out, text) buf_add(out, text, sizeof(text) - 1)

static void add_key_u64(struct buf *out, const char *key, size_t len, uint64_t value)
{
	buf_add(out, key, len);
	buf_u64(out, value);
}

#define ADD_U64(out, key, value) add_key_u64(out, key, sizeof(key) - 1, value)

static void add_key_hex(struct buf *out, const char *key, size_t len, uint64_t value)
{
	buf_add(out, key, len);
	buf_putc(out, '"');
	buf_hex(out, value);
	buf_putc(out, '"');
}

#define ADD_HEX(out, key, value) add_key_hex(out, key, sizeof(key) - 1, value)

static void add_fragment(struct buf *out, const struct buf *text)
{
	buf_add(out, text->data, text->len);
}

static const struct buf *name_fragment(struct jsonl *jsonl, const struct function *function)
{
	struct buf *text = fragment(&jsonl->names, function->id);

	if (!text->len) {
		buf_puts(text, ",\"name\":");
		buf_json_string(text, function->name);
		buf_puts(text, ",\"depth\":");
	}
	return text;
}

static const struct buf *function_fragment(struct jsonl *jsonl, const struct function *function)
{
	struct buf *text = fragment(&jsonl->functions, function->id);

	if (!text->len) {
		buf_puts(text, ",\"lib\":");
		buf_json_string(text, function->lib);
		buf_printf(text, ",\"layer\":\"%s\",\"class\":\"%s\"",
		           api_layer_name(function->layer), api_class_name(function->cls));
	}
	return text;
}

static const struct buf *process_fragment(struct jsonl *jsonl, const struct process *process)
{
	struct buf *text = fragment(&jsonl->processes, process->id);

	if (!text->len) {
		buf_printf(text, ",\"pid\":%u,\"comm\":", process->pid);
		buf_json_string(text, process->comm);
	}
	return text;
}

/* A name that is still to be found is not kept. */
static void add_kernel(struct jsonl *jsonl, struct buf *out, const struct kernel *kernel)
{
	struct buf *text = fragment(&jsonl->kernels, kernel->id);

	if (!text->len) {
		buf_puts(text, ",\"kernel\":");
		kernel_add_json(kernel, text);
	}
	add_fragment(out, text);
	if (kernel->resolved)
		return;
	ADD(out, ",\"unresolved\":true");
	buf_reset(text);
}

/* ---- what a call did ------------------------------------------------------------------------- */

static void add_launch(struct jsonl *jsonl, struct buf *out, const struct call *call)
{
	const uint32_t *g = call->args.grid, *b = call->args.block;
	uint64_t blocks = (uint64_t)g[0] * g[1] * g[2];

	if (call->kernel)
		add_kernel(jsonl, out, call->kernel);
	if (call->args.handle)
		ADD_HEX(out, ",\"handle\":", call->args.handle);
	ADD(out, ",\"grid\":");
	add_dims_json(out, g);
	ADD(out, ",\"block\":");
	add_dims_json(out, b);
	ADD_U64(out, ",\"threads\":", blocks * b[0] * b[1] * b[2]);
	ADD_U64(out, ",\"shmem\":", call->args.shmem_bytes);
}

static void add_memory(struct jsonl *jsonl, struct buf *out, const struct event *event)
{
	const struct call *call = event->call;
	bool alloc = call->op == OP_ALLOC;

	ADD(out, ",\"memory\":\"");
	buf_puts(out, api_memory_name(api_memory(call->function->api)));
	buf_putc(out, '"');
	if (alloc || jsonl->memory_bytes)
		ADD_U64(out, ",\"size\":", alloc ? call->args.bytes : jsonl->memory_bytes);
	if (call->args.address)
		ADD_HEX(out, ",\"ptr\":", call->args.address);
	if (!(call->flags & CALL_NESTED))
		ADD_U64(out,
		        ",\"total_allocated\":", memory_live_bytes(jsonl->memory, event->process));
}

/* Where the call waits for the data, its duration is the transfer's; elsewhere it tells nothing. */
static void add_bandwidth(struct buf *out, const struct call *call)
{
	uint64_t ns = call_duration_ns(call);

	if (api_is_async(call->function->api) || !call_has_output(call) || !ns ||
	    (call->flags & CALL_SIZE_UNKNOWN))
		return;
	ADD(out, ",\"duration_ms\":");
	buf_fixed(out, ns, 6);
	ADD(out, ",\"bandwidth_gbps\":");
	buf_fixed(out, number_u64((double)call->args.bytes * 1e6 / (double)ns), 6);
}

static void add_size(struct buf *out, const struct call *call)
{
	if (call->flags & CALL_SIZE_UNKNOWN)
		ADD(out, ",\"size\":null");
	else
		ADD_U64(out, ",\"size\":", call->args.bytes);
}

static void add_transfer(struct buf *out, const struct call *call)
{
	if (call->args.direction != DIRECTION_NONE) {
		ADD(out, ",\"direction\":\"");
		buf_puts(out, api_direction_name(call->args.direction));
		buf_putc(out, '"');
	}
	add_size(out, call);
	add_bandwidth(out, call);
	ADD_HEX(out, ",\"dst\":", call->args.address);
	ADD_HEX(out, ",\"src\":", call->args.source);
}

static void add_work(struct jsonl *jsonl, struct buf *out, const struct event *event)
{
	const struct call *call = event->call;

	ADD(out, ",\"op\":\"");
	buf_puts(out, jsonl_op(call->op));
	buf_putc(out, '"');
	switch (call->op) {
	case OP_LAUNCH:
		add_launch(jsonl, out, call);
		break;
	case OP_ALLOC:
	case OP_FREE:
		add_memory(jsonl, out, event);
		break;
	case OP_COPY:
		add_transfer(out, call);
		break;
	case OP_SET:
		add_size(out, call);
		ADD_HEX(out, ",\"dst\":", call->args.address);
		break;
	case OP_MAP:
	case OP_UNMAP:
		if (jsonl->memory_bytes)
			ADD_U64(out, ",\"freed\":", jsonl->memory_bytes);
		break;
	default:
		break;
	}
}

/* ---- the other arguments --------------------------------------------------------------------- */

/* Whether the argument is not for "args": a key of its own, written above, holds it. */
static bool has_own_key(const struct call *call, enum api_type type, uint64_t value)
{
	enum api_op op = call->op;

	switch (type) {
	case T_GRID:
	case T_BLOCK:
	case T_SHMEM:
	case T_KERNEL:
		return op == OP_LAUNCH;
	case T_ADDR: /* of a launch: where its parameters are, which says nothing without them */
		return op == OP_LAUNCH;
	case T_PTR:
		return op == OP_ALLOC || op == OP_FREE;
	case T_BYTES: /* or one of the factors that make up the size */
		return value == call->args.bytes;
	case T_DST:
		return op == OP_COPY || op == OP_SET;
	case T_SRC:
	case T_COPYKIND:
		return op == OP_COPY;
	case T_STREAM:
		return call->args.has_stream;
	case T_EVENT:
		return op == OP_EVENT_RECORD || op == OP_EVENT_WAIT || op == OP_SYNC;
	default:
		return false;
	}
}

static void add_args(struct buf *out, const struct call *call)
{
	const struct api_arg *args;
	size_t n = call_args(call, &args);
	bool outputs = call_has_output(call), any = false;

	for (size_t i = 0; i < n; i++) {
		if ((args[i].out && !outputs) || has_own_key(call, args[i].type, call->args.arg[i]))
			continue;
		buf_puts(out, any ? ",\"" : ",\"args\":{\"");
		buf_puts(out, args[i].name); /* of the table of functions: needs no escapes */
		ADD(out, "\":");
		add_arg_json(out, call, args[i].type, call->args.arg[i]);
		any = true;
	}
	if (any)
		buf_putc(out, '}');
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void begin_line(struct jsonl *jsonl, struct buf *out, uint64_t time_ns)
{
	ADD_U64(out, "{\"event_id\":", jsonl->next_id++);
	ADD(out, ",\"ts\":");
	sink_add_time(&jsonl->sink, out, time_ns, 6);
}

static void end_line(struct buf *out)
{
	ADD(out, "}\n");
}

/* The keys that every line of a call has, up to its depth. */
static void begin_call(struct jsonl *jsonl, struct buf *out, const struct event *event, char phase,
                       uint64_t time_ns)
{
	const struct call *call = event->call;

	begin_line(jsonl, out, time_ns);
	ADD_U64(out, ",\"tid\":", event->tid);
	ADD(out, ",\"phase\":\"");
	buf_putc(out, phase);
	ADD(out, "\",\"type\":\"");
	buf_puts(out, jsonl_type(call));
	buf_putc(out, '"');
	add_fragment(out, name_fragment(jsonl, call->function));
	buf_u64(out, call->depth);
}

static void add_result_keys(struct buf *out, const struct call *call)
{
	const char *name;

	if (!call_has_end(call))
		return;
	ADD(out, ",\"duration_us\":");
	buf_fixed(out, call_duration_ns(call), 3);
	ADD(out, ",\"retval\":");
	buf_s64(out, call->result);
	if (!(call->flags & CALL_FAILED))
		return;
	name = cuda_error_name(call->function->layer, call->result);
	ADD(out, ",\"error\":");
	buf_json_string(out, name ? name : "unknown error");
}

static void add_flags(struct buf *out, uint32_t flags)
{
	if (flags & CALL_NESTED)
		ADD(out, ",\"nested\":true");
	if (flags & CALL_CAPTURED)
		ADD(out, ",\"captured\":true");
	if (flags & CALL_UNFINISHED)
		ADD(out, ",\"unfinished\":true");
}

/* Before the first line that refers to it. */
static void add_stack(struct jsonl *jsonl, const struct stack *stack, uint64_t time_ns)
{
	struct buf *out = &jsonl->sink.lines.pending;

	if (!stack || !jsonl_stacks_meet(&jsonl->stacks, stack))
		return;
	begin_line(jsonl, out, time_ns);
	jsonl_add_stack(out, stack);
	end_line(out);
}

/* The same of a name that is cut where lines have it. */
static void add_kernel_name(struct jsonl *jsonl, const struct kernel *kernel, uint64_t time_ns)
{
	struct buf *out = &jsonl->sink.lines.pending;

	if (!kernel || !kernel_is_cut(kernel) || fragment(&jsonl->kernels, kernel->id)->len)
		return;
	begin_line(jsonl, out, time_ns);
	ADD(out, ",\"type\":\"kernel_name\"");
	add_kernel(jsonl, out, kernel);
	ADD(out, ",\"name\":");
	buf_json_string(out, kernel->name);
	end_line(out);
}

static void add_call(struct jsonl *jsonl, const struct event *event, char phase, uint64_t time_ns)
{
	struct buf *out = &jsonl->sink.lines.pending;
	const struct call *call = event->call;

	add_kernel_name(jsonl, call->kernel, time_ns);
	add_stack(jsonl, call->stack, time_ns);
	begin_call(jsonl, out, event, phase, time_ns);
	add_result_keys(out, call);
	add_fragment(out, process_fragment(jsonl, event->process));
	add_fragment(out, function_fragment(jsonl, call->function));
	if (call->op != OP_NONE)
		add_work(jsonl, out, event);
	if (call->function->api && api_is_async(call->function->api))
		ADD(out, ",\"async\":true");
	if (call_has_stream(call))
		ADD_HEX(out, ",\"stream\":", call->args.stream);
	if (call->args.event)
		ADD_HEX(out, ",\"event\":", call->args.event);
	if (jsonl->gpu && call->correlation)
		ADD_U64(out, ",\"correlation\":", call->correlation);
	jsonl_add_stack_of(out, call->stack);
	add_flags(out, call->flags);
	add_args(out, call);
	end_line(out);
}

static void add_begin(struct jsonl *jsonl, const struct event *event)
{
	struct buf *out = &jsonl->sink.lines.pending;

	begin_call(jsonl, out, event, 'B', event->call->begin_ns);
	add_fragment(out, process_fragment(jsonl, event->process));
	add_fragment(out, function_fragment(jsonl, event->call->function));
	end_line(out);
}

static void add_process(struct jsonl *jsonl, const struct event *event, const char *op)
{
	struct buf *out = &jsonl->sink.lines.pending;

	begin_line(jsonl, out, event->time_ns);
	ADD_U64(out, ",\"tid\":", event->tid ? event->tid : event->process->pid);
	buf_printf(out, ",\"type\":\"process\",\"op\":\"%s\"", op);
	add_fragment(out, process_fragment(jsonl, event->process));
	end_line(out);
}

static void add_activity(struct jsonl *jsonl, const struct event *event)
{
	struct buf *out = &jsonl->sink.lines.pending;
	struct delay delay = delay_of(&jsonl->sink, event);

	add_kernel_name(jsonl, event->activity->kernel, event->activity->begin_ns);
	add_stack(jsonl, event->activity->stack, event->activity->begin_ns);
	begin_line(jsonl, out, event->activity->begin_ns);
	jsonl_begin_activity(out, event->activity, &delay);
	add_fragment(out, process_fragment(jsonl, event->process));
	jsonl_add_activity(out, event->activity);
	jsonl_add_stack_of(out, event->activity->stack);
	end_line(out);
}

static void add_range(struct jsonl *jsonl, const struct event *event)
{
	struct buf *out = &jsonl->sink.lines.pending;

	begin_line(jsonl, out, event->range->begin_ns);
	jsonl_begin_range(out, event->range, delay_of(&jsonl->sink, event).tid);
	add_fragment(out, process_fragment(jsonl, event->process));
	jsonl_add_range(out, event->range);
	end_line(out);
}

static void add_sample(struct jsonl *jsonl, const struct event *event)
{
	struct buf *out = &jsonl->sink.lines.pending;

	add_stack(jsonl, event->sample->stack, event->time_ns);
	begin_line(jsonl, out, event->time_ns);
	jsonl_begin_sample(out, event);
	add_fragment(out, process_fragment(jsonl, event->process));
	jsonl_add_stack_of(out, event->sample->stack);
	end_line(out);
}

static void add_metrics(struct jsonl *jsonl, const struct event *event)
{
	struct buf *out = &jsonl->sink.lines.pending;

	begin_line(jsonl, out, event->metrics->begin_ns);
	jsonl_add_metrics(out, event->metrics);
	end_line(out);
}

static void add_stall(struct jsonl *jsonl, const struct event *event)
{
	const struct stall *stall = event->stall;
	struct buf *out = &jsonl->sink.lines.pending;

	if (stall->kernel)
		add_kernel_name(jsonl, stall->kernel, stall->begin_ns);
	begin_line(jsonl, out, stall->begin_ns);
	ADD(out, ",\"type\":\"stall\"");
	add_fragment(out, process_fragment(jsonl, event->process));
	if (stall->kernel)
		add_kernel(jsonl, out, stall->kernel);
	jsonl_add_stall(out, stall);
	end_line(out);
}

/* ---- the format ------------------------------------------------------------------------------ */

static int jsonl_begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct sink *sink = &((struct jsonl *)self)->sink;
	struct buf *out = &sink->lines.pending;

	((struct jsonl *)self)->gpu = run->gpu_times;
	begin_line((struct jsonl *)self, out, sink->begin_ns);
	ADD_U64(out, ",\"type\":\"trace\",\"format\":", FORMAT_VERSION);
	ADD(out, ",\"realtime_ns\":");
	buf_s64(out, (int64_t)sink->begin_ns + sink->realtime_offset_ns);
	end_line(out);
	return 0;
}

static void add_call_end(struct jsonl *jsonl, const struct event *event)
{
	const struct sink_options *options = &jsonl->sink.options;
	const struct call *call = event->call;

	if (!options->begin_end || call->flags & CALL_NO_RETURN) {
		add_call(jsonl, event, 'X', call->begin_ns);
		return;
	}
	if (sink_begins_late(options))
		add_begin(jsonl, event);
	add_call(jsonl, event, 'E', call_has_end(call) ? call->end_ns : event->time_ns);
}

static int jsonl_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct jsonl *jsonl = (struct jsonl *)self;

	jsonl->memory_bytes = memory_event(jsonl->memory, event);
	jsonl->gpu |= event->type == EVENT_ACTIVITY;
	if (!jsonl->sink.wanted)
		return 0;
	switch (event->type) {
	case EVENT_CALL:
		add_call_end(jsonl, event);
		break;
	case EVENT_OTHER_CALL:
		add_call(jsonl, event, 'X', event->call->begin_ns);
		break;
	case EVENT_CALL_BEGIN:
		add_begin(jsonl, event);
		break;
	case EVENT_PROCESS:
		add_process(jsonl, event, "start");
		break;
	case EVENT_EXIT:
		add_process(jsonl, event, "exit");
		break;
	case EVENT_ACTIVITY:
		add_activity(jsonl, event);
		break;
	case EVENT_RANGE:
		add_range(jsonl, event);
		break;
	case EVENT_SAMPLE:
		add_sample(jsonl, event);
		break;
	case EVENT_METRICS:
		add_metrics(jsonl, event);
		break;
	case EVENT_STALL:
		add_stall(jsonl, event);
		break;
	case EVENT_THREAD:
		break;
	}
	return 0;
}

/* The last line says what was missed; a file without it was cut short. */
static int jsonl_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct sink *sink = &((struct jsonl *)self)->sink;
	struct buf *out = &sink->lines.pending;
	struct json json = { .out = out, .depth = 1, .comma = true };

	begin_line((struct jsonl *)self, out, run->end_ns);
	json_string(&json, "type", "summary");
	json_fixed(&json, "duration_ms", run->end_ns - run->begin_ns, 6);
	json_u64(&json, "calls", sink->calls);
	json_bool(&json, "returns", run->returns);
	json_fixed(&json, "estimate_scale", number_rounded(run->estimate_scale * 1e6), 6);
	missed_json_and_stacks(&json, run, &sink->stacks);
	end_line(out);
	return 0;
}

static void jsonl_free(struct consumer *self)
{
	struct jsonl *jsonl = (struct jsonl *)self;

	fragments_free(&jsonl->names);
	fragments_free(&jsonl->functions);
	fragments_free(&jsonl->processes);
	fragments_free(&jsonl->kernels);
	jsonl_stacks_free(&jsonl->stacks);
	memory_free(jsonl->memory);
	free(jsonl);
}

static const struct consumer_ops jsonl_ops = {
	.metrics = true,
	.stalls = true,
	.begin = jsonl_begin,
	.event = jsonl_event,
	.end = jsonl_end,
	.free = jsonl_free,
};

struct consumer *jsonl_new(const struct sink_options *options)
{
	struct jsonl *jsonl = xcalloc(1, sizeof(*jsonl));

	jsonl->next_id = 1;
	jsonl->memory = memory_new();
	jsonl->sink.joins = true;
	jsonl->sink.gpu = true;
	jsonl->sink.samples = true;
	return sink_init(&jsonl->sink, &jsonl_ops, options);
}
