// SPDX-License-Identifier: MIT
/*
 * The report `findings`: what costs time, the most first. Each has what was seen, how the loss is
 * estimated, an example and what to try. Rules that could not be judged are named.
 */
#include "report/findings/findings.h"

#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "report/names.h"
#include "report/reports.h"
#include "table/words.h"

#define WIDTH       100 /* of text that is not for a terminal */
#define BEFORE_TEXT 17  /* columns before it: "  12  estimate  " and one to spare */
#define NAME_WIDTH  120 /* of a kernel, for people */

/* ---- what costs time ----------------------------------------------------------------------- */

static const struct table_column columns[] = {
	{ "No", TABLE_NUMBER },     { "Time Lost", TABLE_DURATION }, { "Of Run", TABLE_PERCENT },
	{ "Count", TABLE_NUMBER },  { "PID", TABLE_NUMBER },         { "Device", TABLE_NUMBER },
	{ "Example", TABLE_TIME },  { "TID", TABLE_NUMBER },         { "Rule", TABLE_TEXT },
	{ "Finding", TABLE_WORDS },
};

static void write_row(struct report_writer *writer, const struct finding *finding, size_t number)
{
	struct table *table = writer->table;

	table_u64(table, number);
	table_known(table, finding->lost_known, finding->lost_ns);
	if (finding->lost_known && finding->span_ns)
		table_real(table, 100 * (double)finding->lost_ns / (double)finding->span_ns);
	else
		table_unknown(table);
	table_u64(table, finding->count);
	table_u64(table, finding->process->pid);
	table_known(table, finding->of_device, finding->device);
	if (finding->has_example)
		report_time(writer, finding->example.begin_ns);
	else
		table_unknown(table);
	table_known(table, finding->example.tid, finding->example.tid);
	table_text(table, finding->rule);
	table_text(table, finding->title);
	table_end_row(table);
}

static int write_findings(struct report_writer *writer, const struct run_info *run,
                          const struct finding *rows, size_t n, struct err *err)
{
	struct table *table = writer->table;

	report_begin(writer, run, "findings", TABLE_COLUMNS(columns));
	for (size_t i = 0; i < n; i++)
		write_row(writer, &rows[i], i + 1);
	if (!n)
		table_note(table, "nothing found");
	else
		table_note(table,
		           "Of Run: of the time from the process's first call or work on a "
		           "GPU to its last; findings can share a cause, so that their times "
		           "do not add up");
	report_note_estimated(writer->table, run);
	return table_end(table, err);
}

/* ---- the evidence -------------------------------------------------------------------------- */

static const struct table_column detail_columns[] = {
	{ "No", TABLE_NUMBER },
	{ "About", TABLE_TEXT },
	{ "Text", TABLE_WORDS },
};

/* One row; for people as many as the text has lines. */
static void write_detail(struct report_writer *writer, size_t number, const char *about,
                         const char *text)
{
	struct table *table = writer->table;
	size_t width = words_width(table, BEFORE_TEXT, WIDTH - BEFORE_TEXT);
	struct buf line = { 0 };
	bool more;

	table_u64(table, number);
	table_text(table, about);
	for (;;) {
		more = words_line(&text, width, &line);
		table_text(table, line.data);
		table_end_row(table);
		if (!more)
			break;
		table_text(table, "");
		table_text(table, "");
	}
	buf_free(&line);
}

static void add_kernel(const struct kernel *kernel, bool for_people, struct buf *out)
{
	if (for_people)
		text_add_name(out, kernel->name, NAME_WIDTH);
	else
		buf_puts(out, kernel->name);
}

/* "cuLaunchKernel of vectorAdd", "cudaMemcpy of 2.00 KiB"; of the GPU alone "vectorAdd". */
static void add_what(const struct finding_example *example, bool for_people, struct buf *out)
{
	if (example->function)
		add_function_name(out, example->function);
	else if (example->kernel)
		add_kernel(example->kernel, for_people, out);
	else if (example->bytes)
		buf_puts(out, "a copy");
	if (example->function && example->kernel) {
		buf_puts(out, " of ");
		add_kernel(example->kernel, for_people, out);
	}
	if (example->bytes) {
		buf_puts(out, " of ");
		buf_bytes(out, example->bytes);
	}
	if (example->function || example->kernel || example->bytes)
		buf_puts(out, ", ");
}

/* "at 5.123 ms in thread 4242: cuLaunchKernel of vectorAdd, 12.00 us, lost 3.00 us" */
static void add_example(const struct finding *finding, const struct run_info *run, bool for_people,
                        struct buf *out)
{
	const struct finding_example *example = &finding->example;
	uint64_t at_ns = example->begin_ns > run->begin_ns ? example->begin_ns - run->begin_ns : 0;

	buf_puts(out, "at ");
	buf_fixed(out, (at_ns + 500) / 1000, 3);
	buf_puts(out, " ms");
	if (example->tid)
		buf_printf(out, " in thread %u", example->tid);
	else
		buf_printf(out, " on GPU %u", finding->device);
	buf_puts(out, ": ");
	add_what(example, for_people, out);
	buf_duration(out, example->duration_ns);
	if (example->cost_ns && example->cost_ns != example->duration_ns) {
		buf_puts(out, ", lost ");
		buf_duration(out, example->cost_ns);
	}
}

