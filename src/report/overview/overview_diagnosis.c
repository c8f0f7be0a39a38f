// SPDX-License-Identifier: MIT
/* The begin of the overview: what is wrong, in sentences, and for programs in values, too. */
#include "report/overview/overview.h"
#include "table/words.h"

#define WIDTH  100 /* of sentences that are not for a terminal */
#define BEFORE 4

static void write_sentence(struct table *table, const char *text)
{
	size_t width = words_width(table, BEFORE, WIDTH - BEFORE);
	struct buf line = { 0 };
	bool more = true;

	while (more) {
		more = words_line(&text, width, &line);
		table_text(table, line.data);
		table_end_row(table);
	}
	buf_free(&line);
}

static int write_sentences(struct overview *overview, const struct diagnosis *diagnosis,
                           struct err *err)
{
	static const struct table_column columns[] = { { "Diagnosis", TABLE_WORDS } };
	struct table *table = overview->writer.table;
	char title[160];

	report_title(overview->writer.report, title, sizeof(title));
	table_begin(table, "diagnosis", title, TABLE_COLUMNS(columns));
	table_whole(table);
	for (size_t i = 0; i < diagnosis->n; i++)
		write_sentence(table, diagnosis->sentence[i].data);
	return table_end(table, err);
}

static const struct table_column columns[] = {
	{ "Rule", TABLE_TEXT },       { "Healthy", TABLE_TEXT },    { "GPU", TABLE_NUMBER },
	{ "Time", TABLE_DURATION },   { "Idle", TABLE_PERCENT },    { "For This", TABLE_PERCENT },
	{ "Line", TABLE_TEXT },       { "In Line", TABLE_PERCENT }, { "State", TABLE_TEXT },
	{ "PID", TABLE_NUMBER },      { "TID", TABLE_NUMBER },      { "Samples", TABLE_NUMBER },
	{ "Sampled", TABLE_PERCENT }, { "Trust", TABLE_TEXT },      { "Try", TABLE_TEXT },
};

static void write_share(struct table *table, bool known, double share)
{
	if (known)
		table_real(table, share);
	else
		table_unknown(table);
}

static void write_row(struct table *table, const struct diagnosis_row *row)
{
	const struct gap_sampling *known = &row->known;
	bool thread = known->process && !known->several;

	table_text(table, row->rule);
	table_text(table, !row->judged ? NULL : row->healthy ? "yes" : "no");
	table_known(table, row->of_gpu, row->device);
	table_u64(table, row->time_ns);
	write_share(table, row->of_gpu, row->idle);
	write_share(table, row->of_gpu, row->reason);
	table_text(table, row->place);
	write_share(table, row->place, row->place_share);
	table_text(table, row->state);
	table_known(table, thread, thread ? known->process->pid : 0);
	table_known(table, thread, known->tid);
	table_u64(table, known->samples);
	write_share(table, known->gap_ns, gap_host_covered(known));
	table_text(table, gap_trust_name(row->trust));
	table_text(table, row->hint);
	table_end_row(table);
}

static int write_values(struct overview *overview, const struct diagnosis *diagnosis,
                        struct err *err)
{
	struct table *table = overview->writer.table;

	if (table_options(table)->form == TABLE_FORM_TEXT)
		return 0;
	table_begin(table, "diagnosis_values", "The same in values", TABLE_COLUMNS(columns));
	table_whole(table);
	for (size_t i = 0; i < diagnosis->n_rows; i++)
		write_row(table, &diagnosis->rows[i]);
	return table_end(table, err);
}

int overview_diagnosis(struct overview *overview, const struct run_info *run, struct err *err)
{
	const struct report_options *options = &overview->writer.options;
	struct diagnosis_run about = { .run = run,
		                       .tally = overview->tally,
		                       .duration_ns = overview->duration_ns,
		                       .begin_ns = run->begin_ns,
		                       .part = options->part,
		                       .chosen = options->chosen };
	struct diagnosis diagnosis;
	int rc;

	diagnoser_conclude(overview->diagnoser, &about, &diagnosis);
	rc = write_sentences(overview, &diagnosis, err);
	rc = rc ? rc : write_values(overview, &diagnosis, err);
	diagnosis_free(&diagnosis);
	return rc;
}
