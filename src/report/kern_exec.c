// SPDX-License-Identifier: MIT
/*
 * cuda_kern_exec_trace, cuda_kern_exec_sum and launch_stats show a launch and the kernel that it
 * started as one. They tell how long the call took (A), how long the kernel then waited (Q) and ran
 * (K), and all together (T), from the call's begin to whichever ended last. A kernel that began
 * before its call had returned did not wait: it has no Q, rather than a negative one.
 */
#include <math.h>
#include <stdlib.h>

#include "account/keyed.h"
#include "analysis/spread.h"
#include "analysis/work.h"
#include "base/order.h"
#include "base/xalloc.h"
#include "report/who_columns.h"
#include "report/reports.h"

struct times {
	uint64_t total_ns, api_ns, queue_ns, kernel_ns;
	bool has_api, has_queue; /* api: its end is known */
};

static struct times times_of(const struct work_call *launch, const struct activity *kernel)
{
	uint64_t end_ns = kernel->end_ns > launch->end_ns ? kernel->end_ns : launch->end_ns;

	return (struct times){
		.total_ns = end_ns > launch->begin_ns ? end_ns - launch->begin_ns : 0,
		.has_api = launch->end_ns > 0,
		.api_ns = launch->end_ns > launch->begin_ns ? launch->end_ns - launch->begin_ns : 0,
		.has_queue = launch->end_ns && kernel->begin_ns >= launch->end_ns,
		.queue_ns = kernel->begin_ns - launch->end_ns, /* where it has one */
		.kernel_ns = activity_duration_ns(kernel),
	};
}

struct kern_exec_row_key {
	uint64_t process, function, kernel;
	uint32_t tid, device;
};

struct kern_exec_row {
	struct kern_exec_row_key key;
	uint32_t pid;
	const struct function *function;
	const struct kernel *kernel;
	char *api_name, *kernel_name; /* made at the end */
	struct spread total, api, queue, execution;
	uint64_t shorter, long_calls, long_delays; /* of launch_stats */
};

struct kern_exec;

/* Told of each launch and kernel. */
typedef void exec_pair(struct kern_exec *exec, const struct work_call *launch,
                       const struct activity *activity);

struct kern_exec {
	struct report_writer writer; /* first: what callers hold */
	exec_pair *pair;
	uint64_t unmatched;
	struct buf name;
	uint64_t whole_graphs;
	struct keyed rows; /* of sums */
	struct keyed_last of_kernels;
};

static void note_unmatched(const struct kern_exec *exec)
{
	table_note_if(exec->writer.table, exec->unmatched,
	              "kernels left out, whose launch was not recorded or is no longer known: %lu",
	              exec->unmatched);
}

static void add_notes(struct kern_exec *exec, const struct run_info *run)
{
	if (!exec->writer.ran) {
		report_note_no_gpu_times(exec->writer.table, exec->writer.options.part, run);
		return;
	}
	report_note_whole_graphs(exec->writer.table, exec->whole_graphs);
	note_unmatched(exec);
	report_note_unjoined(&exec->writer.options);
	report_note_estimated(exec->writer.table, run);
}

static void see_work(void *data, const struct work_done *done, const struct work_call *call)
{
	struct kern_exec *exec = data;

	if (work_is_launched(done, call))
		exec->pair(exec, call, done->activity);
	else
		exec->unmatched += done->activity->kind == ACTIVITY_KERNEL;
}

static void exec_event(void *self, const struct event *event)
{
	struct kern_exec *exec = self;

	exec->whole_graphs +=
		event->type == EVENT_ACTIVITY && event->activity->kind == ACTIVITY_GRAPH_RUN;
	work_join(exec->writer.work, event, see_work, exec);
}

static void exec_clear(void *self)
{
	struct kern_exec *exec = self;

	for (size_t i = 0; i < exec->rows.n; i++) {
		struct kern_exec_row *row = keyed_at(&exec->rows, i);

		spread_free(&row->total);
		spread_free(&row->api);
		spread_free(&row->queue);
		spread_free(&row->execution);
		free(row->api_name);
		free(row->kernel_name);
	}
	keyed_free(&exec->rows);
	free(exec->of_kernels.row);
	buf_free(&exec->name);
}

