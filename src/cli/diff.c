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
#include "base/vec.h"
#include "base/xalloc.h"
#include "report/diff/diff.h"

struct diff_command {
	struct cli_range range;
	struct table_options table;
	const char *paths[DIFF_SIDES];
	const char **names;
	size_t n_paths, n_names;
	const char *color;
	bool nested;
};

/* ---- options ------------------------------------------------------------------------------- */

enum { OPT_FORMAT = 3000, OPT_TOP, OPT_NESTED, OPT_COLOR };

static const struct argp_option options[] = {
	{ 0, 0, 0, 0, "What is shown:", 2 },
	{ "top", OPT_TOP, "N", 0, "the first N rows of each table", 0 },
	{ "nested", OPT_NESTED, 0, 0, "also the calls that other calls made", 0 },
	{ 0, 0, 0, 0, "Output:", 3 },
	{ "format", OPT_FORMAT, "NAME", 0, "table (default), csv or json", 0 },
	{ "color", OPT_COLOR, "WHEN", 0,
	  "always, never, or auto (the default): on a terminal, unless NO_COLOR is set", 0 },
	{ 0 }
};

static void add_word(struct diff_command *o, const char *word)
{
	if (o->n_paths < DIFF_SIDES) {
		o->paths[o->n_paths++] = word;
		return;
	}
	o->names = vec_room(o->names, o->n_names, sizeof(*o->names));
	o->names[o->n_names++] = word;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct diff_command *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = state->child_inputs[1] = &o->range;
		return 0;
	case OPT_FORMAT:
		o->table.form = cli_table_form(state, arg);
		return 0;
	case OPT_TOP:
		o->table.top = cli_top_rows(state, arg);
		return 0;
	case OPT_NESTED:
		o->nested = true;
		return 0;
	case OPT_COLOR:
		o->color = cli_when(state, arg);
		return 0;
	case ARGP_KEY_ARG:
		add_word(o, arg);
		return 0;
	case ARGP_KEY_END:
		if (o->n_paths < DIFF_SIDES)
			argp_failure(state, EXIT_USAGE, 0,
			             "which two trace files? 'cuscope record' makes them");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_child children[] = { { &cli_range_argp, 0, NULL, 0 },
	                                      { &cli_calls_argp, 0, NULL, 0 },
	                                      { 0 } };

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
	               "  cuscope diff a.cuscope b.cuscope cuda_gpu_kern_sum:base --top 20\n");
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
	struct consumer *const *consumers;
	size_t n;
	int rc;

	consumers = diff_consumers(diff, side, &n);
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
	struct buf out = { 0 };

	for (int side = 0; side < DIFF_SIDES; side++) {
		struct buf why = { 0 };

		buf_printf(&out, "%c: ", side == DIFF_A ? 'A' : 'B');
		text_add_safe(&out, o->paths[side]);
		buf_putc(&out, '\n');
		if (missed_of_file(runs[side], &why))
			buf_printf(&out, "   not all: %s\n", why.data);
		buf_free(&why);
	}
	buf_putc(&out, '\n');
	text_wrap_lines(&out, 0, cli_width(stdout));
	fputs(out.data, stdout);
	buf_free(&out);
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
	cli_bound_output(&o->range, o->paths[DIFF_A]);
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

int cli_diff(int argc, char **argv)
{
	struct argp argp = {
		.options = options,
		.parser = parse_option,
		.args_doc = "A B [NAME...]",
		.children = children,
	};
	struct diff_command o = { 0 };
	struct err err = { 0 };
	char *doc = make_doc();
	int status;

	argp.doc = doc;
	cli_parse(&argp, argc, argv, false, &o);
	cli_ignore_signals();
	status = diff_files(&o, &err);
	if (status)
		cli_say_failure(&err);
	free(o.names);
	free(o.range.pids);
	free(doc);
	return status;
}
