// SPDX-License-Identifier: MIT
#include "live/top/live.h"

#include <stdlib.h>
#include <string.h>

#include "live/top/live_rows.h"
#include "base/xalloc.h"

/* After so long without anything of GPUs they were idle, rather than not heard of yet. */
#define GPU_QUIET_NS 3000000000ull

struct live {
	struct consumer consumer; /* first */
	struct memory *memory;
	struct top_process_row *processes; /* hash by id */
	struct top_process_row *last;      /* of the last call */
	struct live_process gone;
	size_t n_gone;
	bool kept;
	uint32_t kept_id;
	uint64_t begin_ns, tick_ns, interval_ns;
	uint64_t interval; /* its number */
	/* What ran on GPUs is known up to gpu_until_ns; shares were reckoned up to gpu_since_ns. */
	uint64_t gpu_since_ns, gpu_until_ns;
	uint64_t gpu_heard_ns; /* the last tick at which something new was known */
};

/* ---- processes ----------------------------------------------------------------------------- */

static struct top_process_row *find_process(const struct live *live, uint32_t id)
{
	struct top_process_row *row;

	HASH_FIND(hh, live->processes, &id, sizeof(id), row);
	return row;
}

static struct top_process_row *make_process(struct live *live, const struct process *process)
{
	struct top_process_row *row = xcalloc(1, sizeof(*row));

	row->id = process->id;
	row->shown.process = process;
	row->shown.gpu_share = -1;
	HASH_ADD(hh, live->processes, id, sizeof(row->id), row);
	return row;
}

static struct top_process_row *process_of(struct live *live, const struct process *process)
{
	struct top_process_row *row = live->last;

	if (row && row->id == process->id)
		return row;
	row = find_process(live, process->id);
	return live->last = row ? row : make_process(live, process);
}

