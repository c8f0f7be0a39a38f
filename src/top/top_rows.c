// SPDX-License-Identifier: MIT
#include "top/top_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "base/map.h"
#include "base/xalloc.h"
#include "table/table.h"

#define GPUS_MAX    64 /* told apart by their number, modulo this */
#define THREAD_KEPT 16 /* intervals without a call, after which a thread is forgotten */

/* Of what programs say nothing is believed: a sum stays at the most rather than begin anew. */
static void add_most(uint64_t *sum, uint64_t value)
{
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = UINT64_MAX - 1;
}

/* ---- finding rows -------------------------------------------------------------------------- */

static struct item_row *items_others(struct item_rows *items)
{
	if (!items->others)
		items->others = xcalloc(1, sizeof(*items->others));
	items->others->shown.name = "(others)";
	items->others->shown.others = true;
	return items->others;
}

/* New ones have no name, and are no others. */
static struct item_row *items_row(struct item_rows *items, const void *key, size_t bytes,
                                  size_t most)
{
	struct item_row *row = MAP_FIND_BYTES(items->rows, key, bytes);

	if (row)
		return row;
	if (HASH_COUNT(items->rows) >= most)
		return items_others(items);
	row = xcalloc(1, sizeof(*row) + bytes);
	memcpy(row + 1, key, bytes);
	HASH_ADD_KEYPTR(hh, items->rows, row + 1, bytes, row);
	return row;
}

static struct item_row *make_function(struct item_rows *items, const struct function *function)
{
	const char *name = function->name;
	struct item_row *row = items_row(items, name, strlen(name), SIZE_MAX);

	if (row->shown.name)
		return row;
	row->shown.name = name;
	row->durations = xcalloc(1, sizeof(*row->durations));
	return row;
}

static struct item_row *find_function(struct top_process_row *process,
                                      const struct function *function)
{
	struct item_row **by_id = by_id_room(process->function_by_id, &process->n_function_by_id,
	                                     sizeof(*by_id), function->id);

	process->function_by_id = by_id;
	if (!by_id[function->id])
		by_id[function->id] = make_function(&process->items[TOP_KIND_FUNCTION], function);
	return by_id[function->id];
}

static struct top_item *find_kernel(struct top_process_row *process, const struct kernel *kernel)
{
	struct item_rows *items = &process->items[TOP_KIND_KERNEL];

	if (items->last && items->last->of == kernel)
		return &items->last->shown;
	items->last = items_row(items, &kernel->id, sizeof(kernel->id), SIZE_MAX);
	if (!items->last->of)
		items->last->shown.kernel = items->last->of = kernel;
	return &items->last->shown;
}

