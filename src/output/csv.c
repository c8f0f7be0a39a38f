// SPDX-License-Identifier: MIT
/*
 * A row for each call, each thing that ran on the GPU and each range. Rows are as RFC 4180 has
 * them, but lines end as on Unix. docs/csv.md describes the columns; their order is a promise:
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
#include "output/format.h"
#include "output/describe.h"

/* clang-format off */
#define CSV_COLUMNS(C)                                                                             \
	C(TIME, time_ns) C(DURATION, duration_ns) C(PROCESS, process) C(PID, pid) C(TID, tid)      \
	C(THREAD, thread) C(LAYER, layer) C(CLASS, class) C(FUNCTION, function) C(RESULT, result)  \
	C(RESULT_NAME, result_name) C(KERNEL, kernel) C(GRID, grid_x) C(GRID_Y, grid_y)            \
	C(GRID_Z, grid_z) C(BLOCK, block_x) C(BLOCK_Y, block_y) C(BLOCK_Z, block_z)                \
	C(SHARED_MEMORY, shared_memory) C(STREAM, stream) C(BYTES, bytes) C(DIRECTION, direction)  \
	C(ADDRESS, address) C(MEMORY, memory) C(FLAGS, flags) C(CORRELATION, correlation)          \
	C(DEVICE, device) C(CONTEXT, context) C(NAME, name) C(DOMAIN, domain) C(DEPTH, depth)      \
	C(GRAPH, graph) C(GRAPH_NODE, graph_node) C(QUEUE, queue_ns) C(STACK, stack) C(VALUE, value)
/* clang-format on */

#define COLUMN(id, name)  COLUMN_##id,
#define HEADING(id, name) #name ","
enum csv_column { CSV_COLUMNS(COLUMN) };
static const char header[] = CSV_COLUMNS(HEADING);

struct csv {
	struct sink sink; /* first */
	struct memory *memory;
	uint64_t memory_bytes; /* of the allocation that the current call made or freed */
	struct thread_ids *thread_ids;
	struct fragments threads, processes, functions, kernels;
	enum csv_column column; /* of the row that is written: the one that is next */
	struct buf safe;
};

/* ---- fields ------------------------------------------------------------------------------- */

/* Harmless on a terminal. */
static void add_text(struct csv *csv, struct buf *out, const char *text)
{
	buf_reset(&csv->safe);
	text_add_safe(&csv->safe, text);
	text_add_csv(out, csv->safe.data ? csv->safe.data : "");
}

/* Where a column's field goes, of a row that has got no further than it; the others are empty. */
static struct buf *csv_at(struct csv *csv, enum csv_column column)
{
	struct buf *out = &csv->sink.lines.pending;

	if (column > csv->column)
		buf_fill(out, ',', column - csv->column);
	csv->column = column;
	return out;
}

static void begin_row(struct csv *csv, uint64_t begin_ns)
{
	csv->column = 0;
	buf_s64(csv_at(csv, COLUMN_TIME), (int64_t)(begin_ns - csv->sink.begin_ns));
}

static void end_row(struct csv *csv)
{
	buf_putc(csv_at(csv, COLUMN_VALUE), '\n');
}

static void add_u64(struct csv *csv, enum csv_column column, uint64_t value)
{
	buf_u64(csv_at(csv, column), value);
}

static void add_unless_0(struct csv *csv, enum csv_column column, uint64_t value)
{
	if (value)
		add_u64(csv, column, value);
}

/* A column each: readers take three numbers with blanks for a date. */
static void add_triple(struct csv *csv, enum csv_column column, const uint32_t dims[3])
{
	for (int i = 0; i < 3; i++)
		add_u64(csv, column + (enum csv_column)i, dims[i]);
}

/* "vectorAdd,4242": both are the same for all rows of a process. */
static void add_process(struct csv *csv, const struct process *process)
{
	struct buf *text = fragment(&csv->processes, process->id);

	if (!text->len) {
		add_text(csv, text, process->comm);
		buf_printf(text, ",%u", process->pid);
	}
	buf_add(csv_at(csv, COLUMN_PROCESS), text->data, text->len);
	csv->column = COLUMN_PID;
}