#define LINES_TOLD 3
#define TOLD_SHARE 5 /* percent, from which on a line beside the first is told of */

/* "60 % in train (train.py:95); 40 % in test (train.py:120); 98 % of it is known" */
static void add_lines(const struct finding *finding, struct buf *out)
{
	for (size_t i = 0; i < finding->n_lines && i < LINES_TOLD; i++) {
		const struct finding_line *line = &finding->lines[i];

		if (i && line->share < TOLD_SHARE)
			break;
		buf_printf(out, "%s%.0f %% in %s", i ? "; " : "", line->share, line->line);
	}
	if (finding->walked < 99.5)
		buf_printf(out, "; the calls of %.0f %% were recorded with their stacks",
		           finding->walked);
}

static int write_details(struct report_writer *writer, const struct run_info *run,
                         const struct finding *rows, size_t n, struct err *err)
{
	struct table *table = writer->table;
	bool for_people = table_options(table)->form == TABLE_FORM_TEXT;
	size_t top = table_options(table)->top;
	struct buf example = { 0 };

	table_begin(table, "details", "What was seen, and what to try",
	            TABLE_COLUMNS(detail_columns));
	table_whole(table);
	for (size_t i = 0; i < n && (!top || i < top); i++) {
		write_detail(writer, i + 1, "seen", rows[i].evidence);
		if (rows[i].has_example) {
			buf_reset(&example);
			add_example(&rows[i], run, for_people, &example);
			write_detail(writer, i + 1, "example", example.data);
		}
		if (rows[i].n_lines) {
			buf_reset(&example);
			add_lines(&rows[i], &example);
			write_detail(writer, i + 1, "where", example.data);
		}
		write_detail(writer, i + 1, "estimate", rows[i].estimate);
		write_detail(writer, i + 1, "try", rows[i].suggestion);
	}
	buf_free(&example);
	return table_end(table, err);
}

/* ---- lines of code ------------------------------------------------------------------------- */

static const struct table_column line_columns[] = {
	{ "No", TABLE_NUMBER },    { "Cost", TABLE_DURATION }, { "Share", TABLE_PERCENT },
	{ "Count", TABLE_NUMBER }, { "Line", TABLE_TEXT },
};

/* For programs; people have them beside the evidence. */
static int write_lines(struct report_writer *writer, const struct finding *rows, size_t n,
                       struct err *err)
{
	struct table *table = writer->table;
	size_t any = 0;

	for (size_t i = 0; i < n; i++)
		any += rows[i].n_lines;
	if (!any || table_options(table)->form == TABLE_FORM_TEXT)
		return 0;
	table_begin(table, "lines", "Lines of code", TABLE_COLUMNS(line_columns));
	table_whole(table);
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < rows[i].n_lines; k++) {
			table_u64(table, i + 1);
			table_u64(table, rows[i].lines[k].cost_ns);
			table_real(table, rows[i].lines[k].share);
			table_u64(table, rows[i].lines[k].count);
			table_text(table, rows[i].lines[k].line);
			table_end_row(table);
		}
	}
	return table_end(table, err);
}

/* ---- what is not known --------------------------------------------------------------------- */

static const struct table_column unjudged_columns[] = {
	{ "Rule", TABLE_TEXT },
	{ "Finding", TABLE_TEXT },
	{ "Why", TABLE_WORDS },
};

static int write_unjudged(struct report_writer *writer, const struct run_info *run, struct err *err)
{
	struct table *table = writer->table;
	size_t n, without = findings_without_gpu_times(writer->analysis);
	const struct finding_unjudged *rows;

	rows = findings_unjudged(writer->analysis, &n);
	table_begin(table, "not_judged", "Rules that could not be judged",
	            TABLE_COLUMNS(unjudged_columns));
	table_whole(table);
	for (size_t i = 0; i < n; i++) {
		table_text(table, rows[i].rule);
		table_text(table, rows[i].title);
		table_text(table, rows[i].why);
		table_end_row(table);
	}
	if (without)
		table_note(table,
		           "processes without GPU times, of which only calls were judged: %zu",
		           without);
	report_note_gpu_lost(table, run);
	report_note_unjoined(&writer->options);
	table_note(table, "rules: %zu, judged: %zu", findings_rules(), findings_rules() - n);
	return table_end(table, err);
}

static int write_all(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct report_writer *writer = (struct report_writer *)self;
	const struct finding *rows;
	size_t n;
	int rc;

	rows = findings_rows(writer->analysis, run, &n);
	rc = write_findings(writer, run, rows, n, err);
	if (!rc)
		rc = write_details(writer, run, rows, n, err);
	rc = rc ? rc : write_lines(writer, rows, n, err);
	return rc ? rc : write_unjudged(writer, run, err);
}

static const struct consumer_ops ops = {
	.metrics = true, .event = report_feed, .end = write_all, .free = report_free
};

struct consumer *findings_report_new(const struct report *report,
                                     const struct report_options *options)
{
	return report_of(findings_new(options->work), &ops, report, options);
}
