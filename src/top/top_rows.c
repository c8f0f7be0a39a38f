// SPDX-License-Identifier: MIT
#include "top/top_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "base/map.h"
#include "base/xalloc.h"
#include "table/table.h"

/* ---- top hooks ----------------------------------------------------------------------------- */

struct hook_row {
	const struct function *function; /* the first of that name; NULL: the others */
	size_t sized;                    /* 1 and the index of its first argument that is a size */
	bool any_sized;                  /* of the others: one of them is */
	struct top_count calls, bytes;
	uint64_t timed, time_ns, max_ns;
	UT_hash_handle hh;
};

/* Of what programs say nothing is believed: a sum stays at the most rather than begin anew. */
static void hooks_add(uint64_t *sum, uint64_t value)
{
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = UINT64_MAX - 1;
}

static size_t sized_argument(const struct function *function)
{
	const struct api_arg *args;
	size_t n = function->api ? api_args(function->api, &args) : 0;

	for (size_t i = 0; i < n; i++) {
		if (args[i].type == T_SIZE)
			return i + 1;
	}
	return 0;
}

static struct hook_row *hooks_others(struct hook_rows *rows)
{
	if (!rows->others)
		rows->others = xcalloc(1, sizeof(*rows->others));
	return rows->others;
}

static struct hook_row *hooks_find(struct hook_rows *rows, const struct function *function,
                                   bool room, bool *made)
{
	struct hook_row *row = MAP_FIND_TEXT(rows->rows, function->name);

	if (row)
		return row;
	if (!room || HASH_COUNT(rows->rows) >= TOP_HOOKS_MAX)
		return hooks_others(rows);
	row = xcalloc(1, sizeof(*row));
	row->function = function;
	row->sized = sized_argument(function);
	row->any_sized = row->sized > 0;
	HASH_ADD_KEYPTR(hh, rows->rows, function->name, strlen(function->name), row);
	*made = true;
	return row;
}

bool hook_rows_count(struct hook_rows *rows, const struct call *call, bool room)
{
	struct hook_row *row = rows->last;
	bool made = false;
	size_t sized;

	if (!row || row->function != call->function)
		row = hooks_find(rows, call->function, room, &made);
	if (row->function)
		rows->last = row;
	row->calls.total++;
	sized = row->function ? row->sized : sized_argument(call->function);
	row->any_sized |= sized > 0;
	if (sized && sized <= call->args.n_args)
		hooks_add(&row->bytes.total, call->args.arg[sized - 1]);
	if (call_has_end(call)) {
		uint64_t ns = call_duration_ns(call);

		row->timed++;
		hooks_add(&row->time_ns, ns);
		row->max_ns = ns > row->max_ns ? ns : row->max_ns;
	}
	return made;
}

static void hooks_tick(struct hook_row *row, double seconds)
{
	count_tick(&row->calls, seconds);
	count_tick(&row->bytes, seconds);
}

void hook_rows_tick(struct hook_rows *rows, double seconds)
{
	struct hook_row *row, *next;

	HASH_ITER (hh, rows->rows, row, next)
		hooks_tick(row, seconds);
	if (rows->others)
		hooks_tick(rows->others, seconds);
}

static void add_count(struct top_count *into, const struct top_count *from)
{
	hooks_add(&into->total, from->total);
	hooks_add(&into->before, from->before);
	into->rate += from->rate;
}

static void add_row(struct hook_row *into, const struct hook_row *from)
{
	add_count(&into->calls, &from->calls);
	add_count(&into->bytes, &from->bytes);
	into->any_sized |= from->any_sized;
	into->timed += from->timed;
	hooks_add(&into->time_ns, from->time_ns);
	into->max_ns = from->max_ns > into->max_ns ? from->max_ns : into->max_ns;
}

size_t hook_rows_merge(struct hook_rows *into, const struct hook_rows *from, size_t room)
{
	const struct hook_row *row, *next;
	size_t n = 0;

	HASH_ITER (hh, from->rows, row, next) {
		bool made = false;

		add_row(hooks_find(into, row->function, n < room, &made), row);
		n += made;
	}
	if (from->others)
		add_row(hooks_others(into), from->others);
	return n;
}

size_t hook_rows_forget(struct hook_rows *rows)
{
	size_t n = HASH_COUNT(rows->rows);

	MAP_FREE(rows->rows, free);
	free(rows->others);
	memset(rows, 0, sizeof(*rows));
	return n;
}

