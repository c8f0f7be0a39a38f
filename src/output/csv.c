// SPDX-License-Identifier: MIT
/*
 * A row for each call, each thing that ran on the GPU and each range. Rows are as RFC 4180 has
 * them, but lines end as on Unix. docs/export.md describes the columns; their order is a promise:
 * new ones come at the end.
 */
#include <stdlib.h>
#include <string.h>

#include "analysis/memory.h"
#include "analysis/missed.h"
#include "analysis/thread_ids.h"
#include "base/array.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "cuda/error.h"
#include "output/activity.h"
#include "output/args.h"
#include "output/delays.h"
#include "output/describe.h"
#include "output/format.h"
#include "output/fragments.h"
#include "output/frames.h"

static const char header[] =
	"time_ns,duration_ns,process,pid,tid,thread,layer,class,function,result,result_name,kernel,"
	"grid_x,grid_y,grid_z,block_x,block_y,block_z,shared_memory,stream,bytes,direction,address,"
	"memory,flags,correlation,device,context,name,domain,depth,graph,graph_node,queue_ns,stack,"
	"value\n";

struct csv {
	struct sink sink; /* first */
	struct memory *memory;
	uint64_t memory_bytes; /* of the allocation that the current call made or freed */
	struct thread_ids *thread_ids;
	struct fragments threads, processes, functions, kernels;
	struct buf safe;
};

/* ---- fields ------------------------------------------------------------------------------- */

/* In quotes where it could be taken for something else, and harmless on a terminal. */
static void add_text(struct csv *csv, struct buf *out, const char *text)
{
	buf_reset(&csv->safe);
	text_add_safe(&csv->safe, text);
	text = csv->safe.data ? csv->safe.data : "";
	if (!strpbrk(text, ",\"")) {
		buf_puts(out, text);
		return;
	}
	buf_putc(out, '"');
	for (const char *quote; (quote = strchr(text, '"')); text = quote + 1) {
		buf_add(out, text, (size_t)(quote - text) + 1);
		buf_putc(out, '"');
	}
	buf_puts(out, text);
	buf_putc(out, '"');
}

static void add_time(const struct csv *csv, struct buf *out, uint64_t time_ns)
{
	buf_s64(out, (int64_t)(time_ns - csv->sink.begin_ns));
}

/* A column each: readers take three numbers with blanks for a date. */
static void add_triple(struct buf *out, const uint32_t dims[3])
{
	for (int i = 0; i < 3; i++) {
		buf_u64(out, dims[i]);
		buf_putc(out, ',');
	}
}

static void next(struct buf *out)
{
	buf_putc(out, ',');
}

static void skip(struct buf *out, unsigned fields)
{
	while (fields--)
		buf_putc(out, ',');
}

/* "vectorAdd,4242,": both are the same for all rows of a process. */
static void add_process(struct csv *csv, struct buf *out, const struct process *process)
{
	struct buf *text = fragment(&csv->processes, process->id);

	if (!text->len) {
		add_text(csv, text, process->comm);
		buf_printf(text, ",%u,", process->pid);
	}
	buf_add(out, text->data, text->len);
}

static void add_thread(struct csv *csv, struct buf *out, const struct event *event)
{
	uint32_t id = thread_ids_of(csv->thread_ids, event);
	const struct buf *name = fragment(&csv->threads, id);

	buf_u64(out, event->tid);
	next(out);
	if (id != THREAD_ID_OTHERS)
		buf_add(out, name->data, name->len);
	next(out);
}

/* "runtime,memory,cudaMalloc," */
static void add_function(struct csv *csv, struct buf *out, const struct function *function)
{
	struct buf *text = fragment(&csv->functions, function->id);

	if (!text->len) {
		buf_printf(text, "%s,%s,", api_layer_name(function->layer),
		           api_class_name(function->cls));
		add_text(csv, text, function->name);
		next(text);
	}
	buf_add(out, text->data, text->len);
}

/* A name that is still to be found is not kept. */
static void add_kernel(struct csv *csv, struct buf *out, const struct kernel *kernel)
{
	struct buf *text = fragment(&csv->kernels, kernel->id), shown = { 0 };

	if (!text->len) {
		buf_puts(&shown, "");
		kernel_add_shown(kernel, &shown);
		add_text(csv, text, shown.data);
		buf_free(&shown);
	}
	buf_add(out, text->data, text->len);
	if (!kernel->resolved)
		buf_reset(text);
}

/* ---- calls -------------------------------------------------------------------------------- */

