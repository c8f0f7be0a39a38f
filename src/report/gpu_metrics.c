// SPDX-License-Identifier: MIT
/* The report `gpu_metrics`: how well GPUs were used, by what was read of them at an interval. */
#include <math.h>

#include "analysis/kernel_metrics.h"
#include "analysis/metrics_use.h"
#include "base/number.h"
#include "report/reports.h"

struct metrics_report {
	struct report_writer writer; /* first */
	struct metrics_use *use;
	struct kernel_metrics *kernels;
};

/* A share of the time that a metric was at a level: metrics_levels. */
static const struct table_column share_columns[] = {
	{ "GPU", TABLE_NUMBER },          { "Mean", TABLE_PERCENT },
	{ "Median", TABLE_PERCENT },      { "p95", TABLE_PERCENT },
	{ "Most", TABLE_PERCENT },        { "While Busy", TABLE_PERCENT },
	{ "Time At 20+", TABLE_PERCENT }, { "Time At 50+", TABLE_PERCENT },
	{ "Time At 80+", TABLE_PERCENT }, { "Metric", TABLE_TEXT },
};

static const struct table_column rate_columns[] = {
	{ "GPU", TABLE_NUMBER },  { "Mean", TABLE_RATE }, { "Median", TABLE_RATE },
	{ "p95", TABLE_RATE },    { "Most", TABLE_RATE }, { "While Busy", TABLE_RATE },
	{ "Metric", TABLE_TEXT },
};

static void write_share(struct table *table, const struct metrics_gpu *gpu, enum gpu_metric metric)
{
	const struct metric_use *use = &gpu->of[metric];

	TABLE_CELLS(table, gpu->gpu, metric_mean(gpu, metric),
	            (double)sketch_percentile(&use->values, 0.5) / 100,
	            (double)sketch_percentile(&use->values, 0.95) / 100,
	            (double)use->values.max / 100, metric_busy_mean(gpu, metric));
	for (size_t i = 0; i < METRICS_LEVELS; i++)
		table_real(table,
		           use->ns ? 100.0 * (double)use->above_ns[i] / (double)use->ns : NAN);
	TABLE_LAST(table, gpu_metric_info(metric)->name);
}

static void write_rate(struct table *table, const struct metrics_gpu *gpu, enum gpu_metric metric)
{
	const struct metric_use *use = &gpu->of[metric];
	double busy = metric_busy_mean(gpu, metric);

	TABLE_LAST(table, gpu->gpu, number_rounded(metric_mean(gpu, metric)),
	           sketch_percentile(&use->values, 0.5), sketch_percentile(&use->values, 0.95),
	           use->values.max, TABLE_IF(!isnan(busy), number_rounded(busy)),
	           gpu_metric_info(metric)->name);
}

static void write_rows(struct metrics_report *report, bool rates)
{
	size_t n;
	const struct metrics_gpu *gpus = metrics_use_gpus(report->use, &n);

	for (size_t i = 0; i < n; i++) {
		for (enum gpu_metric j = 0; j < GPU_METRICS; j++) {
			if (!gpus[i].of[j].values.count || gpu_metric_info(j)->is_rate != rates)
				continue;
			if (rates)
				write_rate(report->writer.table, &gpus[i], j);
			else
				write_share(report->writer.table, &gpus[i], j);
		}
	}
}

static void note_source(struct table *table, const struct metrics_gpu *gpu)
{
	const char *source = !gpu->utilization ? "NVML's GPM"
	                     : !gpu->gpm       ? "NVML's utilisation, since this GPU tells no GPM"
	                                       : "NVML's GPM and utilisation";

	table_note(table, "GPU %u: %lu samples, one each %.0f ms, from %s; busy in %lu of them",
	           gpu->gpu, gpu->samples,
	           gpu->samples ? (double)gpu->ns / (double)gpu->samples / 1e6 : 0, source,
	           gpu->busy_samples);
}

static void note_count(struct table *table, const char *what, uint64_t count)
{
	table_note_if(table, count, "%s: %lu", what, count);
}

static void note_missed(struct table *table, const struct run_metrics *run)
{
	note_count(table, "moments without a sample, for which the next one stands as well",
	           run->late);
	note_count(table, "readings that gave nothing", run->none);
	note_count(table, "samples that there was no room for", run->dropped);
}

