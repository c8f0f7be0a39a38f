// SPDX-License-Identifier: MIT
/*
 * nvtx_kern_sum and nvtx_gpu_proj_sum: what ran on GPUs for the ranges that threads pushed and
 * popped. A kernel counts for every range around its launch.
 */
#include <stdlib.h>
#include <string.h>

#include "account/keyed.h"
#include "analysis/by_id.h"
#include "base/map.h"
#include "base/order.h"
#include "report/nvtx/range_work.h"
#include "analysis/spread.h"
#include "base/xalloc.h"
#include "report/who_columns.h"
#include "report/nvtx/nvtx.h"
#include "report/reports.h"

/* Ranges by kernels; of more, those with the least time are let go. Of a table that is cut anyway
 * its rows have little room. */
#define KERNEL_ROWS     262144
#define KERNEL_ROWS_CUT 32768
#define KERNEL_CUT      4096 /* rows that it shows at most */

/* All ranges of a name; in nvtx_kern_sum of a thread. */
struct range_row {
	char *key; /* process, thread, name */
	const char *name;
	uint32_t pid, tid;
	uint64_t instances;
	struct spread projected; /* of those that had work */
	uint64_t range_ns, ops, levels, children;
	UT_hash_handle hh;
};

struct kernel_key {
	const struct range_row *range;
	const struct kernel *kernel;
};

struct nvtx_gpu_kernel_row {
	struct kernel_key key;
	struct spread values;
	const char *name; /* from the end on */
};

struct nvtx_gpu {
	struct report_writer writer; /* first: what callers hold */
	struct range_work *work;
	bool by_kernel; /* nvtx_kern_sum */
	struct range_row *ranges;
	struct keyed kernels;
	size_t most;      /* of them */
	uint64_t gone_ns; /* that a row can lack at most, which had been let go */
	char **names;     /* of kernels, by id, made at the end */
	size_t n_names;
	struct buf key;
	uint64_t others, left_out;
};

/* ---- rows ---------------------------------------------------------------------------------- */

static struct range_row *make_row(struct nvtx_gpu *gpu, const struct event *event, size_t name_at)
{
	struct range_row *row = xcalloc(1, sizeof(*row));

	row->key = xstrdup(gpu->key.data);
	row->name = row->key + name_at;
	row->pid = event->process->pid;
	row->tid = event->tid;
	HASH_ADD_KEYPTR(hh, gpu->ranges, row->key, strlen(row->key), row);
	return row;
}

static void *row_of(void *data, const struct event *event)
{
	struct nvtx_gpu *gpu = data;
	struct range_row *row;
	size_t name_at;

	buf_reset(&gpu->key);
	if (gpu->by_kernel)
		buf_printf(&gpu->key, "%u %u", event->process->id, event->tid);
	buf_putc(&gpu->key, ' ');
	name_at = gpu->key.len;
	nvtx_add_name(&gpu->key, event->range);
	row = MAP_FIND_TEXT(gpu->ranges, gpu->key.data);
	if (!row && HASH_COUNT(gpu->ranges) >= NVTX_NAMES) {
		gpu->others++;
		gpu->key.len = name_at;
		buf_puts(&gpu->key, NVTX_NAMES_ALL);
		row = MAP_FIND_TEXT(gpu->ranges, gpu->key.data);
	}
	if (!row)
		row = make_row(gpu, event, name_at);
	row->instances++;
	return row;
}

ORDER_BY(by_time, struct nvtx_gpu_kernel_row, DOWN(values.sum), BY_TEXT(key.range->key),
         UP(key.kernel->id));

static void let_kernels_go(struct nvtx_gpu *gpu)
{
	size_t kept = gpu->kernels.n - gpu->kernels.n / 4;
	struct nvtx_gpu_kernel_row *rows;

	keyed_sort(&gpu->kernels, by_time);
	rows = keyed_at(&gpu->kernels, kept);
	gpu->gone_ns += rows->values.sum;
	for (size_t i = 0; i < gpu->kernels.n - kept; i++) {
		gpu->left_out += rows[i].values.count;
		spread_free(&rows[i].values);
	}
	keyed_keep(&gpu->kernels, kept);
}

