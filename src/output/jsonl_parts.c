// SPDX-License-Identifier: MIT
#include "output/jsonl_parts.h"

#include <stdlib.h>

#include "analysis/by_id.h"
#include "base/number.h"
#include "output/format.h"
#include "output/describe.h"

static void add_u64(struct buf *out, const char *key, uint64_t value)
{
	buf_puts(out, key);
	buf_u64(out, value);
}

static void add_unless_0(struct buf *out, const char *key, uint64_t value)
{
	if (value)
		add_u64(out, key, value);
}

static void add_word(struct buf *out, const char *key, const char *word)
{
	buf_puts(out, key);
	buf_putc(out, '"');
	buf_puts(out, word);
	buf_putc(out, '"');
}

static void add_text(struct buf *out, const char *key, const char *text)
{
	buf_puts(out, key);
	buf_json_string(out, text);
}

static void add_us(struct buf *out, const char *key, uint64_t ns)
{
	buf_puts(out, key);
	buf_fixed(out, ns, 3);
}

/* ---- activities ---------------------------------------------------------------------------- */

void jsonl_begin_activity(struct buf *out, const struct activity *activity,
                          const struct delay *delay)
{

	add_unless_0(out, ",\"tid\":", delay->tid);
	buf_puts(out, ",\"phase\":\"X\",\"type\":\"gpu\"");
	add_word(out, ",\"op\":", activity_words[activity->kind].op);
	add_us(out, ",\"duration_us\":", activity_duration_ns(activity));
	if (delay->queued)
		add_us(out, ",\"queue_us\":", delay->queue_ns);
}

static void add_kernel(struct buf *out, const struct activity *a)
{
	if (a->kernel) {
		buf_puts(out, ",\"kernel\":");
		kernel_add_json(a->kernel, out);
	}
	if (a->kernel && !a->kernel->resolved)
		buf_puts(out, ",\"unresolved\":true");
	buf_puts(out, ",\"grid\":");
	add_dims_json(out, a->grid);
	buf_puts(out, ",\"block\":");
	add_dims_json(out, a->block);
	add_u64(out, ",\"registers\":", a->registers);
	add_u64(out, ",\"shmem\":", (uint64_t)a->shmem_static + a->shmem_dynamic);
}

static void add_transfer(struct buf *out, const struct activity *a)
{
	uint64_t ns = activity_duration_ns(a);

	if (a->kind == ACTIVITY_COPY && a->direction != DIRECTION_NONE)
		add_word(out, ",\"direction\":", api_direction_name(a->direction));
	add_u64(out, ",\"size\":", a->bytes);
	if (ns) {
		buf_puts(out, ",\"bandwidth_gbps\":");
		buf_fixed(out, number_u64((double)a->bytes * 1e6 / (double)ns), 6);
	}
	if (a->kind == ACTIVITY_COPY)
		add_word(out, ",\"src_memory\":", activity_memory_name(a->source));
	add_word(out, ",\"dst_memory\":", activity_memory_name(a->destination));
	if (a->kind == ACTIVITY_COPY && a->direction == DIRECTION_P2P)
		add_u64(out, ",\"peer_device\":", a->peer_device);
}

void jsonl_add_activity(struct buf *out, const struct activity *a)
{
	add_u64(out, ",\"device\":", a->device);
	add_u64(out, ",\"context\":", a->context);
	add_u64(out, ",\"stream\":", a->stream);
	add_unless_0(out, ",\"correlation\":", a->correlation);
	if (a->kind == ACTIVITY_KERNEL)
		add_kernel(out, a);
	else if (activity_is_transfer(a))
		add_transfer(out, a);
	add_unless_0(out, ",\"graph\":", a->graph);
	add_unless_0(out, ",\"graph_node\":", a->graph_node);
}

/* ---- ranges -------------------------------------------------------------------------------- */

void jsonl_begin_range(struct buf *out, const struct range *range, uint32_t tid)
{

	add_unless_0(out, ",\"tid\":", tid);
	buf_puts(out, ",\"phase\":\"X\",\"type\":\"range\"");
	add_word(out, ",\"op\":", range_words[range->kind].op);
	add_text(out, ",\"name\":", range->name);
	if (range->kind == RANGE_PUSHPOP)
		add_u64(out, ",\"depth\":", range->depth);
	add_us(out, ",\"duration_us\":", range_duration_ns(range));
}

