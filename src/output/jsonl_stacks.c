// SPDX-License-Identifier: MIT
#include "output/jsonl_stacks.h"

#include <stdlib.h>

#include "analysis/by_id.h"
#include "output/frames.h"

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

static void add_text(struct buf *out, const char *key, const char *text)
{
	if (!text)
		return;
	buf_puts(out, key);
	buf_json_string(out, text);
}

static void add_frame(struct buf *out, const struct stack_frame *frame)
{
	buf_printf(out, "{\"kind\":\"%s\"", frame_kind_name(frame->kind));
	add_text(out, ",\"function\":", frame->function);
	add_text(out, ",\"module\":", frame->module);
	add_text(out, ",\"file\":", frame->file);
	if (frame->line)
		buf_printf(out, ",\"line\":%u", frame->line);
	if (frame->first_line)
		buf_printf(out, ",\"first_line\":%u", frame->first_line);
	if (frame->offset)
		buf_printf(out, ",\"offset\":\"0x%llx\"", (unsigned long long)frame->offset);
	add_text(out, ",\"build_id\":", frame->build_id);
	if (frame->inlined)
		buf_puts(out, ",\"inlined\":true");
	buf_putc(out, '}');
}

void jsonl_add_stack(struct buf *out, const struct stack *stack)
{
	buf_printf(out, ",\"type\":\"stack\",\"stack\":%u,\"whole\":%s", stack->id,
	           stack->end == STACK_WHOLE && !stack->python_cut ? "true" : "false");
	if (stack->end != STACK_WHOLE)
		add_text(out, ",\"ends_at\":", stack_end_text(stack->end));
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
	add_text(out, ",\"woken_by\":", sample->waker);
	if (sample->waker_tid)
		buf_printf(out, ",\"woken_by_tid\":%u", sample->waker_tid);
	if (sample->count > 1)
		buf_printf(out, ",\"count\":%llu", (unsigned long long)sample->count);
	add_text(out, ",\"waited_for\":", wait_kind_name(sample->wait));
	if (sample->runnable_ns) {
		buf_puts(out, ",\"runnable_us\":");
		buf_fixed(out, sample->runnable_ns, 3);
	}
	add_text(out, ",\"rival\":", sample->rival);
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