static struct top_item *find_stream(struct top_process_row *process, const struct call *call,
                                    uint32_t tid)
{
	struct top_stream_key key = { .handle = call->args.has_stream ? call->args.stream : 0 };
	struct top_item *stream;

	key.tid = key.handle == STREAM_PER_THREAD ? tid : 0;
	stream = &items_row(&process->items[TOP_KIND_STREAM], &key, sizeof(key), TOP_STREAMS_MAX)
	                  ->shown;
	if (!stream->others)
		stream->stream = key;
	return stream;
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

static struct item_row *find_hook(struct item_rows *items, const struct function *function,
                                  size_t most)
{
	struct item_row *row = items->last;

	if (row && row->of == function)
		return row;
	row = items_row(items, function->name, strlen(function->name), most);
	if (row->shown.others)
		return row;
	if (!row->of) {
		row->shown.name = function->name;
		row->of = function;
		row->sized = sized_argument(function);
	}
	return items->last = row;
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

static void count_call(struct item_row *row, const struct call *call)
{
	uint64_t ns = call_duration_ns(call);

	row->shown.calls.total++;
	row->shown.failed += !!(call->flags & CALL_FAILED);
	if (!call_has_end(call))
		return;
	row->timed++;
	add_most(&row->shown.time_ns, ns);
	row->shown.max_ns = ns > row->shown.max_ns ? ns : row->shown.max_ns;
	if (row->durations)
		sketch_add(row->durations, ns);
}

void rows_count_hook(struct top_process_row *process, const struct call *call, size_t most)
{
	struct item_row *row = find_hook(&process->items[TOP_KIND_HOOK], call->function, most);
	size_t sized = row->shown.others ? sized_argument(call->function) : row->sized;

	count_call(row, call);
	row->any_sized |= sized > 0;
	if (sized && sized <= call->args.n_args)
		add_most(&row->shown.bytes.total, call->args.arg[sized - 1]);
}

void rows_count_more(struct top_process_row *row, const struct function *function, uint64_t calls)
{
	struct top_item *shown = &find_function(row, function)->shown;

	shown->calls.total += calls;
	shown->counted += calls;
	row->shown.numbers[TOP_COUNT_CALLS].total += calls;
}

static void count_launch(struct top_process_row *row, const struct call *call, uint32_t tid)
{
	row->shown.numbers[TOP_COUNT_LAUNCHES].total += call_launches(call);
	find_stream(row, call, tid)->calls.total++; /* of others it does not tell */
	if (call->kernel)
		find_kernel(row, call->kernel)->calls.total += call_launches(call);
}

static void count_copy(struct top_process_row *row, const struct call *call, uint32_t tid)
{
	struct top_item *stream = find_stream(row, call, tid);

	row->shown.numbers[TOP_COUNT_COPIES + call->args.direction].total++;
	row->shown.numbers[TOP_COUNT_COPY_BYTES + call->args.direction].total += call->args.bytes;
	stream->copies.total++;
	stream->bytes.total += call->args.bytes;
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
	count_call(find_function(row, call->function), call);
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
	struct top_item *kernel;

	busy_add(&find_gpu(row, activity->device % GPUS_MAX)->busy, activity->begin_ns,
	         activity->end_ns);
	if (!activity->kernel)
		return;
	kernel = find_kernel(row, activity->kernel);
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

static void item_tick(struct top_item *item, double seconds)
{
	count_tick(&item->calls, seconds);
	count_tick(&item->copies, seconds);
	count_tick(&item->bytes, seconds);
}

void items_tick(struct item_rows *items, double seconds)
{
	for (struct item_row *row = items->rows; row; row = row->hh.next)
		item_tick(&row->shown, seconds);
	if (items->others)
		item_tick(&items->others->shown, seconds);
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
	for (size_t i = 0; i < TOP_COUNTS; i++)
		count_tick(&process->shown.numbers[i], seconds);
	for (size_t i = 0; i < TOP_KINDS; i++)
		items_tick(&process->items[i], seconds);
	tick_threads(process, seconds, interval);
}

/* ---- sums ---------------------------------------------------------------------------------- */

void count_add(struct top_count *into, const struct top_count *from)
{
	add_most(&into->total, from->total);
	add_most(&into->before, from->before);
	into->rate += from->rate;
}

static void item_add(struct item_row *into, const struct item_row *from)
{
	if (!into->shown.name)
		into->shown.name = from->shown.name;
	count_add(&into->shown.calls, &from->shown.calls);
	count_add(&into->shown.bytes, &from->shown.bytes);
	into->any_sized |= from->any_sized;
	into->timed += from->timed;
	add_most(&into->shown.time_ns, from->shown.time_ns);
	if (from->shown.max_ns > into->shown.max_ns)
		into->shown.max_ns = from->shown.max_ns;
}

void items_merge(struct item_rows *into, const struct item_rows *from, size_t most)
{
	for (const struct item_row *row = from->rows; row; row = row->hh.next) {
		bool room = HASH_COUNT(into->rows) < most;

		item_add(items_row(into, row->hh.key, row->hh.keylen, room ? TOP_HOOKS_MAX : 0),
		         row);
	}
	if (from->others)
		item_add(items_others(into), from->others);
}

/* ---- copies -------------------------------------------------------------------------------- */

static void item_copy(const struct item_row *row, enum top_kind kind, struct top_item *into)
{
	*into = row->shown;
	if (kind == TOP_KIND_HOOK && !row->any_sized) {
		into->bytes.total = TABLE_NOT_KNOWN;
		into->bytes.rate = NAN;
	}
	if (!row->timed) {
		into->time_ns = into->mean_ns = into->max_ns = TABLE_NOT_KNOWN;
		into->p50_ns = into->p99_ns = TABLE_NOT_KNOWN;
		return;
	}
	into->mean_ns = into->time_ns / row->timed;
	if (row->durations) {
		into->p50_ns = sketch_percentile(row->durations, 0.5);
		into->p99_ns = sketch_percentile(row->durations, 0.99);
	}
}

void items_copy(const struct item_rows *items, enum top_kind kind, struct top_items *into)
{
	into->n = 0;
	into->all = xcalloc(HASH_COUNT(items->rows) + 1, sizeof(*into->all));
	for (const struct item_row *row = items->rows; row; row = row->hh.next)
		item_copy(row, kind, &into->all[into->n++]);
	if (items->others)
		item_copy(items->others, kind, &into->all[into->n++]);
}

/* ---- the end ------------------------------------------------------------------------------- */

static void item_free(struct item_row *row)
{
	if (row->durations)
		sketch_free(row->durations);
	free(row->durations);
	free(row);
}

void items_forget(struct item_rows *items)
{
	MAP_FREE(items->rows, item_free);
	free(items->others);
	memset(items, 0, sizeof(*items));
}

void rows_forget(struct top_process_row *process)
{
	for (size_t i = 0; i < TOP_KINDS; i++)
		items_forget(&process->items[i]);
	MAP_FREE(process->threads, free);
	process->last_thread = NULL;
	for (struct gpu_row *gpu = process->gpus, *next; gpu; gpu = next) {
		next = gpu->next;
		busy_free(&gpu->busy);
		free(gpu);
	}
	process->gpus = NULL;
	process->gpu_before_ns = process->shown.gpu_ns = 0;
	process->shown.gpu_share = -1;
	free(process->function_by_id);
	process->function_by_id = NULL;
	process->n_function_by_id = 0;
}
