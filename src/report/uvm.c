// SPDX-License-Identifier: MIT
/* The report `uvm`: faults and migrations of managed memory, and the allocations that they hit. */
#include "analysis/managed_use.h"
#include "analysis/place.h"
#include "report/driver_rows.h"
#include "report/reports.h"

#define AT(member) TABLE_AT(struct managed_row, member)

const struct table_column managed_columns[MANAGED_COLUMNS] = {
	{ "PID", TABLE_NUMBER, TABLE_VIA(struct managed_row, process, pid) },
	{ "Count", TABLE_NUMBER, AT(count) },
	{ "Bytes", TABLE_BYTES, AT(bytes), .flags = TABLE_NO_ZERO },
	{ "Med Bytes", TABLE_BYTES },
	{ "Time", TABLE_DURATION, AT(time_ns), .flags = TABLE_NO_ZERO },
	{ "First", TABLE_TIME, AT(first_ns) },
	{ "Last", TABLE_TIME, AT(last_ns) },
	{ "Event", TABLE_TEXT },
};

static void write_event(struct table *table, const struct managed_row *row)
{
	struct managed event = row->event;
	char name[MANAGED_NAME];

	event.sum = false;
	table_fields(table, row);
	table_known(table, row->bytes != 0, managed_median(row));
	table_fields(table, row);
	TABLE_LAST(table, managed_name(&event, name));
}

static bool is_of_memory(const struct managed_row *row)
{
	return row->event.kind <= MANAGED_FAULT_BATCH;
}

size_t managed_rows_write(struct table *table, struct consumer *managed_use)
{
	uint64_t dropped = managed_use_dropped(managed_use);
	bool unknown = false;
	size_t n, shown = 0;
	const struct managed_row *rows = managed_use_rows(managed_use, &n);

	for (size_t i = 0; i < n; i++) {
		if (!is_of_memory(&rows[i]))
			continue;
		write_event(table, &rows[i]);
		unknown |= !rows[i].process->pid && rows[i].event.kind != MANAGED_FAULT_BATCH;
		shown++;
	}
	table_note_if(table, shown, "Med Bytes: half of them have at most so many");
	table_note_if(table, unknown,
	              "PID 0: whose memory it is, is not known; it was used before the trace "
	              "began, and only by a GPU since");
	table_note_if(table, dropped, "%lu more events had no room", dropped);
	return shown;
}

static void write_events(void *self, struct table *table, const struct run_info *run)
{
	struct report_writer *writer = self;

	if (!managed_rows_write(table, writer->analysis))
		table_note(table, "no faults and migrations of managed memory were recorded: "
		                  "'cuscope record --kernel' does that");
}

#define OF(member) TABLE_AT(struct managed_allocation, member)

static const struct table_column allocation_columns[] = {
	{ "PID", TABLE_NUMBER, TABLE_VIA(struct managed_allocation, process, pid) },
	{ "CPU Faults", TABLE_NUMBER, OF(cpu_faults), .flags = TABLE_NO_ZERO },
	{ "GPU Faults", TABLE_NUMBER, OF(gpu_faults), .flags = TABLE_NO_ZERO },
	{ "To GPU", TABLE_BYTES, OF(to_gpu_bytes), .flags = TABLE_NO_ZERO },
	{ "To CPU", TABLE_BYTES, OF(to_cpu_bytes), .flags = TABLE_NO_ZERO },
	{ "Evicted", TABLE_BYTES, OF(evicted_bytes), .flags = TABLE_NO_ZERO },
	{ "Thrashing", TABLE_NUMBER, OF(thrashing), .flags = TABLE_NO_ZERO },
	{ "Address", TABLE_FIGURE },
	{ "Size", TABLE_BYTES, OF(bytes), .flags = TABLE_ZERO },
	{ "Function", TABLE_TEXT },
	{ "Place", TABLE_TEXT },
};

static void write_allocation(struct table *table, const struct managed_allocation *row,
                             struct buf *text)
{
	table_fields(table, row);
	buf_reset(text);
	buf_hex(text, row->address);
	table_text(table, row->function ? text->data : NULL);
	table_fields(table, row);
	table_text(table, row->function ? row->function->name : NULL);
	buf_reset(text);
	place_label(place_of(row->stack), text);
	TABLE_LAST(table, row->stack ? text->data : NULL);
}

static void write_allocations(void *self, struct table *table, const struct run_info *run)
{
	struct report_writer *writer = self;
	struct buf text = { 0 };
	bool unknown = false;
	size_t n;
	const struct managed_allocation *rows = managed_use_allocations(writer->analysis, &n);

	for (size_t i = 0; i < n; i++) {
		write_allocation(table, &rows[i], &text);
		unknown |= !rows[i].function;
	}
	buf_free(&text);
	table_note_if(table, unknown,
	              "without a function: no call that made this memory was recorded");
}

const struct report_kind uvm_report = {
	.analysis = managed_use_new,
	.parts = { { "events", NULL, TABLE_COLUMNS(managed_columns), write_events },
	           { "allocations", "By allocation, those that moved most first",
	             TABLE_COLUMNS(allocation_columns), write_allocations } },
};
