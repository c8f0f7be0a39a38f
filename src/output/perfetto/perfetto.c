// SPDX-License-Identifier: MIT
/*
 * The native format of Perfetto's trace viewer. A call is a slice on its thread's track, what ran
 * on the GPU is one on its stream's; flows lead from one to the other. docs/export.md says what is
 * shown.
 *
 * Packets need not be in order of time: a slice is written when it has ended, its begin and its end
 * one after the other. trace_processor sorts, keeping the order of what has the same time.
 */
#include <stdlib.h>
#include <string.h>

#include "analysis/correlations.h"
#include "analysis/memory.h"
#include "analysis/work.h"
#include "base/xalloc.h"
#include "gpus/gpu_metrics.h"
#include "output/format.h"
#include "output/perfetto/perfetto.h"

/* ---- perfetto counters --------------------------------------------------------------------- */

/* Live memory as counters of a process. */

void perfetto_set_counter(struct perfetto *p, const struct process *process, uint64_t time_ns,
                          enum api_memory kind, int64_t value)
{
	struct buf *out = &p->sink.lines.pending;
	uint64_t track = perfetto_counter_track(p->tracks, process, kind);
	struct open_event open = event_begin(out, time_ns, TYPE_COUNTER, track);

	pb_varint(out, EVENT_COUNTER_VALUE, (uint64_t)value);
	event_end(out, open);
	perfetto_process(p->tracks, process)->counters[kind].value = value;
}

static void count_memory(struct perfetto *p, const struct event *event)
{
	memory_event(p->memory, event);
	for (enum api_memory kind = MEMORY_NONE + 1; kind < MEMORY_COUNT; kind++) {
		int64_t live = (int64_t)memory_live_of_kind(p->memory, event->process, kind);

		if (live != perfetto_process(p->tracks, event->process)->counters[kind].value)
			perfetto_set_counter(p, event->process, event->time_ns, kind, live);
	}
}

static bool changes_memory(const struct event *event)
{
	if (event->type != EVENT_CALL)
		return event->type == EVENT_EXIT || event->type == EVENT_PROCESS;
	return memory_follows(event->call->op);
}

/* perfetto.c: follows every event, shown or not. */
static void perfetto_count(struct perfetto *p, const struct event *event)
{
	if (changes_memory(event))
		count_memory(p, event);
	perfetto_queue_event(p->queue, event);
}

/* ---- perfetto metrics ---------------------------------------------------------------------- */

/*
 * Metrics of GPUs: a counter for each, below a row of the GPU. A counter has a value from the begin
 * of its sample on, since the next sample begins where it ends.
 */

/* What no file of ours has in it: a sample by hand that claims to be of GPU 4 billion. */
#define GPUS_SHOWN RUN_GPUS_MAX

/* perfetto.c */
static void perfetto_add_metrics(struct perfetto *p, const struct event *event)
{
	const struct gpu_metrics_sample *sample = event->metrics;

	for (enum gpu_metric i = 0; i < GPU_METRICS && sample->gpu < GPUS_SHOWN; i++) {
		struct buf *out = &p->sink.lines.pending;
		enum gpu_metric drawn = gpu_metric_drawn(sample, i);
		struct open_event open;
		uint64_t track;

		if (drawn == GPU_METRICS_DRAWN)
			continue;
		track = perfetto_metric_track(p->tracks, sample->gpu, drawn);
		open = event_begin(out, sample->begin_ns, TYPE_COUNTER, track);
		if (gpu_metric_info(i)->is_rate)
			pb_varint(out, EVENT_COUNTER_VALUE, (uint64_t)sample->value[i]);
		else
			pb_double(out, EVENT_DOUBLE_COUNTER_VALUE, (double)sample->value[i] / 100);
		event_end(out, open);
	}
}

/* ---- perfetto ------------------------------------------------------------------------------ */

static void add_slice_end(struct buf *out, uint64_t time_ns, uint64_t track)
{
	event_end(out, event_begin(out, time_ns, TYPE_END, track));
}

/* ---- arguments ------------------------------------------------------------------------------- */