static void count_work(void *data, void *range, const struct kernel *kernel, uint64_t ns)
{
	struct kernel_key key = { range, kernel };
	struct nvtx_gpu *gpu = data;
	struct nvtx_gpu_kernel_row *row;

	if (!gpu->by_kernel || !kernel)
		return;
	row = keyed_row(&gpu->kernels, &key, gpu->most);
	if (!row) {
		let_kernels_go(gpu);
		row = keyed_row(&gpu->kernels, &key, gpu->most);
	}
	spread_add(&row->values, ns);
}

static void count_done(void *data, void *range, const struct range_work_done *done)
{
	struct range_row *row = range;

	if (!done->ops)
		return;
	spread_add(&row->projected,
	           done->end_ns > done->begin_ns ? done->end_ns - done->begin_ns : 0);
	row->range_ns += done->range_ns;
	row->ops += done->ops;
	row->levels += done->depth;
	row->children += done->children;
}

/* ---- the analysis -------------------------------------------------------------------------- */

static void see_gpu(void *self, const struct event *event)
{
	range_work_event(((struct nvtx_gpu *)self)->work, event);
}

static void conclude_gpu(void *self, const struct run_info *run)
{
	range_work_finish(((struct nvtx_gpu *)self)->work);
}

static void clear_gpu(void *self)
{
	struct nvtx_gpu *gpu = self;
	struct range_row *range, *next_range;

	for (size_t i = 0; i < gpu->kernels.n; i++) {
		struct nvtx_gpu_kernel_row *kernel = keyed_at(&gpu->kernels, i);

		spread_free(&kernel->values);
	}
	for (size_t i = 0; i < gpu->n_names; i++)
		free(gpu->names[i]);
	free(gpu->names);
	keyed_free(&gpu->kernels);
	HASH_ITER (hh, gpu->ranges, range, next_range) {
		HASH_DELETE(hh, gpu->ranges, range);
		spread_free(&range->projected);
		free(range->key);
		free(range);
	}
	range_work_free(gpu->work);
	buf_free(&gpu->key);
}

static void note_left_out(const struct nvtx_gpu *gpu)
{
	table_note_if(gpu->writer.table, gpu->left_out,
	              "kernels left out, of ranges and kernels with the least time beyond %zu: "
	              "%lu; a row lacks %s at most",
	              gpu->most, gpu->left_out, TEXT_DURATION(gpu->gone_ns));
}

static void add_notes(struct nvtx_gpu *gpu, const struct run_info *run, bool exact)
{
	struct table *table = gpu->writer.table;

	nvtx_note_no_work(&gpu->writer.options, run, gpu->ranges, gpu->writer.ran);
	if (!exact)
		report_note_median(table);
	nvtx_note_others(table, gpu->others);
	note_left_out(gpu);
	nvtx_note_cut(table, gpu->work);
	report_note_unjoined(&gpu->writer.options);
}

/* ---- nvtx_kern_sum ------------------------------------------------------------------------- */

ORDER_BY(by_kernel_total, struct nvtx_gpu_kernel_row, DOWN(values.sum), BY_TEXT(key.range->key),
         BY_TEXT(name));

static const struct table_column kernel_columns[] = {
	{ "NVTX Range", TABLE_TEXT },     { "Style", TABLE_TEXT },
	{ "PID", TABLE_NUMBER },          { "TID", TABLE_NUMBER },
	{ "NVTX Inst", TABLE_NUMBER },    { "Kern Inst", TABLE_NUMBER },
	{ "Total Time", TABLE_DURATION }, { "Avg", TABLE_DURATION },
	{ "Med", TABLE_DURATION },        { "Min", TABLE_DURATION },
	{ "Max", TABLE_DURATION },        { "StdDev", TABLE_DURATION },
	{ "Kernel Name", TABLE_TEXT },
};

static const char *name_of(struct nvtx_gpu *gpu, const struct kernel *kernel)
{
	char **known = BY_ID(gpu->names, gpu->n_names, kernel->id);
	AT_END(buf_free) struct buf name = { 0 };

	if (*known)
		return *known;
	buf_puts(&name, "");
	add_kernel_name(&name, kernel, gpu->writer.options.names);
	return *known = xstrdup(name.data);
}