void jsonl_add_range(struct buf *out, const struct range *range)
{
	if (range->domain)
		add_text(out, ",\"domain\":", range->domain);
	add_unless_0(out, ",\"context\":", range->context);
	add_unless_0(out, ",\"stream\":", range->stream);
	add_unless_0(out, ",\"correlation\":", range->correlation);
}

/* ---- metrics ------------------------------------------------------------------------------- */

void jsonl_add_metrics(struct buf *out, const struct gpu_metrics_sample *sample)
{
	uint64_t ns = sample->end_ns > sample->begin_ns ? sample->end_ns - sample->begin_ns : 0;

	buf_puts(out, ",\"type\":\"gpu_metrics\"");
	add_u64(out, ",\"gpu\":", sample->gpu);
	add_word(out, ",\"source\":", gpu_metrics_source_name(sample->source));
	add_us(out, ",\"duration_us\":", ns);
	for (enum gpu_metric i = 0; i < GPU_METRICS; i++) {
		const struct gpu_metric_info *info = gpu_metric_info(i);

		if (sample->value[i] == GPU_METRIC_UNKNOWN)
			continue;
		buf_printf(out, ",\"%s_%s\":", info->key,
		           info->is_rate ? "bytes_per_s" : "percent");
		gpu_metric_print(out, i, sample->value[i]);
	}
}

/* ---- stalls -------------------------------------------------------------------------------- */

void jsonl_add_stall(struct buf *out, const struct stall *stall)
{
	add_us(out, ",\"duration_us\":",
	       stall->end_ns > stall->begin_ns ? stall->end_ns - stall->begin_ns : 0);
	add_u64(out, ",\"samples\":", stall->samples);
	if (!stall->kernel) {
		add_unless_0(out, ",\"dropped\":", stall->dropped);
		add_unless_0(out, ",\"foreign\":", stall->foreign);
		add_us(out, ",\"cost_us\":", stall->cost_ns);
		return;
	}
	add_text(out, ",\"reason\":", stall->reason);
	if (stall->offset != STALL_ANYWHERE)
		add_u64(out, ",\"offset\":", stall->offset);
	if (stall->file)
		add_text(out, ",\"file\":", stall->file);
	add_unless_0(out, ",\"line\":", stall->line);
}

/* ---- words --------------------------------------------------------------------------------- */

static const char *const op_names[OP_COUNT] = {
	[OP_LAUNCH] = "launch",
	[OP_GRAPH_LAUNCH] = "graph_launch",
	[OP_HOST_LAUNCH] = "host_launch",
	[OP_ALLOC] = "alloc",
	[OP_FREE] = "free",
	[OP_COPY] = "copy",
	[OP_SET] = "set",
	[OP_SYNC] = "sync",
	[OP_STREAM_CREATE] = "stream_create",
	[OP_STREAM_DESTROY] = "stream_destroy",
	[OP_CAPTURE_BEGIN] = "capture_begin",
	[OP_CAPTURE_END] = "capture_end",
	[OP_EVENT_RECORD] = "event_record",
	[OP_EVENT_WAIT] = "event_wait",
	[OP_NAME_KERNEL] = "name_kernel",
	[OP_MODULE_UNLOAD] = "module_unload",
	[OP_CONTEXT_DESTROY] = "context_destroy",
	[OP_MAP] = "map",
	[OP_UNMAP] = "unmap",
	[OP_RETAIN] = "retain",
	[OP_INSTANTIATE] = "instantiate",
	[OP_GRAPH_ALLOC] = "graph_alloc",
	[OP_GRAPH_FREE] = "graph_free",
};

const char *jsonl_op(enum api_op op)
{
	return op_names[op];
}

const char *jsonl_type(const struct call *call)
{
	if (!call_is_cuda(call))
		return call->function->layer == LAYER_KERNEL ? "kernel_side" : "hook";
	switch (call->op) {
	case OP_LAUNCH:
		return "kernel";
	case OP_ALLOC:
	case OP_FREE:
		return "memory";
	case OP_COPY:
		return "transfer";
	default:
		return "userspace";
	}
}