static void annotate_arg(struct perfetto *p, const struct call *call, enum api_type type,
                         uint32_t name, uint64_t value)
{
	switch (type) {
	case T_INT:
	case T_DEVICE:
		annotate(p, name, ANNOTATION_INT, (uint64_t)(int64_t)(int32_t)value);
		break;
	case T_S64:
		annotate(p, name, ANNOTATION_INT, value);
		break;
	case T_UINT:
	case T_U64:
	case T_BYTES:
	case T_SIZE:
	case T_SHMEM:
	case T_COPYKIND:
		annotate(p, name, ANNOTATION_UINT, value);
		break;
	case T_FLOAT:
		annotate_double(p, name, (double)arg_float(value));
		break;
	case T_STREAM:
		annotate(p, name, ANNOTATION_STRING_IID, perfetto_stream(p->names, call, value));
		break;
	case T_GRID:
		annotate(p, name, ANNOTATION_STRING_IID, perfetto_dims(p->names, call->args.grid));
		break;
	case T_BLOCK:
		annotate(p, name, ANNOTATION_STRING_IID, perfetto_dims(p->names, call->args.block));
		break;
	case T_STRING:
		if (call->text) {
			annotate_text(p, name, call->text);
			break;
		}
		/* fall through */
	default:
		annotate(p, name, ANNOTATION_POINTER, value);
		break;
	}
}

static void annotate_args(struct perfetto *p, const struct call *call,
                          const struct function_names *function)
{
	const struct api_arg *args;
	size_t n = call_args(call, &args);
	bool outputs = call_has_output(call);

	for (size_t i = 0; i < n; i++) {
		if (function->args[i] && (!args[i].out || outputs))
			annotate_arg(p, call, args[i].type, function->args[i], call->args.arg[i]);
	}
}

/* What a call asked for, where its arguments alone do not say it. */
static void annotate_work(struct perfetto *p, const struct call *call)
{
	if (call->kernel)
		annotate(p, annotation(p, "kernel"), ANNOTATION_STRING_IID,
		         perfetto_kernel_value(p->names, call->kernel));
	if ((call->op == OP_COPY || call->op == OP_SET || call->op == OP_ALLOC) &&
	    !(call->flags & CALL_SIZE_UNKNOWN))
		annotate_u64(p, "bytes", call->args.bytes);
	if (call->op == OP_COPY)
		annotate(p, annotation(p, "direction"), ANNOTATION_STRING_IID,
		         perfetto_direction(p->names, call->args.direction));
}

static void annotate_flag(struct perfetto *p, const struct call *call, uint32_t flag,
                          const char *name)
{
	if (call->flags & flag)
		annotate(p, annotation(p, name), ANNOTATION_BOOL, 1);
}

/* ---- calls ---------------------------------------------------------------------------------- */

/* Process and number of the call: unique in the trace, and never 0. */
static uint64_t flow_id(const struct process *process, uint64_t correlation)
{
	return (uint64_t)(process->id + 1) << 40 | (correlation & ((1ull << 40) - 1));
}

/*
 * A flow has two ends. In a file that is exported it is known beforehand which calls have work.
 * While a program is traced it is not, and a call cannot wait with all that its thread did after
 * it: there each call that asks for work begins a flow, which leads nowhere where no work came.
 */
static bool begins_flow(struct perfetto *p, const struct event *event)
{
	if (event->type != EVENT_CALL || !call_asks_for_work(event->call))
		return false;
	if (!p->sink.joined)
		return p->has_activities && perfetto_queue_flow_begins(p->queue, event);
	return correlations_marks(p->sink.joined, event->process->id, event->call->correlation) &
	       CORRELATION_WORK;
}

/*
 * Of a graph's nodes only at the first: slices of one flow are a chain to Perfetto, and an arrow
 * from each node to the next would say that the one asked for the other.
 */
static bool ends_flow(struct perfetto *p, const struct event *event)
{
	uint64_t correlation = event->activity->correlation;
	unsigned marks;

	if (!correlation)
		return false;
	if (!p->sink.joined)
		return perfetto_queue_flow_ends(p->queue, event);
	marks = correlations_marks(p->sink.joined, event->process->id, correlation);
	if (!(marks & CORRELATION_CALL) || marks & CORRELATION_MET)
		return false;
	correlations_mark(p->sink.joined, event->process->id, correlation, CORRELATION_MET);
	return true;
}