static void hooks_copy(const struct hook_row *row, struct top_hook *into)
{
	*into = (struct top_hook){ .name = row->function ? row->function->name : "(others)",
		                   .calls = row->calls,
		                   .bytes = row->bytes,
		                   .time_ns = row->time_ns,
		                   .max_ns = row->max_ns };
	if (!row->any_sized) {
		into->bytes.total = TABLE_NOT_KNOWN;
		into->bytes.rate = NAN;
	}
	if (row->timed)
		into->mean_ns = row->time_ns / row->timed;
	else
		into->time_ns = into->mean_ns = into->max_ns = TABLE_NOT_KNOWN;
}

void hook_rows_copy(const struct hook_rows *rows, struct top_process *into)
{
	const struct hook_row *row, *next;

	into->n_hooks = 0;
	into->hooks = xcalloc(HASH_COUNT(rows->rows) + 1, sizeof(*into->hooks));
	HASH_ITER (hh, rows->rows, row, next)
		hooks_copy(row, &into->hooks[into->n_hooks++]);
	if (rows->others)
		hooks_copy(rows->others, &into->hooks[into->n_hooks++]);
}

/* ---- top rows ------------------------------------------------------------------------------ */

#define GPUS_MAX    64 /* told apart by their number, modulo this */
#define THREAD_KEPT 16 /* intervals without a call, after which a thread is forgotten */

/* ---- finding rows -------------------------------------------------------------------------- */

static struct function_row *make_function(struct top_process_row *process,
                                          const struct function *function)
{
	struct function_row *row = MAP_FIND_TEXT(process->functions, function->name);

	if (row)
		return row;
	row = xcalloc(1, sizeof(*row));
	row->shown.function = function;
	HASH_ADD_KEYPTR(hh, process->functions, function->name, strlen(function->name), row);
	return row;
}

static struct function_row *find_function(struct top_process_row *process,
                                          const struct function *function)
{
	struct function_row **by_id = by_id_room(
		process->function_by_id, &process->n_function_by_id, sizeof(*by_id), function->id);

	process->function_by_id = by_id;
	if (!by_id[function->id])
		by_id[function->id] = make_function(process, function);
	return by_id[function->id];
}

static struct top_kernel_row *find_kernel(struct top_process_row *process,
                                          const struct kernel *kernel)
{
	struct top_kernel_row *row = process->last_kernel;

	if (row && row->id == kernel->id)
		return row;
	row = MAP_FIND(process->kernels, &kernel->id);
	if (!row) {
		row = MAP_ADD(process->kernels, id, &kernel->id);
		row->shown.kernel = kernel;
	}
	return process->last_kernel = row;
}

static struct top_stream_row *find_stream(struct top_process_row *process, const struct call *call,
                                          uint32_t tid)
{
	struct top_stream_key key = { .handle = call->args.has_stream ? call->args.stream : 0 };
	struct top_stream_row *row;

	key.tid = key.handle == STREAM_PER_THREAD ? tid : 0;
	row = MAP_FIND(process->streams, &key);
	if (row || (HASH_COUNT(process->streams) >= TOP_STREAMS_MAX && process->other_streams))
		return row ? row : process->other_streams;
	row = xcalloc(1, sizeof(*row));
	if (HASH_COUNT(process->streams) >= TOP_STREAMS_MAX) {
		row->shown.others = true;
		return process->other_streams = row;
	}
	row->shown.key = key;
	HASH_ADD(hh, process->streams, shown.key, sizeof(key), row);
	return row;
}

static void note_thread(struct top_process_row *process, uint32_t tid, uint64_t interval)
{
	struct top_thread_row *row = process->last_thread;

	if (!row || row->tid != tid)
		row = MAP_MAKE(process->threads, tid, &tid);
	row->interval = interval;
	process->last_thread = row;
}

/* ---- counting ------------------------------------------------------------------------------ */

static void count_function(struct function_row *row, const struct call *call)
{
	row->shown.calls.total++;
	row->shown.failed += !!(call->flags & CALL_FAILED);
	if (call_has_end(call))
		sketch_add(&row->durations, call_duration_ns(call));
}

void rows_count_more(struct top_process_row *row, const struct function *function, uint64_t calls)
{
	struct top_function *shown = &find_function(row, function)->shown;

	shown->calls.total += calls;
	shown->counted += calls;
	row->shown.numbers[TOP_COUNT_CALLS].total += calls;
}

static void count_launch(struct top_process_row *row, const struct call *call, uint32_t tid)
{
	row->shown.numbers[TOP_COUNT_LAUNCHES].total += call_launches(call);
	find_stream(row, call, tid)->shown.launches.total++; /* of others it does not tell */
	if (call->kernel)
		find_kernel(row, call->kernel)->shown.launches.total += call_launches(call);
}