/* What still waited for its launch. */
static void exec_conclude(void *self, const struct run_info *run)
{
	struct kern_exec *exec = self;

	work_tell_rest(exec->writer.work, see_work, exec);
}

static exec_pair trace_pair, sum_pair, stats_pair;

static void exec_init(void *self)
{
	struct kern_exec *exec = self;

	exec->rows = (struct keyed){ .row_bytes = sizeof(struct kern_exec_row),
		                     .key_bytes = sizeof(struct kern_exec_row_key) };
	exec->pair = exec->writer.report->kind == &kern_exec_trace_report ? trace_pair
	             : exec->writer.report->kind == &kern_exec_sum_report ? sum_pair
	                                                                  : stats_pair;
}

/* ---- cuda_kern_exec_trace ------------------------------------------------------------------ */

static const struct table_column trace_columns[] = {
	{ "API Start", TABLE_TIME },     { "API Dur", TABLE_DURATION },
	{ "Queue Start", TABLE_TIME },   { "Queue Dur", TABLE_DURATION },
	{ "Kernel Start", TABLE_TIME },  { "Kernel Dur", TABLE_DURATION },
	{ "Total Dur", TABLE_DURATION }, { "PID", TABLE_NUMBER },
	{ "TID", TABLE_NUMBER },         { "DevId", TABLE_NUMBER },
	{ "API Function", TABLE_TEXT },  { "GridXYZ", TABLE_TRIPLE },
	{ "BlockXYZ", TABLE_TRIPLE },    { "Kernel Name", TABLE_TEXT },
};

static void add_time(struct kern_exec *exec, uint64_t time_ns)
{
	table_s64(exec->writer.table, (int64_t)(time_ns - exec->writer.begin_ns));
}

static void add_times(struct kern_exec *exec, const struct work_call *launch,
                      const struct activity *activity)
{
	struct times times = times_of(launch, activity);
	struct table *table = exec->writer.table;

	add_time(exec, launch->begin_ns);
	table_known(table, times.has_api, times.api_ns);
	if (times.has_queue)
		add_time(exec, launch->end_ns);
	else
		table_unknown(table);
	table_known(table, times.has_queue, times.queue_ns);
	add_time(exec, activity->begin_ns);
	TABLE_CELLS(table, times.kernel_ns, times.total_ns);
}

static const char *text_of(struct buf *name)
{
	return name->data ? name->data : "";
}

static void trace_pair(struct kern_exec *exec, const struct work_call *launch,
                       const struct activity *activity)
{
	struct table *table = exec->writer.table;

	add_times(exec, launch, activity);
	TABLE_CELLS(table, launch->process->pid, launch->tid, activity->device);
	buf_reset(&exec->name);
	add_function_name(&exec->name, launch->function);
	table_text(table, text_of(&exec->name));
	table_triple(table, activity->grid);
	table_triple(table, activity->block);
	buf_reset(&exec->name);
	add_kernel_name(&exec->name, activity->kernel, exec->writer.options.names);
	table_text(table, text_of(&exec->name));
	table_key(table, launch->begin_ns);
	table_end_row(table);
}

static void trace_notes(void *self, struct table *table, const struct run_info *run)
{
	add_notes(self, run);
}

const struct report_kind kern_exec_trace_report = {
	.bytes = sizeof(struct kern_exec),
	.init = exec_init,
	.work = true,
	.event = exec_event,
	.conclude = exec_conclude,
	.clear = exec_clear,
	.rows_come = true,
	.parts = { { NULL, NULL, TABLE_COLUMNS(trace_columns), trace_notes } },
};

/* ---- cuda_kern_exec_sum -------------------------------------------------------------------- */

static const struct table_column sum_columns[] = {
	{ "PID", TABLE_NUMBER },       { "TID", TABLE_NUMBER },       { "DevId", TABLE_NUMBER },
	{ "Count", TABLE_NUMBER },     { "QCount", TABLE_NUMBER },    { "TAvg", TABLE_DURATION },
	{ "TMed", TABLE_DURATION },    { "TMin", TABLE_DURATION },    { "TMax", TABLE_DURATION },
	{ "TStdDev", TABLE_DURATION }, { "AAvg", TABLE_DURATION },    { "AMed", TABLE_DURATION },
	{ "AMin", TABLE_DURATION },    { "AMax", TABLE_DURATION },    { "AStdDev", TABLE_DURATION },
	{ "QAvg", TABLE_DURATION },    { "QMed", TABLE_DURATION },    { "QMin", TABLE_DURATION },
	{ "QMax", TABLE_DURATION },    { "QStdDev", TABLE_DURATION }, { "KAvg", TABLE_DURATION },
	{ "KMed", TABLE_DURATION },    { "KMin", TABLE_DURATION },    { "KMax", TABLE_DURATION },
	{ "KStdDev", TABLE_DURATION }, { "API Name", TABLE_TEXT },    { "Kernel Name", TABLE_TEXT },
};

