// SPDX-License-Identifier: MIT
/*
 * Expert rules of Nsight Systems about GPUs that wait, with its names, criteria and columns:
 * gpu_gaps and gpu_time_util. When a GPU was busy they have from the account of time, as `why` and
 * `gaps`, which say why it was not.
 */
#include <stdlib.h>

#include "account/answer.h"
#include "account/gpu_time.h"
#include "base/number.h"
#include "base/order.h"
#include "base/vec.h"
#include "report/reports.h"
#include "report/why.h"
#include "table/longest.h"

#define ROWS_DEFAULT 50
#define LONG_GAP_NS  500000000
#define LOW_USE      0.5
#define WINDOWS      30
#define MEASURED     0.1        /* of a window: of less nothing can be said */
#define OVERHEADS    (1u << 20) /* times in which CUPTI was at work */

static void write_gpu(struct table *table, const struct facts *facts, const struct fact_work *gpu)
{
	TABLE_LAST(table, gpu->process->pid, gpu->device,
	           TABLE_IF(!gpu->sampled, gpu->sampled ? 0 : facts->contexts[gpu->gpu]));
}

static void write_notes(struct report_writer *writer, const struct facts *facts,
                        const struct run_info *run)
{
	table_note_if(writer->table, facts->left_out, "left out for want of room: %lu events",
	              facts->left_out);
	table_note_if(writer->table, facts->resolution_ns,
	              "GPUs were seen from outside: when they were busy is known within %s",
	              TEXT_DURATION(facts->resolution_ns));
	report_note_gpu_lost(writer->table, run);
}

/* ---- gpu_gaps ------------------------------------------------------------------------------ */

static const struct table_column gap_columns[] = {
	{ "Row#", TABLE_NUMBER }, { "Duration", TABLE_DURATION }, { "Start", TABLE_TIME },
	{ "PID", TABLE_NUMBER },  { "Device ID", TABLE_NUMBER },  { "Context ID", TABLE_NUMBER },
};

struct overhead {
	const struct process *process;
	uint64_t begin_ns, end_ns;
};

struct gpu_gaps {
	struct report_writer writer; /* first: what callers hold */
	struct overhead *overheads;
	size_t n;
	uint64_t left_out;
	struct longest longest; /* struct gap */
};

struct gap {
	const struct fact_work *gpu;
	uint64_t begin_ns, end_ns;
};

ORDER_BY(longer, struct gap, ORDER_OF(b->end_ns - b->begin_ns, a->end_ns - a->begin_ns),
         UP(begin_ns));

static void see_gaps(void *self, const struct event *event)
{
	struct gpu_gaps *gaps = self;
	const struct range *range = event->range;

	if (event->type != EVENT_RANGE || range->kind != RANGE_OVERHEAD)
		return;
	if (gaps->n == OVERHEADS)
		gaps->left_out++;
	else
		*VEC_ADD(gaps->overheads, gaps->n) =
			(struct overhead){ event->process, range->begin_ns, range->end_ns };
}

ORDER_BY(overhead_order, struct overhead, UP(begin_ns));

static void keep_gap(struct gpu_gaps *gaps, const struct fact_work *gpu, uint64_t begin_ns,
                     uint64_t end_ns)
{
	if (end_ns > begin_ns && end_ns - begin_ns > LONG_GAP_NS)
		longest_keep(&gaps->longest, &(struct gap){ gpu, begin_ns, end_ns });
}

/* Where a GPU's gaps are cut: what was not measured, and what CUPTI did, by begin. */
struct cuts {
	struct measured measured; /* its spans: those to come */
	size_t overheads;         /* that are over */
	uint64_t until_ns;
};

/* The next one that begins before this time; of another process it has no length. */
static bool next_cut(struct cuts *cuts, const struct gpu_gaps *gaps, const struct fact_work *gpu,
                     uint64_t before_ns, struct fact_span *cut)
{
	const struct fact_span *span =
		cuts->measured.at < cuts->measured.to ? cuts->measured.at : NULL;
	const struct overhead *over =
		cuts->overheads < gaps->n ? &gaps->overheads[cuts->overheads] : NULL;

	if (span && (!over || span->begin_ns <= over->begin_ns)) {
		*cut = *span;
		cuts->measured.at += cut->begin_ns < before_ns;
	} else if (over) {
		*cut = (struct fact_span){ over->begin_ns, over->process == gpu->process
			                                           ? over->end_ns
			                                           : over->begin_ns };
		cuts->overheads += cut->begin_ns < before_ns;
	}
	return (span || over) && cut->begin_ns < before_ns;
}

