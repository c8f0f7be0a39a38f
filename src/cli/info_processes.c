// SPDX-License-Identifier: MIT
#include "cli/info_processes.h"

#include <string.h>

#include "base/array.h"
#include "report/who_columns.h"
#include "table/table.h"

struct shown_process {
	struct contents_process process;
	struct who_words who;
};

#define AT(member) TABLE_AT(struct shown_process, process.member)

static const struct table_column process_columns[] = {
	{ "PID", TABLE_NUMBER, AT(process.pid), "pid" },
	{ "PROCESS", TABLE_WORDS, AT(process.comm), "comm" },
	{ "THREADS", TABLE_NUMBER, AT(threads), "threads" },
	{ "CALLS", TABLE_NUMBER, AT(calls), "calls" },
	{ "ON THE GPU", TABLE_NUMBER, AT(activities), "activities" },
	{ "ENDED", TABLE_WORDS, AT(ended), "ended" },
};

/* For people those that did nothing with CUDA, shells and the like, are a number. */
int info_add_processes(const struct contents *contents, const struct run_info *run,
                       struct buf *text, struct json *json, struct err *err)
{
	struct table_column all[ARRAY_SIZE(process_columns) + RUN_IDENTITY_WORDS];
	size_t n_columns = ARRAY_SIZE(process_columns);
	struct table *table =
		table_open(&(struct table_options){ .page = text, .json = json }, false);
	size_t others = 0;
	int rc;

	memcpy(all, process_columns, sizeof(process_columns));
	n_columns += who_columns(run, offsetof(struct shown_process, who), true, &all[n_columns]);
	table_begin(table, "processes", "PROCESSES", all, n_columns);
	for (size_t i = 0; i < contents->n_processes; i++) {
		struct shown_process shown = { .process = contents->processes[i] };

		who_words_of(run, shown.process.process.pid, shown.process.begin_ns, &shown.who);
		if (json || shown.process.calls || shown.process.activities)
			table_row(table, &shown);
		else
			others++;
	}
	if (run->identities_left_out)
		table_note(table, "of %llu processes it is not known who they are",
		           (unsigned long long)run->identities_left_out);
	if (others)
		table_note(table, "and %zu process%s without a CUDA call", others,
		           others == 1 ? "" : "es");
	rc = table_end(table, err);
	table_close(table);
	return rc;
}