static struct kern_exec_row *count_times(struct kern_exec *exec,
                                         const struct kern_exec_row_key *key,
                                         const struct times *times, const struct kernel *kernel)
{
	struct kern_exec_row *row = keyed_row_of(&exec->rows, &exec->of_kernels, kernel->id, key);

	row->kernel = kernel;
	spread_add(&row->execution, times->kernel_ns);
	if (times->has_api)
		spread_add(&row->api, times->api_ns);
	if (times->has_queue)
		spread_add(&row->queue, times->queue_ns);
	return row;
}

static void sum_pair(struct kern_exec *exec, const struct work_call *launch,
                     const struct activity *activity)
{
	struct times times = times_of(launch, activity);
	struct kern_exec_row_key key = {
		.process = launch->process->id,
		.function = launch->function->id,
		.kernel = activity->kernel->id,
		.tid = launch->tid,
		.device = activity->device,
	};
	struct kern_exec_row *row = count_times(exec, &key, &times, activity->kernel);

	spread_add(&row->total, times.total_ns);
	row->pid = launch->process->pid;
	row->function = launch->function;
}

/* The names that stand for a row: different kernels and functions can have the same. */
ORDER_BY(compare_groups, struct kern_exec_row, UP(pid), UP(key.tid), UP(key.device),
         BY_TEXT(api_name), BY_TEXT(kernel_name));

ORDER_POINTERS_BY(compare_labels, struct kern_exec_row, OR_ELSE(compare_groups));

ORDER_POINTERS_BY(compare_averages, struct kern_exec_row,
                  ORDER_OF(spread_average(&b->total), spread_average(&a->total)),
                  OR_ELSE(compare_groups));

static void name_row(struct kern_exec *exec, struct kern_exec_row *row)
{
	struct buf api = { 0 }, kernel = { 0 };

	buf_puts(&api, "");
	if (row->function)
		add_function_name(&api, row->function);
	add_kernel_name(&kernel, row->kernel, exec->writer.options.names);
	row->api_name = api.data;
	row->kernel_name = kernel.data;
}

static void take(struct kern_exec_row *into, struct kern_exec_row *from)
{
	spread_take(&into->total, &from->total);
	spread_take(&into->api, &from->api);
	spread_take(&into->queue, &from->queue);
	spread_take(&into->execution, &from->execution);
	into->shorter += from->shorter;
	into->long_calls += from->long_calls;
	into->long_delays += from->long_delays;
}

/* The caller frees the array. */
static struct kern_exec_row **sorted_rows(struct kern_exec *exec,
                                          int (*order)(const void *, const void *), size_t *n)
{
	size_t all = exec->rows.n;
	struct kern_exec_row **rows = xcalloc(all + 1, sizeof(*rows));

	for (size_t i = 0; i < all; i++) {
		rows[i] = keyed_at(&exec->rows, i);
		name_row(exec, rows[i]);
	}
	SORT(rows, all, compare_labels);
	*n = 0;
	for (size_t i = 0; i < all; i++) {
		if (*n && !compare_groups(rows[*n - 1], rows[i]))
			take(rows[*n - 1], rows[i]);
		else
			rows[(*n)++] = rows[i];
	}
	SORT(rows, *n, order);
	return rows;
}

/* Returns how many. */
static size_t write_rows(struct kern_exec *exec, int (*order)(const void *, const void *),
                         void (*write)(struct table *table, struct kern_exec_row *row))
{
	size_t n;
	AT_END(at_end_free) struct kern_exec_row **rows = sorted_rows(exec, order, &n);
	bool exact = true;

	for (size_t i = 0; i < n; i++) {
		exact = exact && spread_is_exact(&rows[i]->execution);
		write(exec->writer.table, rows[i]);
	}
	if (!exact)
		report_note_median(exec->writer.table);
	return n;
}