static void add_result_fields(struct buf *out, const struct call *call)
{
	const char *name;

	if (!call_has_end(call)) {
		skip(out, 2);
		return;
	}
	buf_s64(out, call->result);
	next(out);
	name = cuda_error_name(call->function->layer, call->result);
	buf_puts(out, name ? name : "");
	next(out);
}

static void add_launch_fields(struct csv *csv, struct buf *out, const struct call *call)
{
	if (call->op != OP_LAUNCH) {
		skip(out, 8);
		return;
	}
	if (call->kernel)
		add_kernel(csv, out, call->kernel);
	next(out);
	add_triple(out, call->args.grid);
	add_triple(out, call->args.block);
	buf_u64(out, call->args.shmem_bytes);
	next(out);
}

static bool has_bytes(const struct csv *csv, const struct call *call)
{
	return call->op == OP_ALLOC ||
	       ((call->op == OP_COPY || call->op == OP_SET) &&
	        !(call->flags & CALL_SIZE_UNKNOWN)) ||
	       ((call->op == OP_FREE || call->op == OP_UNMAP) && csv->memory_bytes);
}

static void add_memory_fields(struct csv *csv, struct buf *out, const struct call *call)
{
	if (has_bytes(csv, call))
		buf_u64(out, call->op == OP_FREE || call->op == OP_UNMAP ? csv->memory_bytes
		                                                         : call->args.bytes);
	next(out);
	if (call->op == OP_COPY && call->args.direction != DIRECTION_NONE)
		buf_puts(out, api_direction_name(call->args.direction));
	next(out);
	if (call->args.address)
		buf_hex(out, call->args.address);
	next(out);
	if (call->op == OP_ALLOC || call->op == OP_FREE)
		buf_puts(out, api_memory_name(api_memory(call->function->api)));
	next(out);
}

static void add_flags(struct buf *out, uint32_t flags)
{
	static const struct {
		uint32_t flag;
		const char *name;
	} names[] = { { CALL_NESTED, "nested" },
		      { CALL_NO_RETURN, "no_return" },
		      { CALL_UNFINISHED, "unfinished" },
		      { CALL_CAPTURED, "captured" },
		      { CALL_FAILED, "failed" } };
	bool any = false;

	for (size_t i = 0; flags && i < ARRAY_SIZE(names); i++) {
		if (!(flags & names[i].flag))
			continue;
		if (any)
			buf_putc(out, ' ');
		buf_puts(out, names[i].name);
		any = true;
	}
}

/* The arguments, in one column: what they are differs from one to the next. */
static void add_words(struct csv *csv, struct buf *out, const struct call *call)
{
	struct description about = { 0 };

	describe(call, &about);
	if (about.words.len)
		add_text(csv, out, about.words.data);
	description_free(&about);
}

static void add_call(struct csv *csv, const struct event *event)
{
	struct buf *out = &csv->sink.lines.pending;
	const struct call *call = event->call;

	add_time(csv, out, call->begin_ns);
	next(out);
	if (call_has_end(call))
		buf_u64(out, call_duration_ns(call));
	next(out);
	add_process(csv, out, event->process);
	add_thread(csv, out, event);
	add_function(csv, out, call->function);
	add_result_fields(out, call);
	add_launch_fields(csv, out, call);
	if (call_has_stream(call))
		add_stream(out, call, call->args.stream);
	next(out);
	add_memory_fields(csv, out, call);
	add_flags(out, call->flags);
	next(out);
	if (call->correlation)
		buf_u64(out, call->correlation);
	skip(out, 3);
	if (!call_is_cuda(call))
		add_words(csv, out, call);
	skip(out, 6);
	if (call->stack)
		buf_u64(out, call->stack->id);
	buf_puts(out, ",\n");
}

/* ---- activities --------------------------------------------------------------------------- */

static void add_kernel_fields(struct csv *csv, struct buf *out, const struct activity *a)
{
	if (a->kind != ACTIVITY_KERNEL) {
		skip(out, 8);
		return;
	}
	if (a->kernel)
		add_kernel(csv, out, a->kernel);
	next(out);
	add_triple(out, a->grid);
	add_triple(out, a->block);
	buf_u64(out, (uint64_t)a->shmem_static + a->shmem_dynamic);
	next(out);
}

