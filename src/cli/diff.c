// SPDX-License-Identifier: MIT
/* `cuscope diff`: two traces side by side. */
#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/missed.h"
#include "base/buf.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "page/page.h"
#include "report/diff/diff.h"

struct diff_command {
	struct cli_range range;
	struct table_options table;
	const char *paths[DIFF_SIDES];
	const char **names;
	size_t n_paths, n_names;
	const char *color;
	bool nested;
	struct cli_page page;
};

/* ---- options ------------------------------------------------------------------------------- */

static const struct option_row rows[] = {
	{ .title = "What is shown:", .order = 2 },
	CLI_TOP_ROW(struct diff_command, table.top),
	{ "nested", 0, NULL, "also the calls that other calls made", OPTION_YES,
	  offsetof(struct diff_command, nested) },
	{ .title = "Output:", .order = 3 },
	CLI_TABLE_FORMAT_ROW(struct diff_command, table.form),
	CLI_COLOR_ROW(struct diff_command, color),
	{ "output", 'o', "FILE", "FILE.html: one page for a browser, with both files' timelines",
	  OPTION_TEXT, offsetof(struct diff_command, page.path) },
	CLI_FORCE_ROW(struct diff_command, page.force, "overwrite a file that exists"),
	CLI_MODE_ROW(struct diff_command, page.mode),
};

static bool diff_word(const struct argp_state *state, void *into, char *word)
{
	struct diff_command *o = into;

	if (o->n_paths < DIFF_SIDES)
		o->paths[o->n_paths++] = word;
	else
		option_add_text(&o->names, &o->n_names, word);
	return true;
}

static void diff_end(const struct argp_state *state, void *into)
{
	const struct diff_command *o = into;

	if (o->n_paths < DIFF_SIDES)
		option_bad_usage(state, "which two trace files? 'cuscope record' makes them");
	if (o->page.path && !cli_is_page(o->page.path))
		argp_error(state, "-o writes a page: '%s' has not the ending .html", o->page.path);
	if (o->page.path && o->table.form != TABLE_FORM_TEXT)
		argp_error(state, "--format is of tables that are printed, -o of a page");
}

static const struct option_part parts[] = {
	{ &cli_range_options, offsetof(struct diff_command, range) },
	{ &cli_calls_options, offsetof(struct diff_command, range) },
	{ 0 }
};

static char *make_doc(void)
{
	struct buf doc = { 0 };

	buf_puts(&doc, "Two traces side by side: A, B, the change from A to B, and whether it is "
	               "more than chance.\vNames are why, totals, cuda_api_sum and those of other "
	               "reports that sum up:\n");
	for (size_t i = 0; diff_name(i); i++)
		buf_printf(&doc, "  %s\n", diff_name(i));
	buf_puts(&doc, "Without one: why, totals, cuda_api_sum and, where there are GPU times, "
	               "cuda_gpu_kern_sum.\n\n"
	               "Examples:\n"
	               "  cuscope diff before.cuscope after.cuscope\n"
	               "  cuscope diff a.cuscope b.cuscope cuda_gpu_kern_sum:base --top 20\n"
	               "  cuscope diff before.cuscope after.cuscope -o both.html\n");
	return doc.data;
}

/* ---- comparing ----------------------------------------------------------------------------- */

static void tell_note(void *data, const char *name, const char *text)
{
	cli_say("%s", text);
}

static int read_side(const struct diff_command *o, struct diff *diff, enum diff_side side,
                     struct trace_file *file, struct err *err)
{
	size_t n;
	int rc;
	struct consumer *const *consumers = diff_consumers(diff, side, &n);

	rc = cli_read(file, &o->range, consumers, n, err);
	return rc ? rc : cli_say_missed(o->paths[side], trace_run(file), err);
}

/* A run as long as what was read of it. */
static struct run_info part_of(const struct run_info *run, const struct cli_range *range)
{
	const struct report_options read = { .from_ns = range->from_ns,
		                             .to_ns = range->has_to ? range->to_ns : 0 };
	struct run_info part = *run;

	part.end_ns = part.begin_ns + report_duration_ns(&read, run);
	return part;
}

