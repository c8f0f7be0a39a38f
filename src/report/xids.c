// SPDX-License-Identifier: MIT
/* The report `xids`: what the driver said went wrong, and which calls failed of it. */
#include "analysis/xids.h"
#include "cuda/error.h"
#include "cuda/driver_words.h"
#include "report/driver_rows.h"
#include "report/reports.h"

#define AT(member) TABLE_AT(struct xid_row, member)

const struct table_column xid_columns[XID_COLUMNS] = {
	{ "Time", TABLE_TIME, AT(time_ns) },
	{ "PID", TABLE_NUMBER, AT(pid), .flags = TABLE_ZERO },
	{ "Xid", TABLE_NUMBER, AT(number) },
	{ "Name", TABLE_WORDS },
	{ "Failed", TABLE_NUMBER, AT(failed), .flags = TABLE_NO_ZERO },
	{ "Function", TABLE_WORDS, TABLE_VIA(struct xid_row, function, name) },
	{ "Error", TABLE_WORDS },
	{ "Message", TABLE_WORDS },
};

static void write_row(struct table *table, const struct xid_row *row)
{
	const struct xid *xid = xid_find(row->number);

	table_fields(table, row);
	table_text(table, xid ? xid->name : NULL);
	table_fields(table, row);
	TABLE_LAST(table, row->function ? cuda_error_name(row->function->layer, row->code) : NULL,
	           row->text[0] ? row->text : NULL);
}

static bool came_before(const struct xid_row *rows, size_t at)
{
	for (size_t i = 0; i < at; i++) {
		if (rows[i].number == rows[at].number)
			return true;
	}
	return false;
}

size_t xid_rows_write(struct table *table, const struct xids *xids)
{
	uint64_t more;
	size_t n;
	const struct xid_row *rows = xids_rows(xids, &n, &more);

	for (size_t i = 0; i < n; i++)
		write_row(table, &rows[i]);
	for (size_t i = 0; i < n; i++) {
		const struct xid *xid = xid_find(rows[i].number);

		if (xid && !came_before(rows, i))
			table_note(table, "%u: %s", xid->number, xid->meaning);
	}
	table_note_if(table, more, "%lu more Xids", more);
	return n;
}

static void write_xids(void *self, struct table *table, const struct run_info *run)
{
	struct report_writer *writer = self;

	if (!xid_rows_write(table, writer->xids))
		table_note(table,
		           "no Xids were recorded: 'cuscope record --kernel' looks for them");
}

const struct report_kind xids_report = {
	.xids = true,
	.parts = { { NULL, NULL, TABLE_COLUMNS(xid_columns), write_xids } },
};
