// SPDX-License-Identifier: MIT
#include "top/top_counts.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "top/top_rows.h"
#include "base/xalloc.h"

/* After so long without anything of GPUs they were idle, rather than not heard of yet. */
#define GPU_QUIET_NS 3000000000ull

struct top_counts {
	struct consumer consumer; /* first */
	bool ignores_gpu;
	struct memory *memory;
	struct top_process_row *processes; /* hash by id */
	struct top_process_row *last;      /* of the last call */
	struct top_process gone;
	struct item_rows gone_hooks;
	size_t n_gone;
	size_t n_hooks; /* rows of hooks, of all processes and those that are gone */
	bool kept;
	uint32_t kept_id;
	uint64_t begin_ns, tick_ns, interval_ns;
	uint64_t interval; /* its number */
	/* What ran on GPUs is known up to gpu_until_ns; shares were reckoned up to gpu_since_ns. */
	uint64_t gpu_since_ns, gpu_until_ns;
	uint64_t gpu_heard_ns; /* the last tick at which something new was known */
};

/* ---- processes ----------------------------------------------------------------------------- */

static struct top_process_row *find_process(const struct top_counts *counts, uint32_t id)
{
	return MAP_FIND(counts->processes, &id);
}

static struct top_process_row *make_process(struct top_counts *counts,
                                            const struct process *process)
{
	struct top_process_row *row = MAP_ADD(counts->processes, id, &process->id);

	row->shown.process = process;
	row->shown.gpu_share = -1;
	return row;
}

static struct top_process_row *process_of(struct top_counts *counts, const struct process *process)
{
	struct top_process_row *row = counts->last;

	if (row && row->id == process->id)
		return row;
	row = find_process(counts, process->id);
	return counts->last = row ? row : make_process(counts, process);
}

static void read_memory(const struct top_counts *counts, struct top_process *shown)
{
	for (int kind = 0; kind < MEMORY_COUNT; kind++) {
		const struct memory_totals *totals =
			memory_process_totals(counts->memory, shown->process, kind);

		if (totals)
			shown->memory[kind] =
				(struct top_memory){ totals->live.count, totals->live.bytes,
				                     totals->peak_bytes };
	}
}

static void end_process(struct top_process_row *row, uint64_t now_ns)
{
	if (!row || row->shown.ended)
		return;
	row->shown.ended = true;
	row->ended_ns = now_ns;
}

static void drop_process(struct top_counts *counts, struct top_process_row *row)
{
	if (counts->last == row)
		counts->last = NULL;
	HASH_DELETE(hh, counts->processes, row);
	counts->n_hooks -= HASH_COUNT(row->items[TOP_KIND_HOOK].rows);
	rows_forget(row);
	free(row);
}

static void add_numbers(struct top_process *into, const struct top_process *from)
{
	for (size_t i = 0; i < TOP_COUNTS; i++)
		count_add(&into->numbers[i], &from->numbers[i]);
}

static void merge_hooks(struct top_counts *counts, const struct item_rows *hooks)
{
	size_t before = HASH_COUNT(counts->gone_hooks.rows);

	items_merge(&counts->gone_hooks, hooks, before + TOP_HOOKS_ALL - counts->n_hooks);
	counts->n_hooks += HASH_COUNT(counts->gone_hooks.rows) - before;
}

static void merge_ended(struct top_counts *counts, uint64_t now_ns)
{
	struct top_process_row *row, *next;

	HASH_ITER (hh, counts->processes, row, next) {
		if (!row->shown.ended || now_ns < row->ended_ns + TOP_ENDED_NS ||
		    (counts->kept && counts->kept_id == row->id))
			continue;
		add_numbers(&counts->gone, &row->shown);
		merge_hooks(counts, &row->items[TOP_KIND_HOOK]);
		counts->n_gone++;
		drop_process(counts, row);
	}
}

static struct top_process_row *find_running(const struct top_counts *counts, uint32_t pid)
{
	struct top_process_row *row, *next;

	HASH_ITER (hh, counts->processes, row, next) {
		if (row->shown.process->pid == pid && !row->shown.ended)
			return row;
	}
	return NULL;
}

/* The one that was told of last. */
static struct top_process_row *find_ended(const struct top_counts *counts, uint32_t pid)
{
	struct top_process_row *row, *next, *found = NULL;

	HASH_ITER (hh, counts->processes, row, next) {
		if (row->shown.process->pid == pid && (!found || row->id > found->id))
			found = row;
	}
	return found;
}

void top_counts_open_call(struct top_counts *counts, uint32_t pid, uint32_t tid,
                          const struct function *function, uint64_t begin_ns, uint64_t now_ns)
{
	struct top_process_row *row;

	if (!function->api || api_op(function->api) != OP_SYNC)
		return;
	row = find_running(counts, pid);
	if (row)
		rows_wait(row, tid, begin_ns, now_ns, counts->interval, counts->tick_ns);
}