/* bytes, direction, address, memory */
static void add_copy_fields(struct buf *out, const struct activity *a)
{
	if (a->kind != ACTIVITY_COPY && a->kind != ACTIVITY_SET) {
		skip(out, 4);
		return;
	}
	buf_u64(out, a->bytes);
	next(out);
	if (a->kind == ACTIVITY_COPY && a->direction != DIRECTION_NONE)
		buf_puts(out, api_direction_name(a->direction));
	skip(out, 2);
	if (a->kind == ACTIVITY_COPY) {
		buf_puts(out, activity_memory_name(a->source));
		buf_puts(out, " -> ");
	}
	buf_puts(out, activity_memory_name(a->destination));
	next(out);
}

static void add_activity(struct csv *csv, const struct event *event)
{
	static const char *const kinds[ACTIVITY_COUNT] = {
		[ACTIVITY_KERNEL] = "launch,kernel",
		[ACTIVITY_COPY] = "transfer,memcpy",
		[ACTIVITY_SET] = "transfer,memset",
		[ACTIVITY_GRAPH_RUN] = "launch,graph",
	};
	struct buf *out = &csv->sink.lines.pending;
	const struct activity *a = event->activity;
	struct delay delay = delay_of(&csv->sink, event);

	add_time(csv, out, a->begin_ns);
	next(out);
	buf_u64(out, activity_duration_ns(a));
	next(out);
	add_process(csv, out, event->process);
	buf_puts(out, ",,gpu,");
	buf_puts(out, kinds[a->kind]);
	skip(out, 3);
	add_kernel_fields(csv, out, a);
	buf_u64(out, a->stream);
	next(out);
	add_copy_fields(out, a);
	next(out);
	if (a->correlation)
		buf_u64(out, a->correlation);
	buf_printf(out, ",%u,%u,,,,", a->device, a->context);
	if (a->graph)
		buf_u64(out, a->graph);
	next(out);
	if (a->graph_node)
		buf_u64(out, a->graph_node);
	next(out);
	if (delay.queued)
		buf_u64(out, delay.queue_ns);
	buf_puts(out, ",,\n");
}

/* ---- ranges ------------------------------------------------------------------------------- */

static void add_range(struct csv *csv, const struct event *event)
{
	static const char *const kinds[RANGE_COUNT] = {
		[RANGE_PUSHPOP] = "nvtx,range,push_pop",
		[RANGE_STARTEND] = "nvtx,range,start_end",
		[RANGE_MARK] = "nvtx,range,mark",
		[RANGE_SYNC] = "gpu,sync,wait",
		[RANGE_OVERHEAD] = "gpu,other,overhead",
		[RANGE_NOT_MEASURED] = "gpu,other,not_measured",
	};
	struct buf *out = &csv->sink.lines.pending;
	const struct range *range = event->range;

	add_time(csv, out, range->begin_ns);
	next(out);
	buf_u64(out, range_duration_ns(range));
	next(out);
	add_process(csv, out, event->process);
	if (event->tid)
		add_thread(csv, out, event);
	else
		skip(out, 2);
	buf_puts(out, kinds[range->kind]);
	skip(out, 11);
	if (range->stream)
		buf_u64(out, range->stream);
	skip(out, 6);
	if (range->correlation)
		buf_u64(out, range->correlation);
	skip(out, 2);
	if (range->context)
		buf_u64(out, range->context);
	next(out);
	add_text(csv, out, range->name);
	next(out);
	if (range->domain)
		add_text(csv, out, range->domain);
	next(out);
	if (range->kind == RANGE_PUSHPOP)
		buf_u64(out, range->depth);
	buf_puts(out, ",,,,,\n");
}

/* ---- samples ------------------------------------------------------------------------------ */

/* What is no stretch of time, such as a sum of many, begins when it is told. */
static void add_sample(struct csv *csv, const struct event *event)
{
	struct buf *out = &csv->sink.lines.pending, name = { 0 };
	const struct sample *sample = event->sample;
	bool blocked = sample->kind == SAMPLE_OFF_CPU;

	add_time(csv, out, event->time_ns - (sample_is_stretch(sample) ? sample->weight_ns : 0));
	next(out);
	buf_u64(out, sample->weight_ns);
	next(out);
	add_process(csv, out, event->process);
	add_thread(csv, out, event);
	buf_puts(out, blocked ? "cpu,sample,blocked" : "cpu,sample,on_cpu");
	skip(out, 16);
	if (blocked)
		buf_puts(out, blocked_name(sample->blocked));
	if (blocked && sample->wait)
		buf_printf(out, " %s", wait_kind_name(sample->wait));
	skip(out, 4);
	if (sample->stack) {
		frame_add_words(sample->stack->frames[0], &name);
		add_text(csv, out, name.data);
	}
	skip(out, 6);
	if (sample->stack)
		buf_u64(out, sample->stack->id);
	buf_puts(out, ",\n");
	buf_free(&name);
}

