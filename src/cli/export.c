// SPDX-License-Identifier: MIT
/* `cuscope export`: a trace in the format of another tool. */
#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/parse.h"
#include "output/sink.h"
#include "output/who.h"
#include "trace/reader.h"

#define OUTPUT_BUFFER (1 << 18)

struct export_options {
	const char *input, *output;
	const struct sink_format *format;
	struct sink_options sink;
	struct cli_range range;
	mode_t mode;
	bool force;
	bool has_rank; /* --rank */
};

/* ---- options ------------------------------------------------------------------------------- */

enum {
	OPT_FORMAT = 3000,
	OPT_FORCE,
	OPT_RANK,
	OPT_BEGIN_END,
};

static const struct argp_option options[] = {
	{ 0, 0, 0, 0, "Which calls:", 3 },
	{ 0, 0, 0, 0, "What is written, and where:", 4 },
	{ "output", 'o', "FILE", 0, "the file; its ending chooses the format; - is standard output",
	  0 },
	{ "format", OPT_FORMAT, "NAME", 0, "", 0 }, /* see cli_help_formats() */
	{ "force", OPT_FORCE, 0, 0, "overwrite a file that exists", 0 },
	CLI_MODE_OPTION,
	CLI_OLD_MODE_OPTION,
	{ 0, 0, 0, 0, "For single formats:", 5 },
	{ "rank", OPT_RANK, "N[/SIZE]", 0,
	  "chrome: which rank of a distributed program this is, of how many", 0 },
	{ "begin-end", OPT_BEGIN_END, 0, 0,
	  "jsonl: a B and an E line for each call instead of one X", 0 },
	{ 0 }
};

static void parse_rank(const struct argp_state *state, struct sink_options *sink, const char *arg)
{
	const char *slash = strchr(arg, '/');
	char rank[16] = "";
	uint64_t number, size = 0;

	if (!slash || slash - arg < (long)sizeof(rank))
		memcpy(rank, arg, slash ? (size_t)(slash - arg) : strnlen(arg, sizeof(rank) - 1));
	if (!parse_number(rank, 1 << 24, &number) ||
	    (slash && (!parse_number(slash + 1, 1 << 24, &size) || size <= number)))
		cli_bad_value(state, "--rank", arg, "rank (3, or 3/8 of eight)");
	sink->rank = (unsigned)number;
	sink->world_size = (unsigned)size;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct export_options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &o->range;
		state->child_inputs[1] = &o->sink;
		return 0;
	case 'o':
		o->output = arg;
		return 0;
	case OPT_FORMAT:
		o->format = cli_parse_format(state, arg);
		return 0;
	case OPT_FORCE:
		o->force = true;
		return 0;
	case CLI_OPT_MODE:
		o->mode = cli_parse_mode(state, arg);
		return 0;
	case OPT_RANK:
		parse_rank(state, &o->sink, arg);
		o->has_rank = true;
		return 0;
	case OPT_BEGIN_END:
		o->sink.begin_end = true;
		return 0;
	case ARGP_KEY_ARG:
		if (o->input)
			argp_error(state, "one trace file at a time: '%s' is a second one", arg);
		o->input = arg;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "which trace? 'cuscope record' makes one");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static char *help_filter(int key, const char *text, void *input)
{
	return key == OPT_FORMAT ? cli_help_formats() : (char *)text;
}

static const struct argp_child children[] = { { &cli_range_argp, 0, NULL, 0 },
	                                      { &cli_filter_argp, 0, NULL, 0 },
	                                      { 0 } };

static const struct argp argp = {
	.options = options,
	.parser = parse_option,
	.args_doc = "FILE -o OUT",
	.doc = "Writes a trace file in the format of another tool."
	       "\vExamples:\n"
	       "  cuscope export train.cuscope -o train.pftrace\n"
	       "  cuscope export train.cuscope -o train.json.gz --pid 4242 --rank 0/8\n"
	       "  cuscope export train.cuscope --format table --from 2s --to 2.1s\n",
	.children = children,
	.help_filter = help_filter,
};

static bool to_stdout(const struct export_options *o)
{
	return !o->output || !strcmp(o->output, "-");
}

static int no_format(struct err *err)
{
	struct buf known = { 0 };

	sink_format_names(&known);
	err_set(err, EINVAL, "to which format? -o FILE with its ending, or --format %s",
	        known.data);
	buf_free(&known);
	return err->code;
}

static int check_options(struct export_options *o, struct err *err)
{
	if (!o->format && to_stdout(o))
		return no_format(err);
	if (!o->format)
		o->format = cli_format_of(o->output, err);
	if (!o->format)
		return err->code;
	if (o->sink.begin_end && strcmp(o->format->name, "jsonl"))
		return err_set(err, EINVAL, "--begin-end goes with --format jsonl");
	o->sink.by_name = o->range.filter.function != NULL;
	return to_stdout(o) ? cli_check_stdout(o->format, err) : 0;
}

/* ---- progress ------------------------------------------------------------------------------ */

#define BAR_WIDTH   40
#define PATIENCE_NS 1000000000ull /* what ends before needs no bar */
#define REDRAW_NS   100000000ull

static volatile sig_atomic_t interrupted;

struct progress {
	const struct consumer *sink;
	bool terminal;
	uint64_t begin_ns, drawn_ns; /* drawn_ns 0: there is no bar */
	double done, part;           /* share of the work that is behind, and of this reading */
};

