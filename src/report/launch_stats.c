// SPDX-License-Identifier: MIT
/*
 * The report `launch_stats`: for each kernel how long its launches took, how long it then waited
 * and ran, and how many launches HTA would point at.
 */
#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "analysis/spread.h"
#include "analysis/work.h"
#include "base/buf.h"
#include "base/order.h"
#include "report/who_columns.h"
#include "report/reports.h"

/* What HTA takes for outliers. */
#define LONG_CALL_NS  50000
#define LONG_DELAY_NS 100000

struct stats {
	const struct kernel *kernel; /* NULL: none was launched */
	char *name;                  /* made at the end */
	uint64_t launches, shorter, long_calls, long_delays;
	struct spread call, delay, run;
};

struct launch_stats {
	struct report_writer writer; /* first: what callers hold */
	struct stats *kernels;       /* by id */
	size_t n;
	uint64_t unmatched;
};

static void add_pair(struct launch_stats *all, const struct work_call *launch,
                     const struct activity *activity)
{
	uint64_t run_ns = activity_duration_ns(activity), call_ns;
	struct stats *stats = BY_ID(all->kernels, all->n, activity->kernel->id);

	stats->kernel = activity->kernel;
	stats->launches++;
	spread_add(&stats->run, run_ns);
	if (!launch->end_ns)
		return;
	call_ns = work_call_ns(launch);
	spread_add(&stats->call, call_ns);
	stats->shorter += run_ns < call_ns;
	stats->long_calls += call_ns > LONG_CALL_NS;
	if (activity->begin_ns < launch->end_ns)
		return;
	spread_add(&stats->delay, activity->begin_ns - launch->end_ns);
	stats->long_delays += activity->begin_ns - launch->end_ns > LONG_DELAY_NS;
}

static void see_work(void *data, const struct work_done *done, const struct work_call *call)
{
	struct launch_stats *all = data;

	if (work_is_launched(done, call))
		add_pair(all, call, done->activity);
	else
		all->unmatched += done->activity->kind == ACTIVITY_KERNEL;
}

static void see_stats(void *self, const struct event *event)
{
	work_join(((struct report_writer *)self)->work, event, see_work, self);
}

static void free_spreads(struct stats *stats)
{
	spread_free(&stats->call);
	spread_free(&stats->delay);
	spread_free(&stats->run);
	free(stats->name);
}

static void clear_stats(void *self)
{
	struct launch_stats *all = self;

	for (size_t i = 0; i < all->n; i++)
		free_spreads(&all->kernels[i]);
	free(all->kernels);
}

/* ---- rows ---------------------------------------------------------------------------------- */

ORDER_POINTERS_BY(by_name, struct stats, BY_TEXT(name));

ORDER_POINTERS_BY(by_launches, struct stats, DOWN(launches), BY_TEXT(name));

static void take(struct stats *into, struct stats *from)
{
	into->launches += from->launches;
	into->shorter += from->shorter;
	into->long_calls += from->long_calls;
	into->long_delays += from->long_delays;
	spread_take(&into->call, &from->call);
	spread_take(&into->delay, &from->delay);
	spread_take(&into->run, &from->run);
}

/* Kernels of one name, of whatever process, are one row. The caller frees the array. */
static struct stats **make_rows(struct launch_stats *all, enum kernel_names names, size_t *n)
{
	struct stats **rows = xcalloc(all->n + 1, sizeof(*rows));
	size_t kernels = 0;

	for (size_t i = 0; i < all->n; i++) {
		struct buf name = { 0 };

		if (!all->kernels[i].kernel)
			continue;
		add_kernel_name(&name, all->kernels[i].kernel, names);
		all->kernels[i].name = name.data;
		rows[kernels++] = &all->kernels[i];
	}
	qsort(rows, kernels, sizeof(*rows), by_name);
	*n = 0;
	for (size_t i = 0; i < kernels; i++) {
		if (*n && !strcmp(rows[*n - 1]->name, rows[i]->name))
			take(rows[*n - 1], rows[i]);
		else
			rows[(*n)++] = rows[i];
	}
	qsort(rows, *n, sizeof(*rows), by_launches);
	return rows;
}

/* ---- the table ----------------------------------------------------------------------------- */

static const struct table_column columns[] = {
	{ "Launches", TABLE_NUMBER },    { "Call Avg", TABLE_DURATION },
	{ "Call Med", TABLE_DURATION },  { "Call Max", TABLE_DURATION },
	{ "Delay Avg", TABLE_DURATION }, { "Delay Med", TABLE_DURATION },
	{ "Delay Max", TABLE_DURATION }, { "Run Avg", TABLE_DURATION },
	{ "Run Med", TABLE_DURATION },   { "Run Max", TABLE_DURATION },
	{ "Short", TABLE_NUMBER },       { "Long Calls", TABLE_NUMBER },
	{ "Long Delays", TABLE_NUMBER }, { "Kernel Name", TABLE_TEXT },
};

static void write_spread(struct table *table, struct spread *spread)
{
	if (!spread->count) {
		for (int i = 0; i < 3; i++)
			table_unknown(table);
		return;
	}
	TABLE_CELLS(table, spread_average(spread), spread_median(spread), spread->max);
}

static void write_notes(struct launch_stats *all, const struct run_info *run, bool rows, bool exact)
{
	struct table *table = all->writer.table;

	if (!exact)
		report_note_median(table);
	if (rows)
		table_note(table,
		           "Call: the launch; Delay: from its return to the kernel's begin, "
		           "of those that began later; Short: ran for less than their launch "
		           "took; Long Calls, Long Delays: over 50 us and 100 us, as HTA "
		           "counts");
	if (!all->writer.ran)
		report_note_no_gpu_times(table, all->writer.options.part, run);
	else if (all->unmatched)
		table_note(table,
		           "kernels left out, whose launch was not recorded or is no longer "
		           "known: %lu",
		           all->unmatched);
	report_note_unjoined(&all->writer.options);
	report_note_refused(table, run);
	report_note_estimated(all->writer.table, run);
}

static void write_stats(void *self, struct table *table, const struct run_info *run)
{
	struct launch_stats *all = self;
	struct stats **rows;
	bool exact = true;
	size_t n;

	work_tell_rest(all->writer.work, see_work, all);
	rows = make_rows(all, all->writer.options.names, &n);
	for (size_t i = 0; i < n; i++) {
		exact = exact && spread_is_exact(&rows[i]->run);
		table_u64(table, rows[i]->launches);
		write_spread(table, &rows[i]->call);
		write_spread(table, &rows[i]->delay);
		write_spread(table, &rows[i]->run);
		TABLE_LAST(table, rows[i]->shorter, rows[i]->long_calls, rows[i]->long_delays,
		           rows[i]->name);
	}
	free(rows);
	write_notes(all, run, n > 0, exact);
}

const struct report_kind launch_stats_report = {
	.bytes = sizeof(struct launch_stats),
	.work = true,
	.event = see_stats,
	.clear = clear_stats,
	.parts = { { NULL, NULL, TABLE_COLUMNS(columns), write_stats } },
};