/*
 * A call that never returned lasts until that was known: a longjmp had skipped it, its thread had
 * ended, or the trace. 0: an instant.
 */
static uint64_t end_of(const struct event *event)
{
	const struct call *call = event->call;

	if (call_has_end(call))
		return call->end_ns;
	return call->flags & CALL_UNFINISHED && event->time_ns > call->begin_ns ? event->time_ns
	                                                                        : 0;
}

/* Leaves the event in p->packet; returns the length of its first packet. */
static size_t make_call(struct perfetto *p, const struct event *event, uint64_t track)
{
	const struct call *call = event->call;
	const struct function_names *function = perfetto_function(p->names, call->function);
	uint64_t end_ns = end_of(event);
	uint64_t callstack = perfetto_callstack(p->stacks, call->stack);
	struct open_event open;
	size_t begin_len;

	buf_reset(&p->packet);
	open = event_begin(&p->packet, call->begin_ns, end_ns ? TYPE_BEGIN : TYPE_INSTANT, track);
	event_add_name(&p->packet, function->category, function->name);
	annotate_work(p, call);
	annotate_args(p, call, function);
	if (call_has_end(call) && function->has_status)
		annotate(p, annotation(p, "result"), ANNOTATION_STRING_IID,
		         perfetto_result(p->names, call));
	annotate_flag(p, call, CALL_UNFINISHED, "unfinished");
	annotate_flag(p, call, CALL_CAPTURED, "captured");
	if (begins_flow(p, event))
		pb_fixed64(&p->packet, EVENT_FLOW_IDS, flow_id(event->process, call->correlation));
	if (callstack)
		pb_varint(&p->packet, EVENT_CALLSTACK_IID, callstack);
	event_end(&p->packet, open);
	begin_len = p->packet.len;
	if (end_ns)
		add_slice_end(&p->packet, end_ns, track);
	return begin_len;
}

static void add_call(struct perfetto *p, const struct event *event)
{
	struct perfetto_thread *thread =
		perfetto_thread(p->tracks, event->process, event->tid, NULL);
	size_t begin_len = make_call(p, event, thread->uuid);

	nest_add(&thread->nest, event->call->begin_ns, event->call->depth, &p->packet, begin_len,
	         &p->sink.lines.pending);
}

/* ---- activities ----------------------------------------------------------------------------- */

static void annotate_kernel(struct perfetto *p, const struct activity *activity)
{
	annotate(p, annotation(p, "grid"), ANNOTATION_STRING_IID,
	         perfetto_dims(p->names, activity->grid));
	annotate(p, annotation(p, "block"), ANNOTATION_STRING_IID,
	         perfetto_dims(p->names, activity->block));
	annotate_u64(p, "registers per thread", activity->registers);
	annotate_u64(p, "static shared memory", activity->shmem_static);
	annotate_u64(p, "dynamic shared memory", activity->shmem_dynamic);
}

static void annotate_activity(struct perfetto *p, const struct activity *activity)
{
	annotate_u64(p, "device", activity->device);
	annotate_u64(p, "context", activity->context);
	annotate_u64(p, "stream", activity->stream);
	if (activity->correlation)
		annotate_u64(p, "correlation", activity->correlation);
	if (activity->kind == ACTIVITY_KERNEL)
		annotate_kernel(p, activity);
	else if (activity->kind != ACTIVITY_GRAPH_RUN)
		annotate_u64(p, "bytes", activity->bytes);
	if (activity->kind == ACTIVITY_COPY && activity->direction == DIRECTION_P2P)
		annotate_u64(p, "to device", activity->peer_device);
	if (activity->graph)
		annotate_u64(p, "graph", activity->graph);
	if (activity->graph_node)
		annotate_u64(p, "graph node", activity->graph_node);
}

