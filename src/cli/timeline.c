// SPDX-License-Identifier: MIT
/* `cuscope timeline`: when each thread was doing what. */
#include "cli/cli.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/lines.h"
#include "base/parse.h"
#include "base/text.h"
#include "output/timeline/timeline_text.h"
#include "trace/consumers.h"

#define WIDTH_DEFAULT 100 /* where it goes to no terminal */
#define WIDTH_MOST    2000
#define TOP_DEFAULT   10
#define TOP_MOST      10000

struct timeline_command {
	struct cli_range range;
	const char *path, *color;
	uint64_t tid, width, top;
};

/* ---- options ------------------------------------------------------------------------------- */

enum { OPT_TID = 3000, OPT_WIDTH, OPT_TOP, OPT_COLOR };

static const struct argp_option options[] = {
	{ "tid", OPT_TID, "TID", 0, "what this thread did", 1 },
	{ 0, 0, 0, 0, "Output:", 2 },
	{ "width", OPT_WIDTH, "N", 0, "columns (default: the terminal's, or 100)", 0 },
	{ "top", OPT_TOP, "N", 0, "longest calls to show (default: 10)", 0 },
	{ "color", OPT_COLOR, "WHEN", 0,
	  "always, never, or auto (the default): on a terminal, unless NO_COLOR is set", 0 },
	{ 0 }
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct timeline_command *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = state->child_inputs[1] = &o->range;
		return 0;
	case OPT_TID:
		if (!parse_number(arg, INT32_MAX, &o->tid) || !o->tid)
			cli_bad_value(state, "--tid", arg, "thread id");
		return 0;
	case OPT_WIDTH:
		if (!parse_number(arg, WIDTH_MOST, &o->width) || o->width < TIMELINE_WIDTH_LEAST)
			cli_bad_value(state, "--width", arg, "number of columns from 40 to 2000");
		return 0;
	case OPT_TOP:
		if (!parse_number(arg, TOP_MOST, &o->top))
			cli_bad_value(state, "--top", arg, "number up to 10000");
		return 0;
	case OPT_COLOR:
		o->color = cli_when(state, arg);
		return 0;
	case ARGP_KEY_ARG:
		if (o->path)
			argp_failure(state, EXIT_USAGE, 0, "one file at a time, not also '%s'",
			             arg);
		o->path = arg;
		return 0;
	case ARGP_KEY_END:
		if (!o->path)
			argp_failure(state, EXIT_USAGE, 0,
			             "which trace file? 'cuscope record' makes one");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_child children[] = { { &cli_range_argp, 0, NULL, 0 },
	                                      { &cli_calls_argp, 0, NULL, 0 },
	                                      { 0 } };

static const struct argp argp = {
	.options = options,
	.parser = parse_option,
	.args_doc = "FILE",
	.doc = "Shows when each thread, and each stream of a GPU, was doing what."
	       "\vExamples:\n"
	       "  cuscope timeline run.cuscope\n"
	       "  cuscope timeline run.cuscope --from 1.2s --to 1.25s\n"
	       "  cuscope timeline run.cuscope --tid 4243 --top 30\n",
	.children = children,
};

/* ---- reading ------------------------------------------------------------------------------- */

/* What comes after the window is read as well, until the timeline has enough. */
static int read_window(const struct timeline_command *o, struct trace_file *file,
                       struct consumer *timeline, struct err *err)
{
	struct cli_range range = o->range;
	int rc;

	range.has_to = false;
	rc = cli_read(file, &range, &timeline, 1, err);
	return rc == -ECANCELED ? 0 : rc;
}

/* ---- printing ------------------------------------------------------------------------------ */

static bool is_utf8(void)
{
	setlocale(LC_CTYPE, "");
	return !strcmp(nl_langinfo(CODESET), "UTF-8");
}

static size_t chosen_width(const struct timeline_command *o)
{
	size_t width = o->width ? o->width : cli_width(stdout);

	if (!width)
		width = WIDTH_DEFAULT;
	return width < TIMELINE_WIDTH_LEAST ? TIMELINE_WIDTH_LEAST : width;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static int print(const struct timeline_command *o, const struct timeline_view *view,
                 const struct run_info *run, size_t width, struct err *err)
{
	struct timeline_text_options text = {
		.width = width,
		.color = cli_color(o->color, stdout),
		.utf8 = is_utf8(),
		.file = base_name(o->path),
	};
	struct lines lines;
	int rc;

	lines_init(&lines, stdout, "the timeline");
	timeline_text(view, run, &text, &lines.pending);
	text_wrap_lines(&lines.pending, 0, width);
	rc = lines_flush(&lines, err);
	lines_free(&lines);
	return rc;
}

static int show(const struct timeline_command *o, struct trace_file *file, struct err *err)
{
	const struct run_info *run = trace_run(file);
	size_t width = chosen_width(o);
	struct timeline_options wanted = {
		.from_ns = o->range.from_ns ? run->begin_ns + o->range.from_ns : 0,
		.to_ns = o->range.has_to ? run->begin_ns + o->range.to_ns : 0,
		.columns = timeline_text_columns(width),
		.tid = (uint32_t)o->tid,
		.longest = o->top,
	};
	struct consumer *timeline = timeline_new(&wanted);
	int rc, rc_print = 0;

	rc = read_window(o, file, timeline, err);
	if (cli_worth_showing(rc)) {
		rc_print = print(o, timeline_view(timeline), run, width, rc ? NULL : err);
		if (!rc_print)
			cli_print_incomplete(run);
	}
	consumer_free(timeline);
	rc = rc ? rc : rc_print;
	return rc ? rc : cli_say_missed(o->path, run, err);
}

int cli_timeline(int argc, char **argv)
{
	struct timeline_command o = { .top = TOP_DEFAULT };
	struct trace_file *file;
	struct err err = { 0 };
	int rc;

	cli_parse(&argp, argc, argv, false, &o);
	cli_ignore_signals();
	cli_bound_output(&o.range, o.path);
	rc = trace_open(o.path, &file, &err);
	if (!rc) {
		rc = show(&o, file, &err);
		trace_close(file);
	}
	if (rc)
		cli_say_failure(&err);
	free(o.range.pids);
	return rc ? EXIT_FAILURE : 0;
}