static void print_sides(const struct diff_command *o, const struct run_info *const runs[DIFF_SIDES])
{
	AT_END(buf_free) struct buf out = { 0 };

	for (int side = 0; side < DIFF_SIDES; side++) {
		AT_END(buf_free) struct buf why = { 0 };

		buf_printf(&out, "%c: ", side == DIFF_A ? 'A' : 'B');
		text_add_safe(&out, o->paths[side]);
		buf_putc(&out, '\n');
		if (missed_of_file(runs[side], &why))
			buf_printf(&out, "   not all: %s\n", why.data);
	}
	buf_putc(&out, '\n');
	text_wrap_lines(&out, 0, cli_width(stdout));
	fputs(out.data, stdout);
}

static int compare(struct diff_command *o, struct diff *diff, struct trace_file *files[DIFF_SIDES],
                   struct err *err)
{
	struct run_info part[DIFF_SIDES];
	const struct run_info *const runs[DIFF_SIDES] = { &part[DIFF_A], &part[DIFF_B] };
	struct err side_err = { 0 };
	int rc = 0, rc_side;

	for (int side = 0; side < DIFF_SIDES; side++) {
		rc_side = trace_open(o->paths[side], &files[side], err);
		if (rc_side)
			return rc_side;
		rc_side = read_side(o, diff, side, files[side], &side_err);
		if (rc_side && !cli_worth_showing(rc_side) && rc_side != -ENODATA)
			return *err = side_err, rc_side;
		if (rc_side && rc) /* one sentence is told at the end, another before */
			cli_say("%s", err->text);
		if (rc_side)
			*err = side_err;
		rc = rc_side ? rc_side : rc;
		part[side] = part_of(trace_run(files[side]), &o->range);
	}
	cli_bound_outputs(&o->range, o->paths, DIFF_SIDES);
	if (o->table.form == TABLE_FORM_TEXT)
		print_sides(o, runs);
	o->table.out = stdout;
	o->table.note = tell_note;
	o->table.color = cli_color(o->color, stdout);
	o->table.width = cli_width(stdout);
	rc_side = diff_print(diff, runs, &o->table, rc ? NULL : err);
	return rc ? rc : rc_side;
}

static int diff_files(struct diff_command *o, struct err *err)
{
	struct trace_file *files[DIFF_SIDES] = { NULL };
	struct diff *diff;
	const struct report_options read = { .nested = o->nested,
		                             .from_ns = o->range.from_ns,
		                             .to_ns = o->range.has_to ? o->range.to_ns : 0,
		                             .part = cli_is_part(&o->range),
		                             .chosen = cli_is_chosen(&o->range) };
	int rc = diff_new(o->names, o->n_names, &read, &diff, err);

	if (rc)
		return EXIT_USAGE;
	rc = compare(o, diff, files, err);
	diff_free(diff);
	for (int side = 0; side < DIFF_SIDES; side++) {
		if (files[side])
			trace_close(files[side]);
	}
	return rc ? EXIT_FAILURE : 0;
}

static int diff_to_page(const struct diff_command *o, const char *called)
{
	const struct page_pair_options compare = { .names = o->names,
		                                   .n_names = o->n_names,
		                                   .top = o->table.top,
		                                   .read.nested = o->nested };

	return cli_pair_write(&(struct cli_pair){ .paths = o->paths,
	                                          .compare = &compare,
	                                          .range = o->range,
	                                          .page = o->page },
	                      called);
}

int cli_diff(int argc, char **argv)
{
	struct option_command options = {
		.group = { OPTION_ROWS(rows), .parts = parts, .word = diff_word, .end = diff_end },
		.operands = "A B [NAME...]",
	};
	struct diff_command o = { 0 };
	struct err err = { 0 };
	char *doc = make_doc();
	int status;

	options.doc = doc;
	option_parse(&options, argc, argv, false, &o);
	cli_ignore_signals();
	status = o.page.path ? diff_to_page(&o, argv[0]) : diff_files(&o, &err);
	if (status && !o.page.path)
		cli_say_failure(&err);
	FREE_ALL(o.names, o.range.pids, doc);
	return status;
}