static void add_sum_row(struct table *table, struct kern_exec_row *row)
{
	TABLE_CELLS(table, row->pid, row->key.tid, row->key.device, row->total.count,
	            row->queue.count);
	report_spread(table, &row->total);
	report_spread(table, &row->api);
	report_spread(table, &row->queue);
	report_spread(table, &row->execution);
	TABLE_LAST(table, row->api_name, row->kernel_name);
}

static void write_sum(void *self, struct table *table, const struct run_info *run)
{
	write_rows(self, compare_averages, add_sum_row);
	add_notes(self, run);
}

const struct report_kind kern_exec_sum_report = {
	.bytes = sizeof(struct kern_exec),
	.init = exec_init,
	.work = true,
	.event = exec_event,
	.conclude = exec_conclude,
	.clear = exec_clear,
	.parts = { { NULL, NULL, TABLE_COLUMNS(sum_columns), write_sum } },
};

/* ---- launch_stats -------------------------------------------------------------------------- */

/* What HTA takes for outliers. */
#define LONG_CALL_NS  50000
#define LONG_DELAY_NS 100000

static const struct table_column stats_columns[] = {
	{ "Launches", TABLE_NUMBER },    { "Call Avg", TABLE_DURATION },
	{ "Call Med", TABLE_DURATION },  { "Call Max", TABLE_DURATION },
	{ "Delay Avg", TABLE_DURATION }, { "Delay Med", TABLE_DURATION },
	{ "Delay Max", TABLE_DURATION }, { "Run Avg", TABLE_DURATION },
	{ "Run Med", TABLE_DURATION },   { "Run Max", TABLE_DURATION },
	{ "Short", TABLE_NUMBER },       { "Long Calls", TABLE_NUMBER },
	{ "Long Delays", TABLE_NUMBER }, { "Kernel Name", TABLE_TEXT },
};

/* A kernel of whatever process and thread is one row. */
static void stats_pair(struct kern_exec *exec, const struct work_call *launch,
                       const struct activity *activity)
{
	struct times times = times_of(launch, activity);
	struct kern_exec_row_key key = { .kernel = activity->kernel->id };
	struct kern_exec_row *row = count_times(exec, &key, &times, activity->kernel);

	row->shorter += times.has_api && times.kernel_ns < times.api_ns;
	row->long_calls += times.has_api && times.api_ns > LONG_CALL_NS;
	row->long_delays += times.has_queue && times.queue_ns > LONG_DELAY_NS;
}

ORDER_POINTERS_BY(by_launches, struct kern_exec_row, DOWN(execution.count), BY_TEXT(kernel_name));

static void add_stats(struct table *table, struct spread *spread)
{
	double average = spread->count ? spread_average(spread) : NAN;
	double median = spread->count ? spread_median(spread) : NAN;

	TABLE_CELLS(table, average, median, TABLE_IF(spread->count, spread->max));
}

static void add_stats_row(struct table *table, struct kern_exec_row *row)
{
	table_u64(table, row->execution.count);
	add_stats(table, &row->api);
	add_stats(table, &row->queue);
	add_stats(table, &row->execution);
	TABLE_LAST(table, row->shorter, row->long_calls, row->long_delays, row->kernel_name);
}

static void write_stats(void *self, struct table *table, const struct run_info *run)
{
	struct kern_exec *exec = self;

	if (write_rows(exec, by_launches, add_stats_row))
		table_note(table,
		           "Call: the launch; Delay: from its return to the kernel's begin, "
		           "of those that began later; Short: ran for less than their launch "
		           "took; Long Calls, Long Delays: over 50 us and 100 us, as HTA "
		           "counts");
	if (!exec->writer.ran)
		report_note_no_gpu_times(table, exec->writer.options.part, run);
	else
		note_unmatched(exec);
	report_note_unjoined(&exec->writer.options);
	report_note_refused(table, run);
	report_note_estimated(table, run);
}

const struct report_kind launch_stats_report = {
	.bytes = sizeof(struct kern_exec),
	.init = exec_init,
	.work = true,
	.event = exec_event,
	.conclude = exec_conclude,
	.clear = exec_clear,
	.parts = { { NULL, NULL, TABLE_COLUMNS(stats_columns), write_stats } },
};
