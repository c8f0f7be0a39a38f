// SPDX-License-Identifier: MIT
#include "report/diff/diff_totals.h"

#include <math.h>

#include "base/array.h"
#include "report/summary/tally.h"

struct side {
	const struct tally *tally;
	const struct run_info *run;
};

static const struct memory_totals *memory_of(const struct side *side)
{
	return memory_totals(side->tally->memory, MEMORY_NONE);
}

/* ---- the figures: a function and a row each ------------------------------------------------- */

static uint64_t duration(const struct side *side)
{
	return side->run->end_ns - side->run->begin_ns;
}

static uint64_t calls(const struct side *side)
{
	return side->tally->calls;
}

static uint64_t failed(const struct side *side)
{
	return side->tally->failed;
}

static uint64_t launches(const struct side *side)
{
	return side->tally->launches;
}

static uint64_t graph_launches(const struct side *side)
{
	return side->tally->graph_launches;
}

static uint64_t allocations(const struct side *side)
{
	return memory_of(side)->allocated.count;
}

static uint64_t allocated(const struct side *side)
{
	return memory_of(side)->allocated.bytes;
}

static uint64_t peak(const struct side *side)
{
	return memory_of(side)->peak_bytes;
}

static uint64_t live(const struct side *side)
{
	return memory_of(side)->live.bytes;
}

static uint64_t copies(const struct side *side)
{
	return side->tally->all_copies.count;
}

static uint64_t copied(const struct side *side)
{
	return side->tally->all_copies.bytes;
}

static uint64_t copied_h2d(const struct side *side)
{
	return side->tally->copies[DIRECTION_H2D].bytes;
}

static uint64_t copied_d2h(const struct side *side)
{
	return side->tally->copies[DIRECTION_D2H].bytes;
}

static uint64_t syncs(const struct side *side)
{
	return side->tally->syncs;
}

static uint64_t sync_time(const struct side *side)
{
	return side->tally->sync_ns;
}

static uint64_t gpu_busy(const struct side *side)
{
	return gpu_tally_busy_ns(side->tally->gpu);
}

static uint64_t gpu_idle(const struct side *side)
{
	return gpu_tally_measured_ns(side->tally->gpu) - gpu_busy(side);
}

enum need { NEEDS_NOTHING, NEEDS_ALL_CALLS, NEEDS_GPU_TIMES, NEEDS_COUNT };

static const struct {
	const char *name;
	enum table_type type;
	uint64_t (*get)(const struct side *side);
	enum need needs; /* of both traces, or it is not known */
} figures[] = {
	{ "Trace duration", TABLE_DURATION, duration, NEEDS_NOTHING },
	{ "CUDA calls", TABLE_NUMBER, calls, NEEDS_NOTHING },
	{ "Failed calls", TABLE_NUMBER, failed, NEEDS_NOTHING },
	{ "Kernel launches", TABLE_NUMBER, launches, NEEDS_NOTHING },
	{ "Graph launches", TABLE_NUMBER, graph_launches, NEEDS_NOTHING },
	{ "Allocations", TABLE_NUMBER, allocations, NEEDS_NOTHING },
	{ "Allocated", TABLE_BYTES, allocated, NEEDS_NOTHING },
	{ "Peak of live memory", TABLE_BYTES, peak, NEEDS_ALL_CALLS },
	{ "Live at the end", TABLE_BYTES, live, NEEDS_ALL_CALLS },
	{ "Transfers", TABLE_NUMBER, copies, NEEDS_NOTHING },
	{ "Transferred", TABLE_BYTES, copied, NEEDS_NOTHING },
	{ "Transferred H2D", TABLE_BYTES, copied_h2d, NEEDS_NOTHING },
	{ "Transferred D2H", TABLE_BYTES, copied_d2h, NEEDS_NOTHING },
	{ "Synchronisations", TABLE_NUMBER, syncs, NEEDS_NOTHING },
	{ "Time in synchronisations", TABLE_DURATION, sync_time, NEEDS_NOTHING },
	{ "GPU busy", TABLE_DURATION, gpu_busy, NEEDS_GPU_TIMES },
	{ "GPU idle", TABLE_DURATION, gpu_idle, NEEDS_GPU_TIMES },
};

static const struct table_column columns[] = {
	{ "What", TABLE_TEXT },     { "A", TABLE_NUMBER },      { "B", TABLE_NUMBER },
	{ "Change", TABLE_NUMBER }, { "Change", TABLE_CHANGE }, { "Unit", TABLE_TEXT },
};

static const char *unit(enum table_type type)
{
	return type == TABLE_DURATION ? "ns" : type == TABLE_BYTES ? "bytes" : "";
}

static void add_figure(struct table *table, enum table_type type, uint64_t before, uint64_t after)
{
	table_as(table, type);
	table_u64(table, before);
	table_as(table, type);
	table_u64(table, after);
	table_as(table, type);
	table_difference(table, (int64_t)(after - before));
	table_real(table, before ? 100 * ((double)after - (double)before) / (double)before : NAN);
}

static void add_unknown(struct table *table)
{
	for (int i = 0; i < 4; i++)
		table_unknown(table);
}

void diff_totals_print(const char *name, const struct consumer *a, const struct consumer *b,
                       const struct run_info *const runs[DIFF_SIDES], struct table *table)
{
	const struct side sides[DIFF_SIDES] = { { summary_tally(a), runs[DIFF_A] },
		                                { summary_tally(b), runs[DIFF_B] } };
	const bool known[NEEDS_COUNT] = {
		[NEEDS_NOTHING] = true,
		[NEEDS_ALL_CALLS] =
			runs[DIFF_A]->estimate_scale <= 1 && runs[DIFF_B]->estimate_scale <= 1,
		[NEEDS_GPU_TIMES] = gpu_tally_any(sides[DIFF_A].tally->gpu) &&
		                    gpu_tally_any(sides[DIFF_B].tally->gpu),
	};
	bool text = table_options(table)->form == TABLE_FORM_TEXT;
	char title[80];

	snprintf(title, sizeof(title), "%s: what was done in all", name);
	table_begin(table, name, title, columns, ARRAY_SIZE(columns) - text);
	table_whole(table);
	for (size_t i = 0; i < ARRAY_SIZE(figures); i++) {
		if (text && figures[i].needs == NEEDS_GPU_TIMES && !known[NEEDS_GPU_TIMES])
			continue; /* most traces have none, by choice */
		table_text(table, figures[i].name);
		if (!known[figures[i].needs])
			add_unknown(table);
		else
			add_figure(table, figures[i].type, figures[i].get(&sides[DIFF_A]),
			           figures[i].get(&sides[DIFF_B]));
		if (!text) /* it is beside the figures */
			table_text(table, unit(figures[i].type));
		table_end_row(table);
	}
}