static void cut_gap(struct gpu_gaps *gaps, const struct fact_work *gpu,
                    const struct gpu_segment *idle, struct cuts *cuts)
{
	uint64_t from_ns = idle->begin_ns;
	struct fact_span cut;

	if (cuts->until_ns > from_ns)
		from_ns = cuts->until_ns;
	while (next_cut(cuts, gaps, gpu, idle->end_ns, &cut)) {
		if (cut.end_ns <= cut.begin_ns)
			continue;
		keep_gap(gaps, gpu, from_ns, cut.begin_ns);
		if (cut.end_ns > from_ns)
			from_ns = cut.end_ns;
	}
	cuts->until_ns = from_ns;
	keep_gap(gaps, gpu, from_ns, idle->end_ns);
}

static void find_gaps(struct gpu_gaps *gaps, const struct facts *facts)
{
	struct gpu_time *times = gpu_times_of(facts);

	for (uint32_t id = 0; id < facts->n_gpus; id++) {
		const struct gpu_time *gpu = &times[id];
		struct cuts cuts = { 0 };

		if (gpu->n)
			cuts.measured = measured_of_gpu(facts, facts->works[gpu->first].process);
		for (size_t i = 0; i < gpu->n; i = spill_next(facts->spill, i)) {
			const struct gpu_segment *segment = &gpu->segments[i];

			if (segment->state == STATE_IDLE && segment->work < facts->n_works &&
			    segment->end_ns - segment->begin_ns > LONG_GAP_NS)
				cut_gap(gaps, &facts->works[gpu->first], segment, &cuts);
		}
	}
}

static void write_gaps(void *self, struct table *table, const struct run_info *run)
{
	struct gpu_gaps *gaps = self;
	const struct facts *facts = why_answer(gaps->writer.analysis)->facts;
	const struct gap *rows;
	size_t n;

	SORT(gaps->overheads, gaps->n, overhead_order);
	find_gaps(gaps, facts);
	table_whole(table);
	rows = longest_rows(&gaps->longest, &n);
	for (size_t i = 0; i < n; i++) {
		TABLE_CELLS(table, i + 1, rows[i].end_ns - rows[i].begin_ns);
		report_time(&gaps->writer, rows[i].begin_ns);
		write_gpu(table, facts, rows[i].gpu);
	}
	table_note_if(table, gaps->longest.seen > n, "shorter ones, left out: %lu",
	              gaps->longest.seen - n);
	if (!n && facts->n_works)
		table_note(table, "nothing found: no gap is longer than 500 ms (the report gaps "
		                  "has shorter ones)");
	else if (!n)
		report_note_no_gpu_times(table, gaps->writer.options.part, run);
	table_note_if(table, gaps->left_out,
	              "times of CUPTI at work without room, which are gaps here: %lu",
	              gaps->left_out);
	write_notes(&gaps->writer, facts, run);
}

static void init_gaps(void *self)
{
	struct gpu_gaps *gaps = self;
	size_t top = table_options(gaps->writer.table)->top;

	longest_init(&gaps->longest, sizeof(struct gap), top ? top : ROWS_DEFAULT, longer);
}

static void clear_gaps(void *self)
{
	struct gpu_gaps *gaps = self;

	free(gaps->overheads);
	longest_free(&gaps->longest);
}

const struct report_kind gpu_gaps_report = {
	.bytes = sizeof(struct gpu_gaps),
	.init = init_gaps,
	.why = true,
	.metrics = true,
	.event = see_gaps,
	.clear = clear_gaps,
	.parts = { { NULL, NULL, TABLE_COLUMNS(gap_columns), write_gaps } },
};

/* ---- gpu_time_util ------------------------------------------------------------------------- */

static const struct table_column use_columns[] = {
	{ "Row#", TABLE_NUMBER },       { "In-Use", TABLE_PERCENT }, { "Duration", TABLE_DURATION },
	{ "Start", TABLE_TIME },        { "PID", TABLE_NUMBER },     { "Device ID", TABLE_NUMBER },
	{ "Context ID", TABLE_NUMBER },
};

