// SPDX-License-Identifier: MIT
/* The report `memory`: by kind, by the function and place that made it, and the biggest that
 * stayed.
 */
#include <string.h>

#include "report/memory_use.h"
#include "analysis/place.h"
#include "base/array.h"
#include "base/buf.h"
#include "report/reports.h"

/* ---- by kind ------------------------------------------------------------------------------- */

#define OF_KIND(member) TABLE_VIA(struct memory_kind_row, totals, member)

static const struct table_column kind_columns[] = {
	{ "PID", TABLE_NUMBER, TABLE_VIA(struct memory_kind_row, process, pid) },
	{ "Count", TABLE_NUMBER, OF_KIND(allocated.count) },
	{ "Allocated", TABLE_BYTES, OF_KIND(allocated.bytes) },
	{ "Freed", TABLE_BYTES, OF_KIND(freed.bytes) },
	{ "By Context", TABLE_BYTES, OF_KIND(context.bytes) },
	{ "By Exit", TABLE_BYTES, OF_KIND(exit.bytes) },
	{ "Live", TABLE_BYTES, OF_KIND(live.bytes) },
	{ "Peak", TABLE_BYTES, OF_KIND(peak_bytes) },
	{ "Peak At", TABLE_TIME, OF_KIND(peak_ns), .flags = TABLE_ZERO },
	{ "Failed", TABLE_NUMBER, OF_KIND(failed.count) },
	{ "Kind", TABLE_TEXT },
};

static void write_kind(struct table *table, const struct memory_kind_row *row)
{
	table_fields(table, row);
	TABLE_LAST(table, row->kind == MEMORY_NONE ? "all" : api_memory_name(row->kind));
}

static void note_what_is_not_followed(struct table *table, const struct memory *memory)
{
	const struct memory_totals *all = memory_totals(memory, MEMORY_NONE);
	uint64_t unknown = memory_unknown_frees(memory);

	table_note_if(table, unknown, "%lu free%s of memory whose allocation was not recorded",
	              unknown, unknown == 1 ? "" : "s");
	table_note_if(table, all->replaced.count,
	              "%lu allocation%s whose free was not seen: the address was given out again",
	              all->replaced.count, all->replaced.count == 1 ? "" : "s");
	table_note_if(table, all->untracked.count,
	              "only Count and Allocated have %lu allocation%s that had no recorded return, "
	              "or came while 65,536 others were live",
	              all->untracked.count, all->untracked.count == 1 ? "" : "s");
}

static void write_kinds(void *self, struct table *table, const struct run_info *run)
{
	struct report_writer *writer = self;
	const struct memory *memory = memory_use_memory(writer->analysis);
	size_t n;
	const struct memory_kind_row *rows = memory_use_kinds(writer->analysis, &n);

	for (size_t i = 0; i < n; i++)
		write_kind(table, &rows[i]);
	table_note_if(table, n,
	              "By Context, By Exit: never freed, gone with a context or device reset, or "
	              "with the process");
	note_what_is_not_followed(table, memory);
	report_note_estimated(table, run);
}

/* ---- by function --------------------------------------------------------------------------- */

#define OF_FUNCTION(member) TABLE_VIA(struct memory_function_row, totals, member)

static const struct table_column function_columns[] = {
	{ "Count", TABLE_NUMBER, OF_FUNCTION(allocated.count) },
	{ "Allocated", TABLE_BYTES, OF_FUNCTION(allocated.bytes) },
	{ "Freed", TABLE_BYTES, OF_FUNCTION(freed.bytes) },
	{ "By Exit", TABLE_BYTES, OF_FUNCTION(exit.bytes) },
	{ "Live", TABLE_BYTES, OF_FUNCTION(live.bytes) },
	{ "Peak", TABLE_BYTES, OF_FUNCTION(peak_bytes) },
	{ "Failed", TABLE_NUMBER, OF_FUNCTION(failed.count) },
	{ "Failed Size", TABLE_BYTES, OF_FUNCTION(failed.bytes) },
	{ "Kind", TABLE_TEXT },
	{ "Function", TABLE_TEXT, TABLE_VIA(struct memory_function_row, function, name) },
};

static void write_functions(void *self, struct table *table, const struct run_info *run)
{
	struct report_writer *writer = self;
	size_t n;
	const struct memory_function_row *rows = memory_use_functions(writer->analysis, &n);

	for (size_t i = 0; i < n; i++) {
		table_fields(table, &rows[i]);
		table_text(table, api_memory_name(api_memory(rows[i].function->api)));
		table_row(table, &rows[i]);
	}
}

/* ---- by place ------------------------------------------------------------------------------ */

#define OF_PLACE(member) TABLE_AT(struct memory_place_row, totals.member)

static const struct table_column place_columns[] = {
	{ "Count", TABLE_NUMBER, OF_PLACE(allocated.count) },
	{ "Allocated", TABLE_BYTES, OF_PLACE(allocated.bytes) },
	{ "Freed", TABLE_BYTES, OF_PLACE(freed.bytes) },
	{ "By Exit", TABLE_BYTES, OF_PLACE(exit.bytes) },
	{ "Live", TABLE_BYTES, OF_PLACE(live.bytes) },
	{ "Peak", TABLE_BYTES, OF_PLACE(peak_bytes) },
	{ "Function", TABLE_TEXT, TABLE_VIA(struct memory_place_row, function, name) },
	{ "Place", TABLE_TEXT },
};