static void add_thread(struct csv *csv, const struct event *event)
{
	uint32_t id = thread_ids_of(csv->thread_ids, event);
	const struct buf *name = fragment(&csv->threads, id);

	add_u64(csv, COLUMN_TID, event->tid);
	if (id != THREAD_ID_OTHERS)
		buf_add(csv_at(csv, COLUMN_THREAD), name->data, name->len);
}

/* Layer, class and function. */
static void add_what(struct csv *csv, const char *words)
{
	buf_puts(csv_at(csv, COLUMN_LAYER), words);
	csv->column = COLUMN_FUNCTION;
}

/* "runtime,memory,cudaMalloc" */
static void add_function(struct csv *csv, const struct function *function)
{
	struct buf *text = fragment(&csv->functions, function->id);

	if (!text->len) {
		buf_printf(text, "%s,%s,", api_layer_name(function->layer),
		           api_class_name(function->cls));
		add_text(csv, text, function->name);
	}
	buf_add(csv_at(csv, COLUMN_LAYER), text->data, text->len);
	csv->column = COLUMN_FUNCTION;
}

/* A name that is still to be found is not kept. */
static void add_kernel(struct csv *csv, const struct kernel *kernel)
{
	struct buf *text = fragment(&csv->kernels, kernel->id), shown = { 0 };

	if (!text->len) {
		buf_puts(&shown, "");
		kernel_add_shown(kernel, &shown);
		add_text(csv, text, shown.data);
		buf_free(&shown);
	}
	buf_add(csv_at(csv, COLUMN_KERNEL), text->data, text->len);
	if (!kernel->resolved)
		buf_reset(text);
}

static void add_launch(struct csv *csv, const struct kernel *kernel, const uint32_t grid[3],
                       const uint32_t block[3], uint64_t shared_memory)
{
	if (kernel)
		add_kernel(csv, kernel);
	add_triple(csv, COLUMN_GRID, grid);
	add_triple(csv, COLUMN_BLOCK, block);
	add_u64(csv, COLUMN_SHARED_MEMORY, shared_memory);
}

/* ---- calls -------------------------------------------------------------------------------- */

static void add_status(struct csv *csv, const struct call *call)
{
	const char *name = cuda_error_name(call->function->layer, call->result);

	buf_s64(csv_at(csv, COLUMN_RESULT), call->result);
	if (name)
		buf_puts(csv_at(csv, COLUMN_RESULT_NAME), name);
}

static bool has_bytes(const struct csv *csv, const struct call *call)
{
	return call->op == OP_ALLOC ||
	       ((call->op == OP_COPY || call->op == OP_SET) &&
	        !(call->flags & CALL_SIZE_UNKNOWN)) ||
	       ((call->op == OP_FREE || call->op == OP_UNMAP) && csv->memory_bytes);
}