static void count_copy(struct top_process_row *row, const struct call *call, uint32_t tid)
{
	struct top_stream *stream = &find_stream(row, call, tid)->shown;

	row->shown.numbers[TOP_COUNT_COPIES + call->args.direction].total++;
	row->shown.numbers[TOP_COUNT_COPY_BYTES + call->args.direction].total += call->args.bytes;
	stream->copies.total++;
	stream->copy_bytes.total += call->args.bytes;
}

/* A wait that began before this interval belongs to it only from the interval's begin on. */
static void add_wait(struct top_process_row *row, uint64_t begin_ns, uint64_t end_ns,
                     uint64_t since_ns)
{
	uint64_t begin = begin_ns > since_ns ? begin_ns : since_ns;

	row->sync_ns += end_ns > begin ? end_ns - begin : 0;
}

static void count_sync(struct top_process_row *row, const struct call *call, uint64_t since_ns)
{
	row->shown.numbers[TOP_COUNT_SYNC_NS].total += call_duration_ns(call);
	add_wait(row, call->begin_ns, call->end_ns, since_ns);
}

void rows_wait(struct top_process_row *row, uint32_t tid, uint64_t begin_ns, uint64_t now_ns,
               uint64_t interval, uint64_t since_ns)
{
	note_thread(row, tid, interval);
	add_wait(row, begin_ns, now_ns, since_ns);
}

static void count_work(struct top_process_row *row, const struct call *call, uint32_t tid,
                       uint64_t since_ns)
{
	switch (call->op) {
	case OP_LAUNCH:
		count_launch(row, call, tid);
		break;
	case OP_GRAPH_LAUNCH:
		row->shown.numbers[TOP_COUNT_GRAPH_LAUNCHES].total++;
		break;
	case OP_COPY:
		count_copy(row, call, tid);
		break;
	case OP_SET:
		row->shown.numbers[TOP_COUNT_SET_BYTES].total += call->args.bytes;
		break;
	case OP_SYNC:
		count_sync(row, call, since_ns);
		break;
	default:
		break;
	}
}

void rows_count(struct top_process_row *row, const struct event *event, uint64_t interval,
                uint64_t since_ns)
{
	const struct call *call = event->call;

	if (call->flags & CALL_NESTED)
		return;
	row->shown.numbers[TOP_COUNT_CALLS].total++;
	row->shown.numbers[TOP_COUNT_ERRORS].total += !!(call->flags & CALL_FAILED);
	row->entries += !!(call->flags & CALL_NO_RETURN);
	note_thread(row, event->tid, interval);
	count_function(find_function(row, call->function), call);
	if (call_counts(call))
		count_work(row, call, event->tid, since_ns);
}

/* ---- GPUs ---------------------------------------------------------------------------------- */

static struct gpu_row *find_gpu(struct top_process_row *process, uint32_t device)
{
	struct gpu_row *row = process->gpus;

	while (row && row->device != device)
		row = row->next;
	if (row)
		return row;
	row = xcalloc(1, sizeof(*row));
	row->device = device;
	row->next = process->gpus;
	return process->gpus = row;
}

static uint64_t gpu_ns(const struct top_process_row *process, uint64_t *gpus)
{
	uint64_t sum = 0;

	*gpus = 0;
	for (const struct gpu_row *row = process->gpus; row; row = row->next) {
		sum += busy_ns(&row->busy);
		++*gpus;
	}
	return sum;
}

void rows_count_activity(struct top_process_row *row, const struct activity *activity)
{
	struct top_kernel *kernel;

	busy_add(&find_gpu(row, activity->device % GPUS_MAX)->busy, activity->begin_ns,
	         activity->end_ns);
	if (!activity->kernel)
		return;
	kernel = &find_kernel(row, activity->kernel)->shown;
	kernel->gpu_runs++;
	kernel->gpu_ns += activity_duration_ns(activity);
}

void rows_tick_gpu(struct top_process_row *row, uint64_t ns)
{
	uint64_t gpus, now_ns = gpu_ns(row, &gpus);
	double share = 0;

	if (!gpus) {
		row->shown.gpu_share = -1;
		return;
	}
	if (ns)
		share = (double)(now_ns - row->gpu_before_ns) / (double)ns / (double)gpus;
	row->shown.gpu_share = share > 1 ? 1 : share;
	row->shown.gpu_ns = now_ns;
	row->gpu_before_ns = now_ns;
}

/* ---- intervals ----------------------------------------------------------------------------- */

