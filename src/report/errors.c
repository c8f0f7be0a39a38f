// SPDX-License-Identifier: MIT
/* The report `errors`: which calls failed, how, how often and when. */
#include "analysis/errors.h"
#include "analysis/xids.h"
#include "cuda/error.h"
#include "cuda/driver_words.h"
#include "report/reports.h"

#define AT(member) TABLE_AT(struct error_row, member)

static const struct table_column columns[] = {
	{ "Count", TABLE_NUMBER, AT(count) },
	{ "First", TABLE_TIME, AT(first_ns) },
	{ "Last", TABLE_TIME, AT(last_ns) },
	{ "PID", TABLE_NUMBER, TABLE_VIA(struct error_row, process, pid) },
	{ "TID", TABLE_NUMBER, AT(tid) },
	{ "Function", TABLE_TEXT, TABLE_VIA(struct error_row, function, name) },
	{ "Code", TABLE_NUMBER },
	{ "Error", TABLE_TEXT },
};

static void write_row(struct table *table, const struct error_row *row)
{
	table_fields(table, row);
	TABLE_LAST(table, (uint32_t)row->code, cuda_error_name(row->function->layer, row->code));
}

/* What the driver said went wrong when calls failed. */
static void note_xids(struct table *table, const struct xids *xids)
{
	uint64_t more;
	size_t n;
	const struct xid_row *rows = xids_rows(xids, &n, &more);

	for (size_t i = 0; i < n; i++) {
		const struct xid *xid = xid_find(rows[i].number);

		if (rows[i].failed)
			table_note(table, "%s failed in process %u with Xid %u%s%s: 'report xids'",
			           rows[i].function->name, rows[i].pid, rows[i].number,
			           xid ? ", " : "", xid ? xid->name : "");
	}
}

static void write_errors(void *self, struct table *table, const struct run_info *run)
{
	struct report_writer *writer = self;
	uint64_t harmless = 0;
	size_t n;
	const struct error_row *rows = errors_rows(writer->analysis, &n);

	for (size_t i = 0; i < n; i++) {
		write_row(table, &rows[i]);
		if (cuda_error_is_shutdown(rows[i].function->layer, rows[i].code))
			harmless += rows[i].count;
	}
	if (n)
		table_note(table, "PID and TID are of the first");
	else if (run->returns)
		table_note(table, "no call failed");
	else
		table_note(table, "no results: this trace was recorded without returns");
	note_xids(table, writer->xids);
	report_note_shutdown(table, harmless);
	report_note_refused(table, run);
	report_note_estimated(table, run);
}

const struct report_kind errors_report = {
	.analysis = errors_new,
	.xids = true,
	.parts = { { NULL, NULL, TABLE_COLUMNS(columns), write_errors } },
};
