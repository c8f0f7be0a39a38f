// SPDX-License-Identifier: MIT
/* `cuscope timeline`: when each thread was doing what. */
#include "analysis/place.h"
#include "cli/cli.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/lines.h"
#include "base/text.h"
#include "output/timeline/timeline.h"
#include "trace/event.h"

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

static bool timeline_word(const struct argp_state *state, void *into, char *word)
{
	struct timeline_command *o = into;

	if (o->path)
		option_bad_usage(state, "one file at a time, not also '%s'", word);
	o->path = word;
	return true;
}

static void timeline_end(const struct argp_state *state, void *into)
{
	if (!((struct timeline_command *)into)->path)
		option_bad_usage(state, "which trace file? 'cuscope record' makes one");
}

static const struct option_row rows[] = {
	{ "tid", 0, "TID", "what this thread did", OPTION_NUMBER,
	  offsetof(struct timeline_command, tid), .least = 1, .most = INT32_MAX,
	  .is_no = "thread id", .order = 1 },
	{ .title = "Output:", .order = 2 },
	{ "width", 0, "N", "columns (default: the terminal's, or 100)", OPTION_NUMBER,
	  offsetof(struct timeline_command, width), .least = TIMELINE_WIDTH_LEAST,
	  .most = WIDTH_MOST, .is_no = "number of columns from 40 to 2000" },
	{ "top", 0, "N", "longest calls to show (default: 10)", OPTION_NUMBER,
	  offsetof(struct timeline_command, top), .most = TOP_MOST },
	CLI_COLOR_ROW(struct timeline_command, color),
};

static const struct option_part parts[] = {
	{ &cli_range_options, offsetof(struct timeline_command, range) },
	{ &cli_calls_options, offsetof(struct timeline_command, range) },
	{ 0 }
};

static const struct option_command options = {
	.group = { OPTION_ROWS(rows), .parts = parts, .word = timeline_word, .end = timeline_end },
	.operands = "FILE",
	.doc = "Shows when each thread, and each stream of a GPU, was doing what."
	       "\vExamples:\n"
	       "  cuscope timeline run.cuscope\n"
	       "  cuscope timeline run.cuscope --from 1.2s --to 1.25s\n"
	       "  cuscope timeline run.cuscope --tid 4243 --top 30\n",
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

static int print(const struct timeline_command *o, const struct timeline_view *view,
                 const struct run_info *run, size_t width, struct err *err)
{
	struct timeline_text_options text = {
		.width = width,
		.color = cli_color(o->color, stdout),
		.utf8 = is_utf8(),
		.file = place_file(o->path),
	};
	AT_END(lines_free) struct lines lines;

	lines_init(&lines, stdout, "the timeline");
	timeline_text(view, run, &text, &lines.pending);
	text_wrap_lines(&lines.pending, 0, width);
	return lines_flush(&lines, err);
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

	option_parse(&options, argc, argv, false, &o);
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
