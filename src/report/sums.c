// SPDX-License-Identifier: MIT
#include "report/sums.h"

#include <stdlib.h>
#include <string.h>

#include "account/keyed.h"
#include "analysis/place.h"
#include "base/array.h"
#include "base/order.h"
#include "base/xalloc.h"
#include "report/who_columns.h"
#include "report/reports.h"

#define SUM_OF_CALLS ACTIVITY_COUNT

/* What is counted together while events come. Names are looked at only at the end: a kernel's can
 * be found after its launches. No padding: it is hashed whole. */
struct sum_group_key {
	uint32_t what; /* SUM_OF_CALLS, or an enum activity_kind */
	uint32_t id;   /* of a function or kernel; a direction */
	uint32_t place;
	uint32_t grid[3], block[3];
};

struct sum_group {
	struct sum_group_key key;
	const struct function *function; /* one of these */
	const struct kernel *kernel;
	const char *operation;
	uint64_t count;
	struct spread values;
};

struct sums {
	struct report_writer writer; /* first; of a report: else without a table */
	const struct sums_kind *kind;
	struct keyed groups;
	struct keyed_last last[SUM_OF_CALLS + 1];
	bool has_source;
	struct stack_places *places; /* of a kind by place */
	uint64_t called, placeless;  /* calls, and of these without a stack */
	uint64_t nested;             /* calls left out */
	uint64_t endless;            /* calls counted without a duration */
	uint64_t hidden; /* graph launches whose kernels are not known, where kernels are asked */
	struct sums_row *rows;
	size_t n_rows;
};

struct sums_kind {
	const char *report, *count_name;
	bool calls, kernels, memory; /* what is summed, */
	bool bytes;                  /* and of that the bytes: else its time */
	bool sizes;                  /* grid and block sizes apart */
	bool categories;             /* are the first label; and whole graphs are summed */
	bool places;                 /* apart: the report takes :place */
};

static const struct sums_kind kinds[] = {
	{ "cuda_api_sum", "Num Calls", .calls = true },
	{ "cuda_api_sum", "Num Calls", .calls = true, .places = true },
	{ "cuda_gpu_kern_sum", "Instances", .kernels = true },
	{ "cuda_gpu_kern_gb_sum", "Instances", .kernels = true, .sizes = true },
	{ "cuda_gpu_mem_time_sum", "Count", .memory = true },
	{ "cuda_gpu_mem_size_sum", "Count", .memory = true, .bytes = true },
	{ "cuda_gpu_sum", "Instances", .kernels = true, .memory = true, .categories = true },
	{ "cuda_api_gpu_sum", "Instances", .calls = true, .kernels = true, .memory = true,
	  .categories = true },
};

const struct sums_kind *sums_kind(const char *report, bool by_place)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!strcmp(kinds[i].report, report) && kinds[i].places == by_place)
			return &kinds[i];
	}
	return NULL;
}

enum table_type sums_type(const struct sums_kind *kind)
{
	return kind->bytes ? TABLE_MB : TABLE_DURATION;
}

size_t sums_labels(const struct sums_kind *kind, struct table_column into[SUMS_LABELS])
{
	bool operations = kind->memory || kind->categories;
	size_t n = 0;

	if (kind->sizes) {
		into[n++] = (struct table_column){ "GridXYZ", TABLE_TRIPLE };
		into[n++] = (struct table_column){ "BlockXYZ", TABLE_TRIPLE };
	}
	if (kind->categories)
		into[n++] = (struct table_column){ "Category", TABLE_TEXT };
	into[n++] = (struct table_column){ operations ? "Operation" : "Name", TABLE_TEXT };
	if (kind->places)
		into[n++] = (struct table_column){ "Place", TABLE_TEXT };
	return n;
}

void sums_add_labels(const struct sums_kind *kind, const struct sums_row *row, struct table *table)
{
	if (kind->sizes) {
		table_triple(table, row->grid);
		table_triple(table, row->block);
	}
	if (kind->categories)
		table_text(table, row->category);
	table_text(table, row->name);
	if (kind->places)
		table_text(table, row->place);
}

/* ---- events -------------------------------------------------------------------------------- */

static struct sum_group *group_of(struct sums *sums, const struct sum_group_key *key)
{
	return keyed_row_of(&sums->groups, &sums->last[key->what], key->id, key);
}

static void add_call(struct sums *sums, const struct call *call)
{
	struct sum_group_key key = { .what = SUM_OF_CALLS, .id = call->function->id };
	struct sum_group *group;

	if ((call->flags & CALL_NESTED) && !sums->writer.options.nested) {
		sums->nested++;
		return;
	}
	if (sums->places) {
		key.place = stack_places_number(sums->places, call->stack);
		sums->called++;
		sums->placeless += !call->stack;
	}
	group = group_of(sums, &key);
	group->function = call->function;
	group->count++;
	if (call_has_end(call))
		spread_add(&group->values, call_duration_ns(call));
	else
		sums->endless++;
}