/* ---- stacks -------------------------------------------------------------------------------- */

void jsonl_stacks_free(struct jsonl_stacks *stacks)
{
	free(stacks->told);
}

bool jsonl_stacks_meet(struct jsonl_stacks *stacks, const struct stack *stack)
{
	stacks->told = by_id_room(stacks->told, &stacks->n, sizeof(*stacks->told), stack->id);
	if (stacks->told[stack->id])
		return false;
	return stacks->told[stack->id] = true;
}

static void stacks_add_text(struct buf *out, const char *key, const char *text)
{
	if (!text)
		return;
	buf_puts(out, key);
	buf_json_string(out, text);
}

static void add_frame(struct buf *out, const struct stack_frame *frame)
{
	buf_printf(out, "{\"kind\":\"%s\"", frame_kind_name(frame->kind));
	stacks_add_text(out, ",\"function\":", frame->function);
	stacks_add_text(out, ",\"module\":", frame->module);
	stacks_add_text(out, ",\"file\":", frame->file);
	if (frame->line)
		buf_printf(out, ",\"line\":%u", frame->line);
	if (frame->first_line)
		buf_printf(out, ",\"first_line\":%u", frame->first_line);
	if (frame->offset)
		buf_printf(out, ",\"offset\":\"0x%lx\"", frame->offset);
	stacks_add_text(out, ",\"build_id\":", frame->build_id);
	if (frame->inlined)
		buf_puts(out, ",\"inlined\":true");
	buf_putc(out, '}');
}

void jsonl_add_stack(struct buf *out, const struct stack *stack)
{
	buf_printf(out, ",\"type\":\"stack\",\"stack\":%u,\"whole\":%s", stack->id,
	           stack->end == STACK_WHOLE && !stack->python_cut ? "true" : "false");
	if (stack->end != STACK_WHOLE)
		stacks_add_text(out, ",\"ends_at\":", stack_end_text(stack->end));
	if (stack->python_cut)
		buf_puts(out, ",\"python_cut\":true");
	buf_puts(out, ",\"frames\":[");
	for (size_t i = 0; i < stack->n_frames; i++) {
		if (i)
			buf_putc(out, ',');
		add_frame(out, stack->frames[i]);
	}
	buf_putc(out, ']');
}

/* ---- samples ------------------------------------------------------------------------------- */

/* How a blocked thread went on, or of what it is the sum. */
static void add_blocked(struct buf *out, const struct sample *sample)
{
	buf_printf(out, ",\"blocked\":\"%s\"", blocked_name(sample->blocked));
	stacks_add_text(out, ",\"woken_by\":", sample->waker);
	if (sample->waker_tid)
		buf_printf(out, ",\"woken_by_tid\":%u", sample->waker_tid);
	if (sample->count > 1)
		buf_printf(out, ",\"count\":%lu", sample->count);
	stacks_add_text(out, ",\"waited_for\":", wait_kind_name(sample->wait));
	if (sample->runnable_ns) {
		buf_puts(out, ",\"runnable_us\":");
		buf_fixed(out, sample->runnable_ns, 3);
	}
	stacks_add_text(out, ",\"rival\":", sample->rival);
	if (sample->rival_pid)
		buf_printf(out, ",\"rival_pid\":%u", sample->rival_pid);
}

void jsonl_begin_sample(struct buf *out, const struct event *event)
{
	buf_printf(out, ",\"tid\":%u,\"type\":\"sample\",\"op\":\"%s\",\"weight_us\":", event->tid,
	           event->sample->kind == SAMPLE_OFF_CPU ? "off_cpu" : "cpu");
	buf_fixed(out, event->sample->weight_ns, 3);
	if (event->sample->kind == SAMPLE_OFF_CPU)
		add_blocked(out, event->sample);
}

void jsonl_add_stack_of(struct buf *out, const struct stack *stack)
{
	if (!stack)
		return;
	buf_puts(out, ",\"stack\":");
	buf_u64(out, stack->id);
}