static void read_memory(const struct live *live, struct live_process *shown)
{
	for (int kind = 0; kind < MEMORY_COUNT; kind++) {
		const struct memory_totals *totals =
			memory_process_totals(live->memory, shown->process, kind);

		if (totals)
			shown->memory[kind] =
				(struct live_memory){ totals->live.count, totals->live.bytes,
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

static void drop_process(struct live *live, struct top_process_row *row)
{
	if (live->last == row)
		live->last = NULL;
	HASH_DELETE(hh, live->processes, row);
	rows_forget(row);
	free(row);
}

static void add_numbers(struct live_process *into, const struct live_process *from)
{
	for (size_t i = 0; i < LIVE_NUMBERS; i++) {
		into->numbers[i].total += from->numbers[i].total;
		into->numbers[i].before += from->numbers[i].before;
		into->numbers[i].rate += from->numbers[i].rate;
	}
}

static void fold_ended(struct live *live, uint64_t now_ns)
{
	struct top_process_row *row, *next;

	HASH_ITER (hh, live->processes, row, next) {
		if (!row->shown.ended || now_ns < row->ended_ns + LIVE_ENDED_NS ||
		    (live->kept && live->kept_id == row->id))
			continue;
		add_numbers(&live->gone, &row->shown);
		live->n_gone++;
		drop_process(live, row);
	}
}

static struct top_process_row *find_running(const struct live *live, uint32_t pid)
{
	struct top_process_row *row, *next;

	HASH_ITER (hh, live->processes, row, next) {
		if (row->shown.process->pid == pid && !row->shown.ended)
			return row;
	}
	return NULL;
}

void live_open_call(struct live *live, uint32_t pid, uint32_t tid, const struct function *function,
                    uint64_t begin_ns, uint64_t now_ns)
{
	struct top_process_row *row;

	if (!function->api || api_op(function->api) != OP_SYNC)
		return;
	row = find_running(live, pid);
	if (row)
		rows_wait(row, tid, begin_ns, now_ns, live->interval, live->tick_ns);
}

/* ---- intervals ----------------------------------------------------------------------------- */

/* Activities come seconds late and many at a time: shares are of the time that they tell of. */
static void tick_gpus(struct live *live, uint64_t now_ns)
{
	struct top_process_row *row, *next;
	uint64_t ns = live->gpu_until_ns - live->gpu_since_ns;

	if (!ns && now_ns - live->gpu_heard_ns < GPU_QUIET_NS)
		return;
	HASH_ITER (hh, live->processes, row, next)
		rows_tick_gpu(row, ns);
	if (ns)
		live->gpu_heard_ns = now_ns;
	live->gpu_since_ns = live->gpu_until_ns;
}

static void count_activity(struct live *live, const struct event *event)
{
	struct top_process_row *row = find_process(live, event->process->id);

	if (!live->gpu_until_ns)
		live->gpu_since_ns = event->activity->begin_ns;
	if (event->time_ns > live->gpu_until_ns)
		live->gpu_until_ns = event->time_ns;
	if (row) /* else it ended long ago */
		rows_count_activity(row, event->activity);
}

void live_tick(struct live *live, uint64_t now_ns)
{
	struct top_process_row *row, *next;
	double seconds;

	if (now_ns <= live->tick_ns)
		return;
	live->interval_ns = now_ns - live->tick_ns;
	seconds = (double)live->interval_ns / 1e9;
	HASH_ITER (hh, live->processes, row, next)
		rows_tick(row, seconds, live->interval);
	tick_gpus(live, now_ns);
	for (size_t i = 0; i < LIVE_NUMBERS; i++)
		count_tick(&live->gone.numbers[i], seconds);
	fold_ended(live, now_ns);
	live->tick_ns = now_ns;
	live->interval++;
}

void live_reset(struct live *live, uint64_t now_ns)
{
	struct top_process_row *row, *next;

	HASH_ITER (hh, live->processes, row, next) {
		if (row->shown.ended) {
			drop_process(live, row);
			continue;
		}
		rows_forget(row);
		memset(row->shown.numbers, 0, sizeof(row->shown.numbers));
		row->entries = row->sync_ns = 0;
	}
	memset(&live->gone, 0, sizeof(live->gone));
	memory_forget_peaks(live->memory);
	live->n_gone = 0;
	live->begin_ns = live->tick_ns = now_ns;
	live->interval_ns = 0;
}

void live_keep(struct live *live, const uint32_t *process_id)
{
	live->kept = process_id != NULL;
	live->kept_id = process_id ? *process_id : 0;
}

void live_end(struct live *live, uint32_t process_id, uint64_t now_ns)
{
	struct top_process_row *row = find_process(live, process_id);

	if (!row || row->shown.ended)
		return;
	end_process(row, now_ns);
	memory_event(live->memory, &(struct event){ .type = EVENT_EXIT,
	                                            .time_ns = now_ns,
	                                            .process = row->shown.process });
}

/* ---- snapshots ----------------------------------------------------------------------------- */

static void copy_process(const struct live *live, const struct top_process_row *row, bool details,
                         struct live_process *into)
{
	*into = row->shown;
	read_memory(live, into);
	into->entries_only = row->entries > 0 && row->entries == into->numbers[LIVE_CALLS].total;
	if (details)
		rows_copy_details(row, into);
}

static void add_to_total(struct live_process *total, const struct live_process *process)
{
	add_numbers(total, process);
	for (int kind = 0; kind < MEMORY_COUNT; kind++) {
		total->memory[kind].count += process->memory[kind].count;
		total->memory[kind].bytes += process->memory[kind].bytes;
	}
	total->sync_share += process->sync_share * (double)process->threads;
	total->threads += process->threads;
}

void live_snapshot(const struct live *live, bool details_of_all, struct live_snapshot *snapshot)
{
	const struct top_process_row *row, *next;

	memset(snapshot, 0, sizeof(*snapshot));
	snapshot->begin_ns = live->begin_ns;
	snapshot->time_ns = live->tick_ns;
	snapshot->interval_ns = live->interval_ns;
	snapshot->gpu_times = live->gpu_until_ns > 0;
	snapshot->gone = live->gone;
	snapshot->total.gpu_share = snapshot->gone.gpu_share = -1; /* which GPUs are whose? */
	snapshot->n_gone = live->n_gone;
	snapshot->processes = xcalloc(HASH_COUNT(live->processes), sizeof(*snapshot->processes));
	HASH_ITER (hh, live->processes, row, next) {
		struct live_process *into = &snapshot->processes[snapshot->n_processes++];
		bool kept = live->kept && live->kept_id == row->id;

		copy_process(live, row, details_of_all || kept, into);
		add_to_total(&snapshot->total, into);
	}
	add_numbers(&snapshot->total, &live->gone);
	if (snapshot->total.threads)
		snapshot->total.sync_share /= (double)snapshot->total.threads;
	for (int kind = 0; kind < MEMORY_COUNT; kind++)
		snapshot->total.memory[kind].peak_bytes =
			memory_totals(live->memory, kind)->peak_bytes;
}

void live_snapshot_free(struct live_snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->n_processes; i++) {
		free(snapshot->processes[i].functions);
		free(snapshot->processes[i].kernels);
		free(snapshot->processes[i].streams);
	}
	free(snapshot->processes);
	memset(snapshot, 0, sizeof(*snapshot));
}

/* ---- the consumer -------------------------------------------------------------------------- */

static struct live *live_of(struct consumer *self)
{
	return (struct live *)self;
}

static int live_begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct live *live = live_of(self);

	live->begin_ns = live->tick_ns = run->begin_ns;
	return 0;
}

/* A pid that starts again is an exec, or a process whose end was lost. */
static void end_predecessors(struct live *live, const struct event *event)
{
	struct top_process_row *row, *next;

	HASH_ITER (hh, live->processes, row, next) {
		if (row->shown.process->pid == event->process->pid && row->id != event->process->id)
			end_process(row, event->time_ns);
	}
}

static int live_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct live *live = live_of(self);

	if (event->type == EVENT_EXIT)
		end_process(find_process(live, event->process->id), event->time_ns);
	else if (event->type == EVENT_PROCESS)
		end_predecessors(live, event);
	memory_event(live->memory, event);
	if (event->type == EVENT_CALL)
		rows_count(process_of(live, event->process), event, live->interval, live->tick_ns);
	else if (event->type == EVENT_ACTIVITY)
		count_activity(live, event);
	return 0;
}

static int live_finish(struct consumer *self, const struct run_info *run, struct err *err)
{
	return 0;
}

static void live_free(struct consumer *self)
{
	struct live *live = live_of(self);
	struct top_process_row *row, *next;

	HASH_ITER (hh, live->processes, row, next)
		drop_process(live, row);
	memory_free(live->memory);
	free(live);
}

static const struct consumer_ops live_ops = {
	.begin = live_begin,
	.event = live_event,
	.end = live_finish,
	.free = live_free,
};

struct live *live_new(void)
{
	struct live *live = xcalloc(1, sizeof(*live));

	live->consumer.ops = &live_ops;
	live->memory = memory_new();
	return live;
}

struct consumer *live_consumer(struct live *live)
{
	return &live->consumer;
}