static void write_notes(struct metrics_report *report, const struct run_info *run)
{
	struct table *table = report->writer.table;
	size_t n;
	const struct metrics_gpu *gpus = metrics_use_gpus(report->use, &n);

	for (size_t i = 0; i < n; i++)
		note_source(table, &gpus[i]);
	table_note_if(table, !n,
	              "no metrics of GPUs were recorded: 'cuscope record' reads them where NVML "
	              "is, but for --no-gpu-metrics");
	note_missed(table, &run->metrics);
}

static void write_shares(void *self, struct table *table, const struct run_info *run)
{
	write_rows(self, false);
	write_notes(self, run);
}

static void write_rates(void *self, struct table *table, const struct run_info *run)
{
	write_rows(self, true);
}

/* ---- by kernel ----------------------------------------------------------------------------- */

#define OF_KERNEL(member) TABLE_AT(struct kernel_metrics_row, member)

static const struct table_column kernel_columns[] = {
	{ "Runs", TABLE_NUMBER, OF_KERNEL(runs) },
	{ "Time", TABLE_DURATION, OF_KERNEL(ns) },
	{ "SM Active", TABLE_PERCENT },
	{ "Tensor", TABLE_PERCENT },
	{ "DRAM", TABLE_PERCENT },
	{ "Kernel", TABLE_TEXT, TABLE_VIA(struct kernel_metrics_row, kernel, name) },
};

/* What lies between two samples is in the error of their times, but a stretch has 300 us or more.
 */
static uint64_t edge_of(const struct run_stretches *run)
{
	uint64_t least_ns = GPU_STRETCH_OTHER_NS;

	return run->clock_error_ns +
	       (run->interval_ns < least_ns ? least_ns - run->interval_ns : 0);
}

static void write_kernels(void *self, struct table *table, const struct run_info *run)
{
	struct metrics_report *report = self;
	size_t n;
	uint64_t edge_ns = edge_of(&run->stretches), least_ns;
	const struct kernel_metrics_row *rows = kernel_metrics_rows(report->kernels, edge_ns, &n);
	bool several = kernel_metrics_of_several(report->kernels);

	least_ns = kernel_metrics_least_ns(report->kernels);
	if (!kernel_metrics_any(report->kernels))
		return;
	report_table(&report->writer, "kernels", "While a kernel ran",
	             TABLE_COLUMNS(kernel_columns));
	for (size_t i = 0; i < n; i++) {
		table_fields(table, &rows[i]);
		TABLE_CELLS(table, rows[i].sm, rows[i].tensor, rows[i].dram);
		table_row(table, &rows[i]);
	}
	if (several) {
		table_note(table, "not told of several GPUs, since it is not known which of them a "
		                  "process calls 0");
		return;
	}
	table_note_if(
		table, least_ns,
		"of runs of %.1f ms or longer, since samples within %.1f ms of an edge may be "
		"another's",
		(double)least_ns / 1e6, (double)edge_ns / 1e6);
	table_note_if(table, !least_ns,
	              "not told, since samples within %.1f ms of an edge may be another's",
	              (double)edge_ns / 1e6);
	note_count(table, "left out, since other long kernels ran at the same time",
	           kernel_metrics_together(report->kernels));
	note_count(table, "left out, since samples are missing",
	           kernel_metrics_unsampled(report->kernels));
}

static void take_event(void *self, const struct event *event)
{
	struct metrics_report *report = self;

	if (event->type == EVENT_METRICS)
		metrics_use_add(report->use, event->metrics);
	kernel_metrics_event(report->kernels, event);
}

static void init_metrics(void *self)
{
	struct metrics_report *report = self;

	report->use = metrics_use_new();
	report->kernels = kernel_metrics_new();
}

static void clear_metrics(void *self)
{
	struct metrics_report *report = self;

	metrics_use_free(report->use);
	kernel_metrics_free(report->kernels);
}

const struct report_kind gpu_metrics_report = {
	.bytes = sizeof(struct metrics_report),
	.init = init_metrics,
	.event = take_event,
	.clear = clear_metrics,
	.metrics = true,
	.parts = { { "shares", NULL, TABLE_COLUMNS(share_columns), write_shares },
	           { "rates", "Links", TABLE_COLUMNS(rate_columns), write_rates },
	           { .write = write_kernels } },
};
