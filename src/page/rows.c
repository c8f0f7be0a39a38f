// SPDX-License-Identifier: MIT
/* From events to rows of tracks. */
#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "base/map.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "page/rows.h"

#define THREADS_MAX 65536 /* that are looked for; tracks have a bound of their own */

/* A thread of a process, with its rows of the timeline. */
struct page_thread {
	struct page_thread_key {
		uint32_t process, tid;
	} key;
	char comm[16];
	struct page_track *calls, *others, *states, *ranges;
	UT_hash_handle hh;
};

struct page_stream {
	struct page_stream_key {
		uint32_t process, device, context, stream;
	} key;
	struct page_track *work;
	UT_hash_handle hh;
};

struct page_memory {
	struct page_memory_key {
		uint32_t process, kind;
	} key;
	struct page_track *track;
	uint64_t milli, time_ns; /* the last value, and since when */
	UT_hash_handle hh;
};

struct page_rows *page_rows_new(struct page_blocks *blocks, const struct sink *sink)
{
	struct page_rows *rows = xcalloc(1, sizeof(*rows));

	rows->blocks = blocks;
	rows->sink = sink;
	rows->memory = memory_new();
	return rows;
}

void page_rows_free(struct page_rows *rows)
{
	if (!rows)
		return;
	MAP_FREE(rows->threads, free);
	MAP_FREE(rows->streams, free);
	MAP_FREE(rows->memories, free);
	free(rows->processes);
	free(rows->functions);
	free(rows->kernels);
	free(rows->stacks);
	free(rows->frames);
	buf_free(&rows->stack_blocks);
	buf_free(&rows->frame_blocks);
	buf_free(&rows->text);
	description_free(&rows->description);
	memory_free(rows->memory);
	free(rows);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static uint64_t rows_number(uint64_t value)
{
	return value < PAGE_NUMBER_MOST ? value : PAGE_NUMBER_MOST;
}

/* Since the trace's begin: what was under way then begins with it. */
static uint64_t rows_time(const struct page_rows *rows, uint64_t time_ns)
{
	return time_ns > rows->sink->begin_ns ? rows_number(time_ns - rows->sink->begin_ns) : 0;
}

void rows_place(const struct page_rows *rows, uint64_t *row, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t begin = rows_time(rows, begin_ns), end = rows_time(rows, end_ns);

	row[PAGE_AT_BEGIN] = begin;
	row[PAGE_AT_DURATION] = end > begin ? end - begin : 0;
}

uint32_t rows_name(struct page_rows *rows, const char *text)
{
	AT_END(buf_free) struct buf safe = { 0 };

	buf_puts(&safe, "");
	text_add_safe(&safe, text);
	return page_name(rows->blocks, safe.data);
}

static uint32_t rows_function_name(struct page_rows *rows, const struct function *function)
{
	rows->functions = by_id_room(rows->functions, &rows->n_functions, sizeof(*rows->functions),
	                             function->id);
	if (!rows->functions[function->id])
		rows->functions[function->id] = 1 + rows_name(rows, function->name);
	return rows->functions[function->id] - 1;
}

static uint32_t rows_kernel_name(struct page_rows *rows, const struct kernel *kernel)
{
	rows->kernels =
		by_id_room(rows->kernels, &rows->n_kernels, sizeof(*rows->kernels), kernel->id);
	if (!rows->kernels[kernel->id])
		rows->kernels[kernel->id] = 1 + rows_name(rows, kernel->name);
	return rows->kernels[kernel->id] - 1;
}

static uint64_t rows_stack(struct page_rows *rows, const struct stack *stack)
{
	if (!stack)
		return 0;
	*BY_ID(rows->stacks, rows->n_stacks, stack->id) = stack;
	return 1 + (uint64_t)stack->id;
}

/* ---- tracks ---------------------------------------------------------------------------------- */

static struct page_process *rows_process(struct page_rows *rows, const struct event *event)
{
	const struct process *process = event->process;
	struct page_process *at;

	at = BY_ID(rows->processes, rows->n_processes, process->id);
	if (!at->met) {
		at->met = true;
		at->pid = process->pid;
		at->begin_ns = event->time_ns;
		memcpy(at->comm, process->comm, sizeof(at->comm));
	}
	return at;
}

static struct page_thread *rows_thread(struct page_rows *rows, const struct event *event,
                                       uint32_t tid)
{
	struct page_thread_key key = { event->process->id, tid };
	struct page_thread *thread = MAP_FIND(rows->threads, &key);

	rows_process(rows, event);
	if (thread || HASH_COUNT(rows->threads) >= THREADS_MAX)
		return thread;
	thread = MAP_ADD(rows->threads, key, &key);
	memcpy(thread->comm, event->process->comm, sizeof(thread->comm));
	return thread;
}

static struct page_track *thread_track(struct page_rows *rows, struct page_thread *thread,
                                       struct page_track **track, enum page_shape shape)
{
	struct page_track_options options = { .shape = shape };

	if (!thread)
		return NULL;
	if (*track)
		return *track;
	buf_reset(&rows->text);
	text_add_safe(&rows->text, thread->comm);
	buf_printf(&rows->text, " %u%s", thread->key.tid,
	           shape == PAGE_OTHER ? ": the driver, hooks" : "");
	options.title = rows->text.data;
	options.process = thread->key.process;
	options.tid = thread->key.tid;
	*track = page_track_new(rows->blocks, &options);
	return *track;
}

static struct page_track *stream_track(struct page_rows *rows, const struct event *event)
{
	const struct activity *a = event->activity;
	struct page_stream_key key = { event->process->id, a->device, a->context, a->stream };
	struct page_stream *stream = MAP_FIND(rows->streams, &key);
	struct page_track_options options = { .shape = PAGE_WORK };
	char group[32];

	rows_process(rows, event);
	if (stream || HASH_COUNT(rows->streams) >= THREADS_MAX)
		return stream ? stream->work : NULL;
	stream = MAP_ADD(rows->streams, key, &key);
	snprintf(group, sizeof(group), "GPU %u", a->device);
	buf_reset(&rows->text);
	buf_printf(&rows->text, "stream %u of ", a->stream);
	text_add_safe(&rows->text, event->process->comm);
	buf_printf(&rows->text, " (%u)", event->process->pid);
	options.title = rows->text.data;
	options.group = group;
	options.process = key.process;
	stream->work = page_track_new(rows->blocks, &options);
	return stream->work;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* What makes the words of a call: two with the same have the same words. */
struct call_words {
	uint32_t function, kernel, flags;
	int32_t result;
	uint64_t text;
	struct api_call args;
};

static uint64_t call_key(const struct call *call)
{
	struct call_words words;

	memset(&words, 0, sizeof(words));
	words.function = call->function->id;
	words.kernel = call->kernel ? 1 + call->kernel->id : 0;
	words.flags = call->flags;
	words.result = call->result;
	words.text = call->text ? hash_long(call->text, strlen(call->text)) : 0;
	memcpy(&words.args, &call->args, sizeof(words.args));
	return hash_long(&words, sizeof(words));
}

static void call_add_args(const struct call *call, struct buf *out)
{
	const struct api_arg *args;
	size_t n = call_args(call, &args);

	for (size_t i = 0; i < n; i++) {
		buf_puts(out, out->len ? "\n" : "");
		text_add_safe(out, args[i].name);
		buf_puts(out, " = ");
		if (args[i].out && !call_has_output(call))
			buf_puts(out, "not known");
		else
			add_arg(out, call, args, i);
	}
}

static void call_add_words(const struct call *call, struct buf *out)
{
	call_add_args(call, out);
	if (call->kernel) {
		buf_puts(out, out->len ? "\nkernel = " : "kernel = ");
		text_add_safe(out, call->kernel->name);
	}
	if (call_has_end(call) && call->result) {
		buf_puts(out, out->len ? "\nresult = " : "result = ");
		add_result(out, call);
	}
}

static uint64_t call_detail(struct page_rows *rows, struct page_track *track,
                            const struct call *call)
{
	uint64_t key = call_key(call), number = page_text_find(track, key);

	if (number)
		return number;
	buf_reset(&rows->text);
	buf_puts(&rows->text, "");
	call_add_words(call, &rows->text);
	return rows->text.len ? page_text_add(rows->blocks, track, key, rows->text.data) : 0;
}

/* As the page's script knows them. */
static uint64_t call_flags_of(const struct call *call)
{
	return (call->flags & CALL_FAILED ? 1 : 0) | (call->flags & CALL_UNFINISHED ? 2 : 0) |
	       (call->flags & CALL_NO_RETURN ? 4 : 0) | (call->flags & CALL_CAPTURED ? 8 : 0) |
	       (call->flags & CALL_NESTED ? 16 : 0);
}

static void rows_add_call(struct page_rows *rows, const struct event *event)
{
	const struct call *call = event->call;
	struct page_thread *thread = rows_thread(rows, event, event->tid);
	bool cuda = call_is_cuda(call);
	struct page_track **own = !thread ? NULL : cuda ? &thread->calls : &thread->others;
	struct page_track *track = thread_track(rows, thread, own, cuda ? PAGE_CALL : PAGE_OTHER);
	uint32_t name = rows_function_name(rows, call->function);
	uint64_t *row = page_row(rows->blocks, track);

	/* one without an end lasts to nobody knows when */
	rows_place(rows, row, call->begin_ns, call_has_end(call) ? call->end_ns : call->begin_ns);
	row[PAGE_AT_NAME] = name;
	row[CALL_DEPTH] = call->depth;
	row[CALL_AT_FLAGS] = call_flags_of(call);
	row[CALL_CORRELATION] = rows_number(call->correlation);
	if (!track)
		return;
	row[CALL_STACK] = rows_stack(rows, call->stack);
	row[CALL_DETAIL] = call_detail(rows, track, call);
}

/* ---- work ------------------------------------------------------------------------------------ */

/* What makes the words of a kernel's run. */
struct kernel_words {
	uint64_t graph, node;
	uint32_t device, context, stream, grid[3], block[3], unused;
};

static uint64_t kernel_key(const struct activity *a)
{
	const struct kernel_words words = { .graph = a->graph,
		                            .node = a->graph_node,
		                            .device = a->device,
		                            .context = a->context,
		                            .stream = a->stream,
		                            .grid = { a->grid[0], a->grid[1], a->grid[2] },
		                            .block = { a->block[0], a->block[1], a->block[2] } };

	return hash_long(&words, sizeof(words));
}

/* Of kernels many have the same words, which take longer to make than to find. */
static uint64_t work_detail(struct page_rows *rows, struct page_track *track,
                            const struct activity *activity)
{
	const struct delay none = { 0 };
	const struct buf *words = &rows->description.words;
	bool kernel = activity->kind == ACTIVITY_KERNEL;
	uint64_t key = kernel ? kernel_key(activity) : 0;
	uint64_t number = kernel ? page_text_find(track, key) : 0;

	if (number)
		return number;
	describe_activity(activity, &none, &rows->description);
	if (!words->len)
		return 0;
	if (!kernel) {
		key = hash_long(words->data, words->len);
		number = page_text_find(track, key);
	}
	return number ? number : page_text_add(rows->blocks, track, key, words->data);
}

static void rows_add_work(struct page_rows *rows, const struct event *event)
{
	const struct activity *a = event->activity;
	struct page_track *track = stream_track(rows, event);
	uint64_t *row;
	uint32_t name;

	if (a->kernel) {
		name = rows_kernel_name(rows, a->kernel);
	} else {
		buf_reset(&rows->text);
		activity_name(a, &rows->text);
		name = rows_name(rows, rows->text.data);
	}
	row = page_row(rows->blocks, track);
	rows_place(rows, row, a->begin_ns, a->end_ns);
	row[PAGE_AT_NAME] = name;
	row[WORK_WHAT] = a->kind;
	row[WORK_CORRELATION] = rows_number(a->correlation);
	row[WORK_BYTES] = rows_number(a->bytes);
	row[WORK_ASKED] = delay_of(rows->sink, event).tid;
	if (!track)
		return;
	row[WORK_STACK] = rows_stack(rows, a->stack);
	row[WORK_DETAIL] = work_detail(rows, track, a);
}

/* ---- ranges ---------------------------------------------------------------------------------- */

static void rows_add_range(struct page_rows *rows, const struct event *event)
{
	const struct range *range = event->range;
	uint32_t tid = event->tid ? event->tid : delay_of(rows->sink, event).tid;
	struct page_thread *thread = rows_thread(rows, event, tid);
	struct page_track *track =
		thread_track(rows, thread, thread ? &thread->ranges : NULL, PAGE_RANGE);
	uint32_t name =
		rows_name(rows, *range->name ? range->name : range_words[range->kind].plain);
	uint64_t *row = page_row(rows->blocks, track), key;

	rows_place(rows, row, range->begin_ns, range->end_ns);
	row[PAGE_AT_NAME] = name;
	row[RANGE_DEPTH] = range->depth;
	row[RANGE_COLOR] = range->color;
	if (!track)
		return;
	buf_reset(&rows->text);
	buf_puts(&rows->text, range_words[range->kind].plain);
	if (range->domain) {
		buf_puts(&rows->text, " domain=");
		text_add_safe(&rows->text, range->domain);
	}
	key = hash_long(rows->text.data, rows->text.len);
	row[RANGE_DETAIL] = page_text_find(track, key);
	if (!row[RANGE_DETAIL])
		row[RANGE_DETAIL] = page_text_add(rows->blocks, track, key, rows->text.data);
}

/* ---- samples --------------------------------------------------------------------------------- */

static uint32_t rows_state_name(struct page_rows *rows, const struct sample *sample)
{
	const char *wait = wait_kind_name(sample->wait);
	char text[64];

	if (sample->kind == SAMPLE_CPU)
		return rows_name(rows, "on a CPU");
	if (sample->blocked == BLOCKED_PREEMPTED || sample->wait == WAIT_CPU)
		return rows_name(rows, "ready, without a CPU");
	snprintf(text, sizeof(text), "blocked: %s", wait ? wait : blocked_name(sample->blocked));
	return rows_name(rows, text);
}

static uint64_t state_detail(struct page_rows *rows, struct page_track *track,
                             const struct sample *sample)
{
	const struct buf *words = &rows->description.words;
	uint64_t key, number;

	if (sample->kind == SAMPLE_CPU)
		return 0;
	describe_wait(sample, &rows->description);
	key = hash_long(words->data, words->len);
	number = page_text_find(track, key);
	return number ? number : page_text_add(rows->blocks, track, key, words->data);
}

static void rows_add_sample(struct page_rows *rows, const struct event *event)
{
	const struct sample *sample = event->sample;
	struct page_thread *thread;
	struct page_track *track;
	uint64_t *row, ns;
	uint32_t name;

	if (!sample_is_placed(sample))
		return;
	thread = rows_thread(rows, event, event->tid);
	track = thread_track(rows, thread, thread ? &thread->states : NULL, PAGE_STATE);
	name = rows_state_name(rows, sample);
	row = page_row(rows->blocks, track);
	ns = sample->weight_ns < event->time_ns ? sample->weight_ns : event->time_ns;
	rows_place(rows, row, event->time_ns - ns, event->time_ns);
	row[PAGE_AT_NAME] = name;
	row[STATE_THREAD] = sample->waker_tid;
	if (!track)
		return;
	row[STATE_STACK] = rows_stack(rows, sample->stack);
	row[STATE_DETAIL] = state_detail(rows, track, sample);
}

/* ---- counters -------------------------------------------------------------------------------- */

static void rows_add_value(struct page_rows *rows, struct page_track *track, uint64_t time_ns,
                           uint64_t milli)
{
	uint64_t *row = page_row(rows->blocks, track);

	row[PAGE_AT_BEGIN] = rows_time(rows, time_ns);
	row[COUNTER_VALUE] = rows_number(milli);
}

static struct page_track *metric_track(struct page_rows *rows, uint32_t gpu, enum gpu_metric metric)
{
	const struct gpu_metric_info *info = gpu_metric_info(metric);
	struct page_track_options options = { .shape = PAGE_COUNTER };
	char group[32];

	if (rows->metrics[gpu][metric])
		return rows->metrics[gpu][metric];
	snprintf(group, sizeof(group), "GPU %u, measured", gpu);
	options.title = info->name;
	options.group = group;
	options.unit = info->is_rate ? "B/s" : "%";
	rows->metrics[gpu][metric] = page_track_new(rows->blocks, &options);
	return rows->metrics[gpu][metric];
}

static void rows_add_metrics(struct page_rows *rows, const struct event *event)
{
	const struct gpu_metrics_sample *sample = event->metrics;

	for (unsigned i = 0; sample->gpu < RUN_GPUS_MAX && i < GPU_METRICS; i++) {
		enum gpu_metric drawn = gpu_metric_drawn(sample, i);
		uint64_t value;

		if (drawn == GPU_METRICS_DRAWN || sample->value[i] < 0)
			continue;
		value = (uint64_t)sample->value[i];
		/* hundredths of a percent, or bytes a second */
		value = value < PAGE_NUMBER_MOST / 1000 ? value : PAGE_NUMBER_MOST / 1000;
		value = gpu_metric_info(i)->is_rate ? value * 1000 : value * 10;
		rows_add_value(rows, metric_track(rows, sample->gpu, drawn), sample->begin_ns,
		               value);
	}
}

static void rows_follow_memory(void *data, const struct memory_change *change)
{
	const struct memory_allocation *a = change->allocation;
	struct page_rows *rows = data;
	struct page_memory_key key = { a->process->id, a->kind };
	struct page_track_options options = { .shape = PAGE_COUNTER, .unit = "B" };
	struct page_memory *memory;
	uint64_t bytes = change->live_bytes;

	if (a->kind == MEMORY_VMM_VA) /* address space, no memory */
		return;
	memory = MAP_FIND(rows->memories, &key);
	if (!memory && HASH_COUNT(rows->memories) < THREADS_MAX) {
		memory = MAP_ADD(rows->memories, key, &key);
		buf_reset(&rows->text);
		buf_printf(&rows->text, "live memory, %s", api_memory_name(a->kind));
		options.title = rows->text.data;
		options.process = a->process->id;
		memory->track = page_track_new(rows->blocks, &options);
	}
	bytes = bytes < PAGE_NUMBER_MOST / 1000 ? bytes : PAGE_NUMBER_MOST / 1000;
	rows_add_value(rows, memory ? memory->track : NULL, change->time_ns, bytes * 1000);
	if (!memory)
		return;
	memory->milli = bytes * 1000;
	memory->time_ns = change->time_ns;
}

/* It ends with its process. */
static void rows_end_memory(struct page_rows *rows, const struct event *exit)
{
	for (uint32_t kind = 0; kind < MEMORY_COUNT; kind++) {
		struct page_memory_key key = { exit->process->id, kind };
		struct page_memory *memory = MAP_FIND(rows->memories, &key);

		if (memory && memory->milli && memory->time_ns <= exit->time_ns)
			rows_add_value(rows, memory->track, exit->time_ns, 0);
		if (memory)
			memory->milli = 0;
	}
}

void page_rows_memory_end(struct page_rows *rows, uint64_t end_ns)
{
	struct page_memory *memory, *next;

	HASH_ITER (hh, rows->memories, memory, next)
		if (memory->milli && memory->time_ns < end_ns)
			rows_add_value(rows, memory->track, end_ns, memory->milli);
}

void page_rows_memory(struct page_rows *rows, const struct event *event)
{
	memory_tell_changes(rows->memory, rows_follow_memory, rows);
	memory_event(rows->memory, event);
	if (event->type == EVENT_EXIT)
		rows_end_memory(rows, event);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void rows_name_thread(struct page_rows *rows, const struct event *event)
{
	struct page_thread *thread = rows_thread(rows, event, event->tid);

	if (thread)
		memcpy(thread->comm, event->thread->comm, sizeof(thread->comm));
}

void page_rows_event(struct page_rows *rows, const struct event *event)
{
	switch (event->type) {
	case EVENT_CALL:
	case EVENT_OTHER_CALL:
		rows_add_call(rows, event);
		break;
	case EVENT_THREAD:
		rows_name_thread(rows, event);
		break;
	case EVENT_ACTIVITY:
		rows_add_work(rows, event);
		break;
	case EVENT_RANGE:
		rows_add_range(rows, event);
		break;
	case EVENT_SAMPLE:
		rows_add_sample(rows, event);
		break;
	case EVENT_METRICS:
		rows_add_metrics(rows, event);
		break;
	case EVENT_PROCESS:
		rows_process(rows, event);
		break;
	case EVENT_EXIT:
	case EVENT_STALL:
	case EVENT_CALL_BEGIN:
		break;
	}
}