void top_counts_counted(struct top_counts *counts, uint32_t pid, const struct function *function,
                        uint64_t calls)
{
	struct top_process_row *row = find_running(counts, pid);

	if (!row)
		row = find_ended(counts, pid);
	if (row)
		rows_count_more(row, function, calls);
}

/* ---- intervals ----------------------------------------------------------------------------- */

static void count_hook(struct top_counts *counts, const struct event *event)
{
	struct top_process_row *row = process_of(counts, event->process);
	size_t before = HASH_COUNT(row->items[TOP_KIND_HOOK].rows);

	rows_count_hook(row, event->call, counts->n_hooks < TOP_HOOKS_ALL ? TOP_HOOKS_MAX : 0);
	counts->n_hooks += HASH_COUNT(row->items[TOP_KIND_HOOK].rows) - before;
}

/* Activities come seconds late and many at a time: shares are of the time that they tell of. */
static void tick_gpus(struct top_counts *counts, uint64_t now_ns)
{
	struct top_process_row *row, *next;
	uint64_t ns = counts->gpu_until_ns - counts->gpu_since_ns;

	if (!ns && now_ns - counts->gpu_heard_ns < GPU_QUIET_NS)
		return;
	HASH_ITER (hh, counts->processes, row, next)
		rows_tick_gpu(row, ns);
	if (ns)
		counts->gpu_heard_ns = now_ns;
	counts->gpu_since_ns = counts->gpu_until_ns;
}

static void count_activity(struct top_counts *counts, const struct event *event)
{
	struct top_process_row *row = find_process(counts, event->process->id);

	if (!counts->gpu_until_ns)
		counts->gpu_since_ns = event->activity->begin_ns;
	if (event->time_ns > counts->gpu_until_ns)
		counts->gpu_until_ns = event->time_ns;
	if (row) /* else it ended long ago */
		rows_count_activity(row, event->activity);
}

void top_counts_tick(struct top_counts *counts, uint64_t now_ns)
{
	struct top_process_row *row, *next;
	double seconds;

	if (now_ns <= counts->tick_ns)
		return;
	counts->interval_ns = now_ns - counts->tick_ns;
	seconds = (double)counts->interval_ns / 1e9;
	HASH_ITER (hh, counts->processes, row, next)
		rows_tick(row, seconds, counts->interval);
	tick_gpus(counts, now_ns);
	for (size_t i = 0; i < TOP_COUNTS; i++)
		count_tick(&counts->gone.numbers[i], seconds);
	items_tick(&counts->gone_hooks, seconds);
	merge_ended(counts, now_ns);
	counts->tick_ns = now_ns;
	counts->interval++;
}

void top_counts_reset(struct top_counts *counts, uint64_t now_ns)
{
	struct top_process_row *row, *next;

	HASH_ITER (hh, counts->processes, row, next) {
		if (row->shown.ended) {
			drop_process(counts, row);
			continue;
		}
		rows_forget(row);
		memset(row->shown.numbers, 0, sizeof(row->shown.numbers));
		row->entries = row->sync_ns = 0;
	}
	memset(&counts->gone, 0, sizeof(counts->gone));
	items_forget(&counts->gone_hooks);
	counts->n_hooks = 0;
	memory_forget_peaks(counts->memory);
	counts->n_gone = 0;
	counts->begin_ns = counts->tick_ns = now_ns;
	counts->interval_ns = 0;
}

void top_counts_keep(struct top_counts *counts, const uint32_t *process_id)
{
	counts->kept = process_id != NULL;
	counts->kept_id = process_id ? *process_id : 0;
}

void top_counts_end(struct top_counts *counts, uint32_t process_id, uint64_t now_ns)
{
	struct top_process_row *row = find_process(counts, process_id);

	if (!row || row->shown.ended)
		return;
	end_process(row, now_ns);
	memory_event(counts->memory, &(struct event){ .type = EVENT_EXIT,
	                                              .time_ns = now_ns,
	                                              .process = row->shown.process });
}

/* ---- snapshots ----------------------------------------------------------------------------- */

static void copy_process(const struct top_counts *counts, const struct top_process_row *row,
                         bool details, struct top_process *into)
{
	*into = row->shown;
	read_memory(counts, into);
	into->entries_only =
		row->entries > 0 && row->entries == into->numbers[TOP_COUNT_CALLS].total;
	for (size_t i = 0; i < TOP_KINDS; i++) {
		if (details || i == TOP_KIND_HOOK)
			items_copy(&row->items[i], i, &into->items[i]);
	}
}