static uint64_t value_of(const struct sums *sums, const struct activity *activity)
{
	return sums->kind->bytes ? activity->bytes : activity_duration_ns(activity);
}

static void add_activity(struct sums *sums, const struct activity *activity)
{
	const struct sums_kind *kind = sums->kind;
	struct sum_group_key key = { .what = activity->kind };
	struct sum_group *group;

	if (activity->kind == ACTIVITY_KERNEL) {
		if (!kind->kernels || !activity->kernel)
			return;
		key.id = activity->kernel->id;
	} else if (activity->kind == ACTIVITY_GRAPH_RUN) {
		sums->hidden += kind->kernels && !kind->categories;
		if (!kind->categories)
			return;
	} else {
		if (!kind->memory)
			return;
		key.id = activity->kind == ACTIVITY_COPY ? activity->direction : 0;
	}
	if (kind->sizes) {
		memcpy(key.grid, activity->grid, sizeof(key.grid));
		memcpy(key.block, activity->block, sizeof(key.block));
	}
	group = group_of(sums, &key);
	group->kernel = activity->kind == ACTIVITY_KERNEL ? activity->kernel : NULL;
	group->operation = operation_name(activity);
	group->count++;
	spread_add(&group->values, value_of(sums, activity));
}

static bool is_of_gpu(const struct sums_kind *kind)
{
	return kind->kernels || kind->memory;
}

static void sums_see(void *self, const struct event *event)
{
	struct sums *sums = self;

	if (event->type == EVENT_CALL && sums->kind->calls) {
		add_call(sums, event->call);
	} else if (event->type == EVENT_ACTIVITY && is_of_gpu(sums->kind)) {
		sums->has_source = true;
		add_activity(sums, event->activity);
	}
}

/* ---- rows ---------------------------------------------------------------------------------- */

static char *group_name(const struct sums *sums, const struct sum_group *group)
{
	struct buf name = { 0 };

	buf_puts(&name, group->operation ? group->operation : "");
	if (group->function)
		add_function_name(&name, group->function);
	if (group->kernel)
		add_kernel_name(&name, group->kernel, sums->writer.options.names);
	return name.data;
}

static void add_row(struct sums *sums, struct sum_group *group)
{
	struct sums_row *row = &sums->rows[sums->n_rows++];

	row->name = group_name(sums, group);
	row->category = group->function                         ? "CUDA_API"
	                : group->kernel                         ? "CUDA_KERNEL"
	                : group->key.what == ACTIVITY_GRAPH_RUN ? "CUDA_GRAPH"
	                                                        : "MEMORY_OPER";
	row->place = sums->places ? stack_places_label(sums->places, group->key.place) : NULL;
	memcpy(row->grid, group->key.grid, sizeof(row->grid));
	memcpy(row->block, group->key.block, sizeof(row->block));
	row->count = group->count;
	row->values = group->values;
	memset(&group->values, 0, sizeof(group->values));
}

int sums_compare_labels(const struct sums_row *a, const struct sums_row *b)
{
	int order = strcmp(a->name, b->name);

	if (!order)
		order = strcmp(a->category, b->category);
	if (!order && a->place && b->place)
		order = strcmp(a->place, b->place);
	if (!order)
		order = memcmp(a->grid, b->grid, sizeof(a->grid));
	return order ? order : memcmp(a->block, b->block, sizeof(a->block));
}

ORDER_BY(compare_labels, struct sums_row, OR_ELSE(sums_compare_labels));

ORDER_BY(compare_totals, struct sums_row, DOWN(values.sum), DOWN(count),
         OR_ELSE(sums_compare_labels));

/* Two modules with a function of the same name, two processes with the same kernel: one row. */
static void merge_rows(struct sums *sums)
{
	size_t n = 0;

	SORT(sums->rows, sums->n_rows, compare_labels);
	for (size_t i = 0; i < sums->n_rows; i++) {
		struct sums_row *row = &sums->rows[i], *last = n ? &sums->rows[n - 1] : NULL;

		if (last && !sums_compare_labels(last, row)) {
			last->count += row->count;
			spread_take(&last->values, &row->values);
			free(row->name);
		} else {
			sums->rows[n++] = *row;
		}
	}
	sums->n_rows = n;
	SORT(sums->rows, n, compare_totals);
}

struct sums_row *sums_rows(struct consumer *consumer, size_t *n)
{
	*n = ((struct sums *)consumer)->n_rows;
	return ((struct sums *)consumer)->rows;
}

bool sums_has_source(struct consumer *consumer)
{
	struct sums *sums = (struct sums *)consumer;

	return sums->kind->calls || sums->has_source;
}

/* ---- the table ----------------------------------------------------------------------------- */

#define COLUMNS_BEFORE 8 /* the labels */