static void write_by_kernel(void *self, struct table *table, const struct run_info *run)
{
	struct nvtx_gpu *gpu = self;
	struct nvtx_gpu_kernel_row *rows;
	bool exact = true;

	rows = (void *)gpu->kernels.rows;
	for (size_t i = 0; i < gpu->kernels.n; i++) {
		rows[i].name = name_of(gpu, rows[i].key.kernel);
		exact = exact && spread_is_exact(&rows[i].values);
	}
	keyed_sort(&gpu->kernels, by_kernel_total);
	for (size_t i = 0; i < gpu->kernels.n; i++) {
		const struct range_row *range = rows[i].key.range;

		TABLE_CELLS(table, range->name, nvtx_style(RANGE_PUSHPOP), range->pid, range->tid,
		            range->instances, rows[i].values.count, rows[i].values.sum);
		report_spread(table, &rows[i].values);
		TABLE_LAST(table, rows[i].name);
	}
	add_notes(gpu, run, exact);
}

/* ---- nvtx_gpu_proj_sum --------------------------------------------------------------------- */

ORDER_POINTERS_BY(by_projected, struct range_row, DOWN(projected.sum), BY_TEXT(key));

static void print_projected(struct table *table, struct range_row *row)
{
	double n = (double)row->projected.count;

	TABLE_CELLS(table, row->name, nvtx_style(RANGE_PUSHPOP), row->projected.sum, row->range_ns,
	            row->projected.count);
	report_spread(table, &row->projected);
	TABLE_LAST(table, row->ops, (double)row->ops / n, (double)row->levels / n,
	           (double)row->children / n);
}

static const struct table_column projected_columns[] = {
	{ "Range", TABLE_TEXT },
	{ "Style", TABLE_TEXT },
	{ "Total Proj Time", TABLE_DURATION },
	{ "Total Range Time", TABLE_DURATION },
	{ "Range Instances", TABLE_NUMBER },
	{ "Proj Avg", TABLE_DURATION },
	{ "Proj Med", TABLE_DURATION },
	{ "Proj Min", TABLE_DURATION },
	{ "Proj Max", TABLE_DURATION },
	{ "Proj StdDev", TABLE_DURATION },
	{ "Total GPU Ops", TABLE_NUMBER },
	{ "Avg GPU Ops", TABLE_REAL },
	{ "Avg Range Lvl", TABLE_REAL },
	{ "Avg Num Child", TABLE_REAL },
};

static void write_projected(void *self, struct table *table, const struct run_info *run)
{
	struct nvtx_gpu *gpu = self;
	struct range_row **rows, *row, *next;
	bool exact = true;
	size_t n = 0;

	rows = xcalloc(HASH_COUNT(gpu->ranges) + 1, sizeof(*rows));
	HASH_ITER (hh, gpu->ranges, row, next) {
		exact = exact && spread_is_exact(&row->projected);
		if (row->projected.count)
			rows[n++] = row;
	}
	SORT(rows, n, by_projected);
	for (size_t i = 0; i < n; i++)
		print_projected(table, rows[i]);
	free(rows);
	add_notes(gpu, run, exact);
}

/* ---- the reports --------------------------------------------------------------------------- */

static void init_gpu(void *self)
{
	static const struct range_work_ops work_ops = { row_of, count_work, count_done };
	struct nvtx_gpu *gpu = self;
	size_t top = table_options(gpu->writer.table)->top;

	gpu->most = top && top <= KERNEL_CUT ? KERNEL_ROWS_CUT : KERNEL_ROWS;
	gpu->by_kernel = gpu->writer.report->kind == &nvtx_kern_sum_report;
	gpu->kernels = (struct keyed){ .row_bytes = sizeof(struct nvtx_gpu_kernel_row),
		                       .key_bytes = sizeof(struct kernel_key) };
	gpu->work = range_work_new(&work_ops, gpu, gpu->writer.options.work);
}

const struct report_kind nvtx_kern_sum_report = {
	.bytes = sizeof(struct nvtx_gpu),
	.init = init_gpu,
	.event = see_gpu,
	.conclude = conclude_gpu,
	.clear = clear_gpu,
	.parts = { { NULL, NULL, TABLE_COLUMNS(kernel_columns), write_by_kernel } },
};

const struct report_kind nvtx_gpu_proj_sum_report = {
	.bytes = sizeof(struct nvtx_gpu),
	.init = init_gpu,
	.event = see_gpu,
	.conclude = conclude_gpu,
	.clear = clear_gpu,
	.parts = { { NULL, NULL, TABLE_COLUMNS(projected_columns), write_projected } },
};