/* ns of each window from the first work to the last; what runs at the same time adds up. */
struct use {
	uint64_t begin_ns, end_ns;
	double used[WINDOWS], unmeasured[WINDOWS];
};

static double window_ns(const struct use *use)
{
	return (double)(use->end_ns - use->begin_ns) / WINDOWS;
}

static void use_add(const struct use *use, double *windows, uint64_t begin_ns, uint64_t end_ns)
{
	double width = window_ns(use), from, to;

	if (begin_ns < use->begin_ns)
		begin_ns = use->begin_ns;
	if (end_ns > use->end_ns)
		end_ns = use->end_ns;
	if (end_ns <= begin_ns)
		return;
	from = (double)(begin_ns - use->begin_ns);
	to = (double)(end_ns - use->begin_ns);
	for (size_t i = (size_t)(from / width); i < WINDOWS && (double)i * width < to; i++) {
		double first = (double)i * width, last = first + width;

		if (last > from)
			windows[i] += (last < to ? last : to) - (first > from ? first : from);
	}
}

static const struct fact_work *use_next(const struct facts *facts, const struct fact_work *work)
{
	return facts->works + spill_next(facts->spill, (size_t)(work - facts->works));
}

static void use_make(struct use *use, const struct facts *facts, const struct fact_work *gpu)
{
	const struct fact_work *end = facts->works + facts->n_works;

	*use = (struct use){ .begin_ns = gpu->begin_ns };
	for (const struct fact_work *work = gpu; work < end && work->gpu == gpu->gpu;
	     work = use_next(facts, work))
		if (work->end_ns > use->end_ns)
			use->end_ns = work->end_ns;
	for (const struct fact_work *work = gpu; work < end && work->gpu == gpu->gpu;
	     work = use_next(facts, work))
		use_add(use, use->used, work->begin_ns, work->end_ns);
	for (struct measured part = measured_of_gpu(facts, gpu->process); part.at < part.to;
	     part.at++)
		use_add(use, use->unmeasured, part.at->begin_ns, part.at->end_ns);
}

/* Of what was measured of it; LOW_USE where that is too little. */
static double use_of(const struct use *use, size_t window)
{
	double measured = window_ns(use) - use->unmeasured[window];

	return measured < MEASURED * window_ns(use) ? LOW_USE : use->used[window] / measured;
}

/* Neighbours of low use are one row, with the mean of their use. */
static size_t write_windows(struct report_writer *writer, const struct facts *facts,
                            const struct fact_work *gpu, size_t number)
{
	struct table *table = writer->table;
	struct use use;

	use_make(&use, facts, gpu);
	for (size_t i = 0; use.end_ns > use.begin_ns && i < WINDOWS; i++) {
		size_t first = i;
		double sum = 0;

		while (i < WINDOWS && use_of(&use, i) < LOW_USE)
			sum += use_of(&use, i++);
		if (i == first)
			continue;
		TABLE_CELLS(table, ++number, 100 * sum / (double)(i - first),
		            number_rounded(window_ns(&use) * (double)(i - first)));
		report_time(writer, use.begin_ns + number_rounded(window_ns(&use) * (double)first));
		write_gpu(table, facts, gpu);
	}
	return number;
}

static void write_use(void *self, struct table *table, const struct run_info *run)
{
	struct report_writer *writer = self;
	const struct facts *facts = why_answer(writer->analysis)->facts;
	size_t number = 0;

	for (size_t i = 0; i < facts->n_works; i = spill_next(facts->spill, i))
		if (!i || facts->works[i].gpu != facts->works[i - 1].gpu)
			number = write_windows(writer, facts, &facts->works[i], number);
	if (!facts->n_works)
		report_note_no_gpu_times(table, writer->options.part, run);
	else if (!number)
		table_note(table, "nothing found: no window was in use below 50 %%");
	table_note_if(table, number,
	              "of %d windows of each GPU's time; In-Use adds up what runs at the same "
	              "time, as nsys does",
	              WINDOWS);
	write_notes(writer, facts, run);
}

const struct report_kind gpu_time_util_report = {
	.why = true,
	.metrics = true,
	.parts = { { NULL, NULL, TABLE_COLUMNS(use_columns), write_use } },
};