static void add_to_total(struct top_process *total, const struct top_process *process)
{
	add_numbers(total, process);
	for (int kind = 0; kind < MEMORY_COUNT; kind++) {
		total->memory[kind].count += process->memory[kind].count;
		total->memory[kind].bytes += process->memory[kind].bytes;
	}
	total->sync_share += process->sync_share * (double)process->threads;
	total->threads += process->threads;
}

void top_counts_snapshot(const struct top_counts *counts, bool details_of_all,
                         struct top_snapshot *snapshot)
{
	const struct top_process_row *row, *next;

	memset(snapshot, 0, sizeof(*snapshot));
	snapshot->begin_ns = counts->begin_ns;
	snapshot->time_ns = counts->tick_ns;
	snapshot->interval_ns = counts->interval_ns;
	snapshot->gpu_times = counts->gpu_until_ns > 0;
	snapshot->gone = counts->gone;
	items_copy(&counts->gone_hooks, TOP_KIND_HOOK, &snapshot->gone.items[TOP_KIND_HOOK]);
	snapshot->total.gpu_share = snapshot->gone.gpu_share = -1; /* which GPUs are whose? */
	snapshot->n_gone = counts->n_gone;
	snapshot->processes = xcalloc(HASH_COUNT(counts->processes), sizeof(*snapshot->processes));
	HASH_ITER (hh, counts->processes, row, next) {
		struct top_process *into = &snapshot->processes[snapshot->n_processes++];
		bool kept = counts->kept && counts->kept_id == row->id;

		copy_process(counts, row, details_of_all || kept, into);
		add_to_total(&snapshot->total, into);
	}
	add_numbers(&snapshot->total, &counts->gone);
	if (snapshot->total.threads)
		snapshot->total.sync_share /= (double)snapshot->total.threads;
	for (int kind = 0; kind < MEMORY_COUNT; kind++)
		snapshot->total.memory[kind].peak_bytes =
			memory_totals(counts->memory, kind)->peak_bytes;
}

void top_snapshot_free(struct top_snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->n_processes; i++) {
		for (size_t kind = 0; kind < TOP_KINDS; kind++)
			free(snapshot->processes[i].items[kind].all);
	}
	free(snapshot->processes);
	free(snapshot->gone.items[TOP_KIND_HOOK].all);
	memset(snapshot, 0, sizeof(*snapshot));
}

/* ---- the consumer -------------------------------------------------------------------------- */

static int counts_begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct top_counts *counts = (struct top_counts *)self;

	counts->begin_ns = counts->tick_ns = run->begin_ns;
	return 0;
}

/* A pid that starts again is an exec, or a process whose end was lost. */
static void end_predecessors(struct top_counts *counts, const struct event *event)
{
	struct top_process_row *row, *next;

	HASH_ITER (hh, counts->processes, row, next) {
		if (row->shown.process->pid == event->process->pid && row->id != event->process->id)
			end_process(row, event->time_ns);
	}
}

static int counts_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct top_counts *counts = (struct top_counts *)self;

	if (event->type == EVENT_EXIT)
		end_process(find_process(counts, event->process->id), event->time_ns);
	else if (event->type == EVENT_PROCESS)
		end_predecessors(counts, event);
	memory_event(counts->memory, event);
	if (event->type == EVENT_CALL)
		rows_count(process_of(counts, event->process), event, counts->interval,
		           counts->tick_ns);
	else if (event->type == EVENT_OTHER_CALL && event->call->function->layer == LAYER_HOOK)
		count_hook(counts, event);
	else if (event->type == EVENT_ACTIVITY && !counts->ignores_gpu)
		count_activity(counts, event);
	return 0;
}

static int counts_finish(struct consumer *self, const struct run_info *run, struct err *err)
{
	return 0;
}

static void counts_free(struct consumer *self)
{
	struct top_counts *counts = (struct top_counts *)self;
	struct top_process_row *row, *next;

	HASH_ITER (hh, counts->processes, row, next)
		drop_process(counts, row);
	items_forget(&counts->gone_hooks);
	memory_free(counts->memory);
	free(counts);
}

static const struct consumer_ops counts_ops = {
	.begin = counts_begin,
	.event = counts_event,
	.end = counts_finish,
	.free = counts_free,
};

struct top_counts *top_counts_new(void)
{
	struct top_counts *counts = xcalloc(1, sizeof(*counts));

	counts->consumer.ops = &counts_ops;
	counts->memory = memory_new();
	return counts;
}

void top_counts_ignore_gpu(struct top_counts *counts)
{
	counts->ignores_gpu = true;
}

struct consumer *top_counts_consumer(struct top_counts *counts)
{
	return &counts->consumer;
}