static void add_activity(struct perfetto *p, const struct event *event)
{
	const struct activity *activity = event->activity;
	uint64_t track = perfetto_stream_row(p->tracks, event->process, activity);
	uint32_t name = perfetto_activity_name(p->names, activity);
	uint32_t category =
		perfetto_constant(p->names, NAME_CATEGORY, activity_words[activity->kind].category);
	uint64_t callstack = perfetto_callstack(p->stacks, activity->stack);
	struct open_event open;

	buf_reset(&p->packet);
	open = event_begin(&p->packet, activity->begin_ns, TYPE_BEGIN, track);
	event_add_name(&p->packet, category, name);
	annotate_activity(p, activity);
	if (ends_flow(p, event))
		pb_fixed64(&p->packet, EVENT_TERMINATING_FLOW_IDS,
		           flow_id(event->process, activity->correlation));
	if (callstack)
		pb_varint(&p->packet, EVENT_CALLSTACK_IID, callstack);
	event_end(&p->packet, open);
	add_slice_end(&p->packet, activity->end_ns, track);
	buf_add(&p->sink.lines.pending, p->packet.data, p->packet.len);
}

/* ---- the format ----------------------------------------------------------------------------- */

static int perfetto_begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct perfetto *p = (struct perfetto *)self;

	p->has_activities = run->gpu_times;
	perfetto_run_begin(p, run);
	return 0;
}

static int perfetto_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct perfetto *p = (struct perfetto *)self;
	const struct work_call *left = work_now(p->sink.work)->left;

	if (event->type == EVENT_METRICS) { /* of which `work` knows nothing */
		if (p->sink.wanted)
			perfetto_add_metrics(p, event);
		return 0;
	}
	if (left)
		perfetto_queue_gave_up(p->queue, left);
	if (!sink_is_over(&p->sink, event))
		perfetto_count(p, event);
	if (!p->sink.wanted)
		return 0;
	switch (event->type) {
	case EVENT_CALL:
	case EVENT_OTHER_CALL:
		add_call(p, event);
		break;
	case EVENT_ACTIVITY:
		add_activity(p, event);
		break;
	case EVENT_PROCESS:
		perfetto_process(p->tracks, event->process);
		break;
	case EVENT_THREAD:
		perfetto_thread(p->tracks, event->process, event->tid, event->thread);
		break;
	case EVENT_EXIT:
		perfetto_process_ended(p->tracks, event->process);
		perfetto_ranges_ended(p->ranges, event->process);
		break;
	case EVENT_RANGE:
		perfetto_add_range(p->ranges, event);
		break;
	case EVENT_SAMPLE:
		perfetto_add_sample(p, event);
		break;
	case EVENT_METRICS:
	case EVENT_STALL:
	case EVENT_CALL_BEGIN:
		break;
	}
	return 0;
}

static int perfetto_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct perfetto *p = (struct perfetto *)self;

	perfetto_queue_end(p->queue);
	perfetto_ranges_flush(p->ranges);
	perfetto_tracks_flush(p->tracks);
	p->sink.unjoined += perfetto_queue_unjoined(p->queue);
	perfetto_tracks_who(p->tracks, run);
	perfetto_run_end(p, run);
	return 0;
}

static void perfetto_free(struct consumer *self)
{
	struct perfetto *p = (struct perfetto *)self;

	perfetto_names_free(p->names);
	perfetto_tracks_free(p->tracks);
	perfetto_queue_free(p->queue);
	perfetto_ranges_free(p->ranges);
	perfetto_stacks_free(p->stacks);
	memory_free(p->memory);
	buf_free(&p->packet);
	free(p);
}

static const struct consumer_ops perfetto_ops = {
	.metrics = true,
	.begin = perfetto_begin,
	.event = perfetto_event,
	.end = perfetto_end,
	.free = perfetto_free,
};

struct consumer *perfetto_new(const struct sink_options *options)
{
	struct perfetto *p = xcalloc(1, sizeof(*p));
	struct consumer *consumer = sink_init(&p->sink, &perfetto_ops, options);

	p->sink.gpu = true;
	p->sink.samples = true;
	p->sink.asks_for_work = call_asks_for_work;
	p->sink.joins = true;
	p->sink.lines.binary = true;
	p->memory = memory_new();
	p->names = perfetto_names_new(&p->sink.lines.pending);
	p->tracks = perfetto_tracks_new(&p->sink.lines.pending);
	p->queue = perfetto_queue_new(p);
	p->ranges = perfetto_ranges_new(p);
	p->stacks = perfetto_stacks_new(&p->sink.lines.pending);
	return consumer;
}