static void interrupt(int number)
{
	interrupted = number;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void draw(struct progress *progress, double share, uint64_t now)
{
	int filled = (int)(share * BAR_WIDTH);
	double spent = (double)(now - progress->begin_ns) / 1e9;

	progress->drawn_ns = now;
	fprintf(stderr, "\r[%.*s%*s] %3.0f %%, %.0f s left ", filled,
	        "########################################", BAR_WIDTH - filled, "", share * 100,
	        share > 0 ? spent / share - spent : 0.0);
}

static bool on_progress(void *data, double share)
{
	struct progress *progress = data;
	uint64_t now;

	if (interrupted || sink_done(progress->sink))
		return false;
	if (!progress->terminal)
		return true;
	now = now_ns();
	if (now - progress->begin_ns > PATIENCE_NS && now - progress->drawn_ns > REDRAW_NS)
		draw(progress, progress->done + progress->part * (share < 1 ? share : 1), now);
	return true;
}

static void erase(const struct progress *progress)
{
	if (progress->drawn_ns)
		fprintf(stderr, "\r%*s\r", BAR_WIDTH + 30, "");
}

/* ---- converting ---------------------------------------------------------------------------- */

#define SCOUTING 0.3 /* of the time that an export takes that reads the trace twice */

/* What is damaged is told of when the trace is written. */
static void scout(struct consumer *sink, struct trace_file *file, struct trace_read_options *read)
{
	struct consumer *scout = trace_run(file)->gpu_times ? sink_scout(sink) : NULL;
	struct progress *progress = read->data;
	struct err ignored;

	if (!scout)
		return;
	progress->part = SCOUTING;
	trace_read(file, read, &scout, 1, &ignored);
	progress->done = SCOUTING;
	progress->part = 1 - SCOUTING;
}

static int convert(struct export_options *o, struct trace_file *file, struct err *err)
{
	struct trace_read_options read = cli_range_of(file, &o->range);
	struct consumer *sink = o->format->create(&o->sink);
	struct progress progress = { .sink = sink,
		                     .terminal = isatty(STDERR_FILENO) && !to_stdout(o),
		                     .begin_ns = now_ns(),
		                     .part = 1 };
	int rc;

	read.progress = on_progress;
	read.data = &progress;
	if (filter_is_any(&o->range.filter))
		read.filter = filter_new(&o->range.filter);
	scout(sink, file, &read);
	rc = trace_read(file, &read, &sink, 1, err);
	filter_free(read.filter);
	erase(&progress);
	cli_say_unjoined(sink, "--from and --to export a part of the trace");
	sink->ops->free(sink);
	if (!rc && interrupted)
		rc = err_set(err, EINTR, "interrupted: the trace was not written to its end");
	if (!rc && trace_run(file)->cut_short)
		rc = err_set(err, ENODATA,
		             "%s has no end, the recording was cut short: what came before was "
		             "written",
		             o->input);
	return rc;
}

/* Damaged, cut short or too much: what could be read is a trace, and it is told that it is not the
 * whole. */
static bool worth_keeping(int rc)
{
	return cli_worth_showing(rc) || rc == -ENODATA || cli_is_full(rc);
}

static bool same_file(const char *a, const char *b)
{
	struct stat one, other;

	return !stat(a, &one) && !stat(b, &other) && one.st_dev == other.st_dev &&
	       one.st_ino == other.st_ino;
}

static int convert_to_file(struct export_options *o, struct trace_file *file, struct err *err)
{
	const struct new_file_options wanted = { .replace = o->force,
		                                 .regular = o->format->whole_file,
		                                 .mode = o->mode };
	struct new_file out;
	struct err ignored;
	int rc;

	if (same_file(o->input, o->output))
		return err_set(err, EINVAL, "%s is the trace itself: choose another name",
		               o->output);
	rc = new_file_open(&out, o->output, &wanted, err);
	if (rc)
		return rc;
	o->sink.out = out.out;
	o->sink.path = o->output;
	setvbuf(out.out, NULL, _IOFBF, OUTPUT_BUFFER);
	rc = convert(o, file, err);
	if (rc == -ENOSPC || rc == -EDQUOT) /* a stream would keep what it has */
		err_set(err, rc, "cannot write %s: %s; free some space or choose another place",
		        o->output, strerror(-rc));
	if (!worth_keeping(rc))
		new_file_drop(&out);
	else if (new_file_keep(&out, rc ? &ignored : err) && !rc)
		rc = err->code;
	return rc;
}

static int convert_to_stdout(struct export_options *o, struct trace_file *file, struct err *err)
{
	o->sink.out = stdout;
	o->sink.width = cli_width(stdout);
	return convert(o, file, err);
}

/* What the program was started with, where that is one rank's. */
static void choose_rank(struct export_options *o, const struct run_info *run)
{
	unsigned rank, size;

	if (o->has_rank || !who_rank(run, o->range.pids, o->range.n_pids, &rank, &size))
		return;
	o->sink.rank = rank;
	o->sink.world_size = size;
}

static int export_trace(struct export_options *o, struct err *err)
{
	struct trace_file *file;
	int rc;

	if (check_options(o, err))
		return EXIT_USAGE;
	if (trace_open(o->input, &file, err))
		return EXIT_FAILURE;
	cli_bound_output(&o->range, o->input);
	choose_rank(o, trace_run(file));
	rc = to_stdout(o) ? convert_to_stdout(o, file, err) : convert_to_file(o, file, err);
	trace_close(file);
	return rc ? EXIT_FAILURE : 0;
}

int cli_export(int argc, char **argv)
{
	struct export_options o = { 0 };
	/* the second one ends at once, whatever is waited for */
	struct sigaction action = { .sa_handler = interrupt, .sa_flags = SA_RESETHAND };
	struct err err = { 0 };
	int status;

	cli_parse(&argp, argc, argv, false, &o);
	cli_ignore_signals();
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	status = export_trace(&o, &err);
	if (err.text[0])
		fprintf(stderr, "%s: %s\n", argv[0], err.text);
	free(o.range.pids);
	return status;
}