static size_t make_columns(const struct sums_kind *kind, struct table_column *columns)
{
	enum table_type type = sums_type(kind);
	const struct table_column figures[COLUMNS_BEFORE] = {
		{ "Time", TABLE_PERCENT },
		{ kind->bytes ? "Total" : "Total Time", type },
		{ kind->count_name, TABLE_NUMBER },
		{ "Avg", type },
		{ "Med", type },
		{ "Min", type },
		{ "Max", type },
		{ "StdDev", type },
	};
	size_t skip = kind->bytes, n = COLUMNS_BEFORE - skip;

	memcpy(columns, figures + skip, n * sizeof(*columns));
	return n + sums_labels(kind, columns + n);
}

static void print_row(struct sums *sums, struct sums_row *row, double total)
{
	struct table *table = sums->writer.table;
	struct spread *values = &row->values;

	if (!sums->kind->bytes) {
		if (values->count && total > 0)
			table_real(table, 100 * (double)values->sum / total);
		else
			table_unknown(table);
	}
	TABLE_CELLS(table, TABLE_IF(values->count, values->sum), row->count);
	report_spread(table, values);
	sums_add_labels(sums->kind, row, table);
	table_end_row(table);
}

static void add_notes(struct sums *sums, bool exact, const struct run_info *run)
{
	struct table *table = sums->writer.table;

	if (is_of_gpu(sums->kind) && !sums->has_source)
		report_note_no_gpu_times(table, sums->writer.options.part, run);
	if (!sums_has_source(&sums->writer.consumer))
		return;
	if (!exact)
		report_note_median(table);
	report_note_nested(table, sums->nested);
	if (sums->places)
		report_note_no_stacks(table, run, sums->placeless, sums->called);
	report_note_whole_graphs(table, sums->hidden);
	table_note_if(table, sums->endless,
	              "calls without a duration, whose return was not recorded: %lu",
	              sums->endless);
	report_note_estimated(table, run);
}

static void print_table(void *self, struct table *table, const struct run_info *run)
{
	struct sums *sums = self;
	struct table_column columns[COLUMNS_BEFORE + SUMS_LABELS];
	size_t n = make_columns(sums->kind, columns);
	double total = 0;
	bool exact = true;

	report_begin(&sums->writer, run, NULL, columns, n);
	for (size_t i = 0; i < sums->n_rows; i++) {
		total += (double)sums->rows[i].values.sum;
		exact = exact && spread_is_exact(&sums->rows[i].values);
	}
	for (size_t i = 0; i < sums->n_rows; i++)
		print_row(sums, &sums->rows[i], total);
	add_notes(sums, exact, run);
}

static void make_rows(void *self, const struct run_info *run)
{
	struct sums *sums = self;

	sums->rows = xcalloc(sums->groups.n + 1, sizeof(*sums->rows));
	for (size_t i = 0; i < sums->groups.n; i++)
		add_row(sums, keyed_at(&sums->groups, i));
	merge_rows(sums);
}

static int sums_event(struct consumer *self, const struct event *event, struct err *err)
{
	sums_see(self, event);
	return 0;
}

static int sums_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	make_rows(self, run);
	return 0;
}

/* ---- life ---------------------------------------------------------------------------------- */

static void sums_clear(void *self)
{
	struct sums *sums = self;

	for (size_t i = 0; i < sums->n_rows; i++) {
		free(sums->rows[i].name);
		spread_free(&sums->rows[i].values);
	}
	free(sums->rows);
	for (size_t i = 0; i < sums->groups.n; i++)
		spread_free(&((struct sum_group *)keyed_at(&sums->groups, i))->values);
	keyed_free(&sums->groups);
	for (size_t what = 0; what <= SUM_OF_CALLS; what++)
		free(sums->last[what].row);
	stack_places_free(sums->places);
}

static void sums_free(struct consumer *self)
{
	sums_clear(self);
	free(self);
}

static const struct consumer_ops sums_ops = {
	.event = sums_event,
	.end = sums_end,
	.free = sums_free,
};

static void set_kind(struct sums *sums, const struct sums_kind *kind)
{
	sums->kind = kind;
	sums->places = kind->places ? stack_places_new() : NULL;
	sums->groups = (struct keyed){ .row_bytes = sizeof(struct sum_group),
		                       .key_bytes = sizeof(struct sum_group_key) };
}

struct consumer *sums_new(const struct sums_kind *kind, enum kernel_names names, bool nested)
{
	struct report_options options = { .names = names, .nested = nested };
	struct sums *sums = report_make(sizeof(*sums), &sums_ops, NULL, &options);

	set_kind(sums, kind);
	return &sums->writer.consumer;
}

static void sums_init(void *self)
{
	const struct report_writer *writer = self;

	set_kind(self, sums_kind(writer->report->name, writer->options.by_place));
}

const struct report_kind sums_report = {
	.bytes = sizeof(struct sums),
	.init = sums_init,
	.event = sums_see,
	.conclude = make_rows,
	.clear = sums_clear,
	.parts = { { .write = print_table } },
};