void count_tick(struct top_count *count, double seconds)
{
	count->rate = seconds > 0 ? (double)(count->total - count->before) / seconds : 0;
	count->before = count->total;
}

static void tick_stream(struct top_stream_row *row, double seconds)
{
	count_tick(&row->shown.launches, seconds);
	count_tick(&row->shown.copies, seconds);
	count_tick(&row->shown.copy_bytes, seconds);
}

static void tick_threads(struct top_process_row *process, double seconds, uint64_t interval)
{
	struct top_thread_row *thread, *next;
	double share;

	process->shown.threads = 0;
	HASH_ITER (hh, process->threads, thread, next) {
		process->shown.threads += thread->interval == interval;
		if (thread->interval + THREAD_KEPT > interval)
			continue;
		if (thread == process->last_thread)
			process->last_thread = NULL;
		MAP_DROP(process->threads, thread);
	}
	share = process->shown.threads && seconds > 0
	                ? (double)process->sync_ns / 1e9 / seconds / (double)process->shown.threads
	                : 0;
	process->shown.sync_share = share > 1 ? 1 : share;
	process->sync_ns = 0;
}

void rows_tick(struct top_process_row *process, double seconds, uint64_t interval)
{
	struct function_row *function, *next_function;
	struct top_kernel_row *kernel, *next_kernel;
	struct top_stream_row *stream, *next_stream;

	for (size_t i = 0; i < TOP_COUNTS; i++)
		count_tick(&process->shown.numbers[i], seconds);
	HASH_ITER (hh, process->functions, function, next_function)
		count_tick(&function->shown.calls, seconds);
	HASH_ITER (hh, process->kernels, kernel, next_kernel)
		count_tick(&kernel->shown.launches, seconds);
	HASH_ITER (hh, process->streams, stream, next_stream)
		tick_stream(stream, seconds);
	if (process->other_streams)
		tick_stream(process->other_streams, seconds);
	hook_rows_tick(&process->hooks, seconds);
	tick_threads(process, seconds, interval);
}

/* ---- copies -------------------------------------------------------------------------------- */

static void copy_function(const struct function_row *row, struct top_function *into)
{
	*into = row->shown;
	into->time_ns = into->p50_ns = into->p99_ns = TABLE_NOT_KNOWN;
	if (!row->durations.count)
		return;
	into->time_ns = row->durations.sum;
	into->p50_ns = sketch_percentile(&row->durations, 0.5);
	into->p99_ns = sketch_percentile(&row->durations, 0.99);
}

void rows_copy_details(const struct top_process_row *process, struct top_process *into)
{
	const struct function_row *function, *next_function;
	const struct top_kernel_row *kernel, *next_kernel;
	const struct top_stream_row *stream, *next_stream;

	into->functions = xcalloc(HASH_COUNT(process->functions), sizeof(*into->functions));
	into->kernels = xcalloc(HASH_COUNT(process->kernels), sizeof(*into->kernels));
	into->streams = xcalloc(HASH_COUNT(process->streams) + 1, sizeof(*into->streams));
	HASH_ITER (hh, process->functions, function, next_function)
		copy_function(function, &into->functions[into->n_functions++]);
	HASH_ITER (hh, process->kernels, kernel, next_kernel)
		into->kernels[into->n_kernels++] = kernel->shown;
	HASH_ITER (hh, process->streams, stream, next_stream)
		into->streams[into->n_streams++] = stream->shown;
	if (process->other_streams)
		into->streams[into->n_streams++] = process->other_streams->shown;
}

/* ---- the end ------------------------------------------------------------------------------- */

static void forget_threads(struct top_process_row *process)
{
	MAP_FREE(process->threads, free);
	process->last_thread = NULL;
}

void rows_forget(struct top_process_row *process)
{
	struct function_row *function, *next_function;

	HASH_ITER (hh, process->functions, function, next_function) {
		HASH_DELETE(hh, process->functions, function);
		sketch_free(&function->durations);
		free(function);
	}
	MAP_FREE(process->kernels, free);
	MAP_FREE(process->streams, free);
	for (struct gpu_row *gpu = process->gpus, *next; gpu; gpu = next) {
		next = gpu->next;
		busy_free(&gpu->busy);
		free(gpu);
	}
	process->gpus = NULL;
	process->gpu_before_ns = process->shown.gpu_ns = 0;
	process->shown.gpu_share = -1;
	forget_threads(process);
	free(process->other_streams);
	free(process->function_by_id);
	process->last_kernel = NULL;
	process->other_streams = NULL;
	process->function_by_id = NULL;
	process->n_function_by_id = 0;
}