static void add_memory(struct csv *csv, const struct call *call)
{
	bool frees = call->op == OP_FREE || call->op == OP_UNMAP;

	if (has_bytes(csv, call))
		add_u64(csv, COLUMN_BYTES, frees ? csv->memory_bytes : call->args.bytes);
	if (call->op == OP_COPY && call->args.direction != DIRECTION_NONE)
		buf_puts(csv_at(csv, COLUMN_DIRECTION), api_direction_name(call->args.direction));
	if (call->args.address)
		buf_hex(csv_at(csv, COLUMN_ADDRESS), call->args.address);
	if (call->op == OP_ALLOC || call->op == OP_FREE)
		buf_puts(csv_at(csv, COLUMN_MEMORY),
		         api_memory_name(api_memory(call->function->api)));
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
static void add_words(struct csv *csv, const struct call *call)
{
	AT_END(description_free) struct description about = { 0 };

	describe(call, &about);
	if (about.words.len)
		add_text(csv, csv_at(csv, COLUMN_NAME), about.words.data);
}

static void add_call(struct csv *csv, const struct event *event)
{
	const struct call *call = event->call;

	begin_row(csv, call->begin_ns);
	if (call_has_end(call))
		add_u64(csv, COLUMN_DURATION, call_duration_ns(call));
	add_process(csv, event->process);
	add_thread(csv, event);
	add_function(csv, call->function);
	if (call_has_end(call))
		add_status(csv, call);
	if (call->op == OP_LAUNCH)
		add_launch(csv, call->kernel, call->args.grid, call->args.block,
		           call->args.shmem_bytes);
	if (call_has_stream(call))
		add_stream(csv_at(csv, COLUMN_STREAM), call, call->args.stream);
	add_memory(csv, call);
	if (call->flags)
		add_flags(csv_at(csv, COLUMN_FLAGS), call->flags);
	add_unless_0(csv, COLUMN_CORRELATION, call->correlation);
	if (!call_is_cuda(call))
		add_words(csv, call);
	if (call->stack)
		add_u64(csv, COLUMN_STACK, call->stack->id);
	end_row(csv);
}

/* ---- activities --------------------------------------------------------------------------- */

static void add_transfer(struct csv *csv, const struct activity *a)
{
	bool copy = a->kind == ACTIVITY_COPY;

	add_u64(csv, COLUMN_BYTES, a->bytes);
	if (copy && a->direction != DIRECTION_NONE)
		buf_puts(csv_at(csv, COLUMN_DIRECTION), api_direction_name(a->direction));
	if (copy)
		buf_printf(csv_at(csv, COLUMN_MEMORY), "%s -> ", activity_memory_name(a->source));
	buf_puts(csv_at(csv, COLUMN_MEMORY), activity_memory_name(a->destination));
}

static void add_activity(struct csv *csv, const struct event *event)
{
	const struct activity *a = event->activity;
	struct delay delay = delay_of(&csv->sink, event);

	begin_row(csv, a->begin_ns);
	add_u64(csv, COLUMN_DURATION, activity_duration_ns(a));
	add_process(csv, event->process);
	add_what(csv, activity_words[a->kind].csv);
	if (a->kind == ACTIVITY_KERNEL)
		add_launch(csv, a->kernel, a->grid, a->block,
		           (uint64_t)a->shmem_static + a->shmem_dynamic);
	add_u64(csv, COLUMN_STREAM, a->stream);
	if (activity_is_transfer(a))
		add_transfer(csv, a);
	add_unless_0(csv, COLUMN_CORRELATION, a->correlation);
	add_u64(csv, COLUMN_DEVICE, a->device);
	add_u64(csv, COLUMN_CONTEXT, a->context);
	add_unless_0(csv, COLUMN_GRAPH, a->graph);
	add_unless_0(csv, COLUMN_GRAPH_NODE, a->graph_node);
	if (delay.queued)
		add_u64(csv, COLUMN_QUEUE, delay.queue_ns);
	if (a->stack)
		add_u64(csv, COLUMN_STACK, a->stack->id);
	end_row(csv);
}

/* ---- ranges ------------------------------------------------------------------------------- */

static void add_range(struct csv *csv, const struct event *event)
{
	const struct range *range = event->range;

	begin_row(csv, range->begin_ns);
	add_u64(csv, COLUMN_DURATION, range_duration_ns(range));
	add_process(csv, event->process);
	if (event->tid)
		add_thread(csv, event);
	add_what(csv, range_words[range->kind].csv);
	add_unless_0(csv, COLUMN_STREAM, range->stream);
	add_unless_0(csv, COLUMN_CORRELATION, range->correlation);
	add_unless_0(csv, COLUMN_CONTEXT, range->context);
	add_text(csv, csv_at(csv, COLUMN_NAME), range->name);
	if (range->domain)
		add_text(csv, csv_at(csv, COLUMN_DOMAIN), range->domain);
	if (range->kind == RANGE_PUSHPOP)
		add_u64(csv, COLUMN_DEPTH, range->depth);
	end_row(csv);
}

/* ---- samples ------------------------------------------------------------------------------ */

static void add_stack(struct csv *csv, const struct stack *stack)
{
	AT_END(buf_free) struct buf name = { 0 };

	frame_add_words(stack->frames[0], &name);
	add_text(csv, csv_at(csv, COLUMN_NAME), name.data);
	add_u64(csv, COLUMN_STACK, stack->id);
}

/* What is no stretch of time, such as a sum of many, begins when it is told. */
static void add_sample(struct csv *csv, const struct event *event)
{
	const struct sample *sample = event->sample;
	bool blocked = sample->kind == SAMPLE_OFF_CPU;

	begin_row(csv, event->time_ns - (sample_is_stretch(sample) ? sample->weight_ns : 0));
	add_u64(csv, COLUMN_DURATION, sample->weight_ns);
	add_process(csv, event->process);
	add_thread(csv, event);
	add_what(csv, blocked ? "cpu,sample,blocked" : "cpu,sample,on_cpu");
	if (blocked)
		buf_puts(csv_at(csv, COLUMN_FLAGS), blocked_name(sample->blocked));
	if (blocked && sample->wait)
		buf_printf(csv_at(csv, COLUMN_FLAGS), " %s", wait_kind_name(sample->wait));
	if (sample->stack)
		add_stack(csv, sample->stack);
	end_row(csv);
}

/* ---- metrics ------------------------------------------------------------------------------ */

/* A row for each; its value is a percentage, or bytes a second. */
static void add_metrics(struct csv *csv, const struct event *event)
{
	const struct gpu_metrics_sample *sample = event->metrics;
	uint64_t ns = sample->end_ns > sample->begin_ns ? sample->end_ns - sample->begin_ns : 0;

	for (enum gpu_metric i = 0; i < GPU_METRICS; i++) {
		const struct gpu_metric_info *info = gpu_metric_info(i);

		if (sample->value[i] == GPU_METRIC_UNKNOWN)
			continue;
		begin_row(csv, sample->begin_ns);
		add_u64(csv, COLUMN_DURATION, ns);
		add_what(csv, "gpu,metric,");
		buf_puts(csv_at(csv, COLUMN_FUNCTION), info->key);
		add_u64(csv, COLUMN_DEVICE, sample->gpu);
		buf_puts(csv_at(csv, COLUMN_NAME), info->name);
		gpu_metric_print(csv_at(csv, COLUMN_VALUE), i, sample->value[i]);
		end_row(csv);
	}
}

/* ---- stalls ------------------------------------------------------------------------------- */

/* Its value is the number of samples; its address that of the instruction in the kernel. */
static void add_stall(struct csv *csv, const struct event *event)
{
	const struct stall *stall = event->stall;
	struct buf *name;

	begin_row(csv, stall->begin_ns);
	add_u64(csv, COLUMN_DURATION,
	        stall->end_ns > stall->begin_ns ? stall->end_ns - stall->begin_ns : 0);
	add_process(csv, event->process);
	add_what(csv, stall->kernel ? "gpu,stall," : "gpu,stalls,");
	add_text(csv, csv_at(csv, COLUMN_FUNCTION), stall->kernel ? stall->reason : "window");
	if (stall->kernel)
		add_kernel(csv, stall->kernel);
	if (stall->kernel && stall->offset != STALL_ANYWHERE)
		buf_hex(csv_at(csv, COLUMN_ADDRESS), stall->offset);
	name = csv_at(csv, COLUMN_NAME);
	if (stall->file) {
		AT_END(buf_free) struct buf at = { 0 };

		buf_printf(&at, "%s:%u", stall->file, stall->line);
		add_text(csv, name, at.data);
	}
	add_u64(csv, COLUMN_VALUE, stall->samples);
	end_row(csv);
}

/* ---- the format --------------------------------------------------------------------------- */

static int csv_begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct buf *out = &((struct csv *)self)->sink.lines.pending;

	buf_add(out, header, sizeof(header) - 2); /* without the last comma */
	buf_putc(out, '\n');
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
	struct csv *csv = (struct csv *)self;

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
	else if (event->type == EVENT_STALL)
		add_stall(csv, event);
	return 0;
}

static void add_missed(struct csv *csv, uint64_t time_ns, const char *what, const char *why)
{
	begin_row(csv, time_ns);
	add_what(csv, "cuscope,missed,");
	buf_puts(csv_at(csv, COLUMN_FUNCTION), what);
	add_text(csv, csv_at(csv, COLUMN_NAME), why);
	end_row(csv);
}

/* Who reads rows only has to see that there should be more. */
static int csv_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct csv *csv = (struct csv *)self;
	const struct stack_counts *stacks = &csv->sink.stacks;
	AT_END(buf_free) struct buf why = { 0 };

	if (stack_counts_whole(stacks) < stack_counts_all(stacks)) {
		stack_counts_text(stacks, &why);
		add_missed(csv, run->end_ns, "stacks", why.data);
		buf_reset(&why);
	}
	if (missed_of_file(run, &why))
		add_missed(csv, run->end_ns, "incomplete", why.data);
	return 0;
}

static void csv_free(struct consumer *self)
{
	struct csv *csv = (struct csv *)self;

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
	.stalls = true,
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