/* Only of a recording with stacks; those that stayed are first. */
static void write_places(void *self, struct table *table, const struct run_info *run)
{
	struct report_writer *writer = self;
	uint64_t all = 0, placeless = 0;
	size_t n;
	const struct memory_place_row *rows = memory_use_places(writer->analysis, &n);

	if (!n)
		return;
	report_table(writer, "places", "By the place that allocated, what was never freed first",
	             TABLE_COLUMNS(place_columns));
	for (size_t i = 0; i < n; i++) {
		table_fields(table, &rows[i]);
		table_text(table, rows[i].place);
		table_row(table, &rows[i]);
		all += rows[i].totals.allocated.count;
		placeless +=
			strcmp(rows[i].place, PLACE_NO_STACK) ? 0 : rows[i].totals.allocated.count;
	}
	report_note_no_stacks(table, run, placeless, all);
}

/* ---- what no call holds --------------------------------------------------------------------- */

static const struct table_column nvml_columns[] = {
	{ "PID", TABLE_NUMBER },     { "At", TABLE_TIME },       { "By NVML", TABLE_BYTES },
	{ "By Calls", TABLE_BYTES }, { "Of NCCL", TABLE_BYTES }, { "Rest", TABLE_BYTES },
	{ "Moment", TABLE_TEXT },
};

static const char *const moments[RUN_MEMORIES] = {
	[RUN_MEMORY_FIRST] = "first", [RUN_MEMORY_MOST] = "most", [RUN_MEMORY_LAST] = "last"
};

static void write_nvml_row(struct report_writer *writer, const struct memory_nvml_row *row)
{
	struct table *table = writer->table;

	TABLE_CELLS(table, row->process->pid);
	report_time(writer, row->time_ns);
	TABLE_CELLS(table, row->beyond.gpu_bytes, row->beyond.by_calls, row->beyond.nccl_bytes);
	if (row->beyond.rest_bytes < 0)
		table_unknown(table);
	else
		table_u64(table, (uint64_t)row->beyond.rest_bytes);
	TABLE_LAST(table, moments[row->moment]);
}

/* Of a part of the time, or of some calls, what calls hold is not known. */
static void write_nvml(void *self, struct table *table, const struct run_info *run)
{
	struct report_writer *writer = self;
	bool older = false,
	     known = !writer->options.from_ns && !writer->options.to_ns && !run->chosen;
	size_t n;
	const struct memory_nvml_row *rows = memory_use_nvml(writer->analysis, &n);

	if (!n || !known)
		return;
	report_table(writer, "no_call", "Memory that no call holds", TABLE_COLUMNS(nvml_columns));
	for (size_t i = 0; i < n; i++) {
		write_nvml_row(writer, &rows[i]);
		older |= !rows[i].beyond.whole;
	}
	table_note(table, "Rest: contexts, code, local memory, what pools keep; NVML tells "
	                  "no parts, and was asked every 3 s");
	table_note_if(table, older,
	              "of processes that NVML knew before the recording, Rest has what they "
	              "allocated before");
}

/* ---- what stayed --------------------------------------------------------------------------- */

static const struct table_column kept_columns[] = {
	{ "Size", TABLE_BYTES },   { "Kind", TABLE_TEXT },     { "Address", TABLE_TEXT },
	{ "Made At", TABLE_TIME }, { "PID", TABLE_NUMBER },    { "TID", TABLE_NUMBER },
	{ "Stayed", TABLE_TEXT },  { "Function", TABLE_TEXT }, { "Place", TABLE_TEXT },
};

static void write_kept(void *self, struct table *table, const struct run_info *run)
{
	struct report_writer *writer = self;
	const struct kept_allocation *rows;
	AT_END(buf_free) struct buf address = { 0 };
	bool places;
	size_t n;

	memory_use_places(writer->analysis, &n);
	places = n > 0;
	report_table(writer, "kept", "Biggest that were never freed", kept_columns,
	             ARRAY_SIZE(kept_columns) - !places);
	rows = memory_use_kept(writer->analysis, &n);
	for (size_t i = 0; i < n; i++) {
		const struct memory_allocation *a = &rows[i].allocation;

		buf_reset(&address);
		buf_hex(&address, a->address);
		TABLE_CELLS(table, a->bytes, api_memory_name(a->kind), address.data);
		report_time(writer, a->time_ns);
		TABLE_CELLS(table, a->process->pid, a->tid,
		            rows[i].exited ? "until its exit" : "live at the end",
		            a->function->name);
		if (places)
			table_text(table, memory_use_place(writer->analysis, a));
		table_end_row(table);
	}
	table_note_if(table, n == MEMORY_BIGGEST, "at most %d are kept", MEMORY_BIGGEST);
}

const struct report_kind memory_report = {
	.analysis = memory_use_new,
	.parts = { { "kinds", NULL, TABLE_COLUMNS(kind_columns), write_kinds },
	           { "functions", "By the function that allocated", TABLE_COLUMNS(function_columns),
	             write_functions },
	           { .write = write_nvml },
	           { .write = write_places },
	           { .write = write_kept } },
};
