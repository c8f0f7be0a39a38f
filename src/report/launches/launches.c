// SPDX-License-Identifier: MIT
/*
 * The report `launches`: kernels by how often they were launched. What lies between launches is in
 * the account of time (`why`).
 */
#include <stdlib.h>

#include "report/launches/kernel_launches.h"
#include "base/array.h"
#include "report/reports.h"

struct launches {
	struct report_writer writer; /* first: what callers hold */
	struct stack_places *places; /* :place; else NULL */
	struct kernel_launches *kernels;
};

static void see_launches(void *self, const struct event *event)
{
	kernel_launches_event(((struct launches *)self)->kernels, event);
}

static void clear_launches(void *self)
{
	struct launches *launches = self;

	kernel_launches_free(launches->kernels);
	stack_places_free(launches->places);
}

static const struct table_column kernel_columns[] = {
	{ "PID", TABLE_NUMBER },
	{ "Launches", TABLE_NUMBER },
	{ "Captured", TABLE_NUMBER },
	{ "Per Second", TABLE_REAL },
	{ "Grid", TABLE_TRIPLE },
	{ "Block", TABLE_TRIPLE },
	{ "Of This Shape", TABLE_PERCENT },
	{ "Shapes", TABLE_NUMBER },
	{ "Kernel", TABLE_TEXT },
	{ "Place", TABLE_TEXT }, /* of :place */
};

static void write_shape(struct table *table, const struct kernel_row *row)
{
	const struct launch_shape *most = row->shapes;

	if (!row->n_shapes) {
		for (int i = 0; i < 4; i++)
			table_unknown(table);
		return;
	}
	table_triple(table, most->grid);
	table_triple(table, most->block);
	TABLE_CELLS(table, 100.0 * (double)most->launches / (double)row->launches, row->n_shapes);
}

static void write_launches(void *self, struct table *table, const struct run_info *run)
{
	struct launches *launches = self;
	const struct kernel_row *rows;
	uint64_t placeless = 0, all = 0;
	bool more_shapes = false;
	size_t n;

	report_begin(&launches->writer, run, "kernels", kernel_columns,
	             ARRAY_SIZE(kernel_columns) - !launches->places);
	rows = kernel_launches_rows(launches->kernels, &n);
	for (size_t i = 0; i < n; i++) {
		TABLE_CELLS(table, rows[i].process->pid, rows[i].launches, rows[i].captured,
		            rows[i].per_second);
		write_shape(table, &rows[i]);
		table_text(table, rows[i].graphs   ? "(whole graphs)"
		                  : rows[i].kernel ? rows[i].kernel->name
		                                   : "(not known)");
		if (launches->places)
			table_text(table, stack_places_label(launches->places, rows[i].key.place));
		table_end_row(table);
		all += rows[i].launches + rows[i].captured;
		placeless += rows[i].key.place ? 0 : rows[i].launches + rows[i].captured;
		more_shapes |= rows[i].other_shapes > 0;
	}
	table_note_if(table, n,
	              "Per Second: of the time from the process's first call to its last; Grid and "
	              "Block: the shape most used");
	if (launches->places)
		report_note_no_stacks(table, run, placeless, all);
	table_note_if(table, more_shapes, "Shapes: %d at most are told apart", SHAPES_MAX);
	report_note_refused(table, run);
	report_note_estimated(table, run);
}

static void init_launches(void *self)
{
	struct launches *launches = self;

	launches->places = launches->writer.options.by_place ? stack_places_new() : NULL;
	launches->kernels = kernel_launches_new(launches->places);
}

const struct report_kind launches_report = {
	.bytes = sizeof(struct launches),
	.init = init_launches,
	.event = see_launches,
	.clear = clear_launches,
	.parts = { { .write = write_launches } },
};