/* ---- metrics ------------------------------------------------------------------------------ */

/* A row for each; its value is a percentage, or bytes a second. */
static void add_metrics(struct csv *csv, const struct event *event)
{
	const struct gpu_metrics_sample *sample = event->metrics;
	struct buf *out = &csv->sink.lines.pending;
	uint64_t ns = sample->end_ns > sample->begin_ns ? sample->end_ns - sample->begin_ns : 0;

	for (enum gpu_metric i = 0; i < GPU_METRICS; i++) {
		const struct gpu_metric_info *info = gpu_metric_info(i);

		if (sample->value[i] == GPU_METRIC_UNKNOWN)
			continue;
		add_time(csv, out, sample->begin_ns);
		next(out);
		buf_u64(out, ns);
		skip(out, 5);
		buf_printf(out, "gpu,metric,%s", info->key);
		skip(out, 18);
		buf_u64(out, sample->gpu);
		skip(out, 2);
		buf_puts(out, info->name);
		skip(out, 7);
		gpu_metric_print(out, i, sample->value[i]);
		buf_putc(out, '\n');
	}
}

/* ---- the format --------------------------------------------------------------------------- */

static struct csv *csv_of(struct consumer *self)
{
	return (struct csv *)self;
}

static int csv_begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	buf_puts(&csv_of(self)->sink.lines.pending, header);
	return 0;
}

static void name_thread(struct csv *csv, const struct event *event)
{
	struct buf *name;

	thread_ids_renew(csv->thread_ids, event);
	name = fragment(&csv->threads, thread_ids_of(csv->thread_ids, event));
	buf_reset(name);
	add_text(csv, name, event->thread->comm);
}

static int csv_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct csv *csv = csv_of(self);

	csv->memory_bytes = memory_event(csv->memory, event);
	if (event->type == EVENT_THREAD)
		name_thread(csv, event);
	if (!csv->sink.wanted)
		return 0;
	if (event->type == EVENT_CALL || event->type == EVENT_OTHER_CALL)
		add_call(csv, event);
	else if (event->type == EVENT_ACTIVITY)
		add_activity(csv, event);
	else if (event->type == EVENT_RANGE)
		add_range(csv, event);
	else if (event->type == EVENT_SAMPLE)
		add_sample(csv, event);
	else if (event->type == EVENT_METRICS)
		add_metrics(csv, event);
	return 0;
}

static void add_missed(struct csv *csv, uint64_t time_ns, const char *what, const char *why)
{
	struct buf *out = &csv->sink.lines.pending;

	add_time(csv, out, time_ns);
	buf_puts(out, ",,,,,,cuscope,missed,");
	buf_puts(out, what);
	skip(out, 20);
	add_text(csv, out, why);
	buf_puts(out, ",,,,,,,\n");
}

/* Who reads rows only has to see that there should be more. */
static int csv_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct csv *csv = csv_of(self);
	const struct stack_counts *stacks = &csv->sink.stacks;
	struct buf why = { 0 };

	if (stack_counts_whole(stacks) < stack_counts_all(stacks)) {
		stack_counts_text(stacks, &why);
		add_missed(csv, run->end_ns, "stacks", why.data);
		buf_reset(&why);
	}
	if (missed_of_file(run, &why))
		add_missed(csv, run->end_ns, "incomplete", why.data);
	buf_free(&why);
	return 0;
}

static void csv_free(struct consumer *self)
{
	struct csv *csv = csv_of(self);

	fragments_free(&csv->threads);
	fragments_free(&csv->processes);
	fragments_free(&csv->functions);
	fragments_free(&csv->kernels);
	thread_ids_free(csv->thread_ids);
	memory_free(csv->memory);
	buf_free(&csv->safe);
	free(csv);
}

static const struct consumer_ops csv_ops = {
	.metrics = true,
	.begin = csv_begin,
	.event = csv_event,
	.end = csv_end,
	.free = csv_free,
};

struct consumer *csv_new(const struct sink_options *options)
{
	struct csv *csv = xcalloc(1, sizeof(*csv));

	csv->sink.gpu = true;
	csv->sink.samples = true;
	csv->memory = memory_new();
	csv->sink.joins = true;
	csv->thread_ids = thread_ids_new();
	return sink_init(&csv->sink, &csv_ops, options);
}
