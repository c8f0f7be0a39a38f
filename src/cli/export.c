// SPDX-License-Identifier: MIT
/* `cuscope export`: a trace in the format of another tool. */
#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/new_folder.h"
#include "base/parse.h"
#include "base/vec.h"
#include "output/sink.h"
#include "output/who.h"
#include "page/page.h"
#include "report/diff/diff.h"
#include "trace/reader.h"

#define OUTPUT_BUFFER (1 << 18)

struct export_options {
	const char **inputs; /* the caller of option_parse() frees them */
	size_t n_inputs;
	const char *input;                       /* the one that is read */
	const struct page_pair_options *compare; /* of two on one page; NULL: as by default */
	const char *output;
	const struct sink_format *format;
	struct sink_options sink;
	struct cli_range range;
	char rank[16]; /* of the range */
	mode_t mode;
	bool force;
};

/* What is read at a time, the files open until it was written. */
struct inputs {
	const char *const *paths;
	struct trace_file *files[DIFF_SIDES];
	size_t n;
};

/* ---- options ------------------------------------------------------------------------------- */

static bool export_take_rank(const struct argp_state *state, void *to, const char *value)
{
	struct sink_options *sink = to;
	const char *slash = strchr(value, '/');
	char rank[16] = "";
	uint64_t number, size = 0;

	if (!slash || slash - value < (long)sizeof(rank))
		memcpy(rank, value,
		       slash ? (size_t)(slash - value) : strnlen(value, sizeof(rank) - 1));
	if (!parse_number(rank, 1 << 24, &number) ||
	    (slash && (!parse_number(slash + 1, 1 << 24, &size) || size <= number)))
		return false;
	sink->rank = (unsigned)number;
	sink->world_size = (unsigned)size;
	sink->has_rank = true;
	return true;
}

static bool export_word(const struct argp_state *state, void *into, char *word)
{
	struct export_options *o = into;

	*VEC_ADD(o->inputs, o->n_inputs) = word;
	return true;
}

static bool is_page(const struct export_options *o)
{
	return o->format ? !strcmp(o->format->name, "html") : cli_is_page(o->output);
}

static void export_end(const struct argp_state *state, void *into)
{
	const struct export_options *o = into;

	if (!o->n_inputs)
		argp_error(state, "which trace? 'cuscope record' makes one");
	if (is_page(o) && o->n_inputs > DIFF_SIDES)
		argp_error(state, "a page is of one trace file or of two: '%s' is a third one",
		           o->inputs[DIFF_SIDES]);
	if (o->n_inputs > 1 && !is_page(o) && !(o->format && o->format->many_files))
		argp_error(state, "one trace file at a time: '%s' is a second one", o->inputs[1]);
}

static const struct option_row rows[] = {
	{ .title = "Which calls:", .order = 3 },
	{ .title = "What is written, and where:", .order = 4 },
	{ "output", 'o', "FILE", "the file; its ending chooses the format; - is standard output",
	  OPTION_TEXT, offsetof(struct export_options, output) },
	CLI_SINK_FORMAT_ROW(struct export_options, format),
	CLI_FORCE_ROW(struct export_options, force, "overwrite a file that exists"),
	CLI_MODE_ROW(struct export_options, mode),
	{ .title = "For single formats, and for one rank:", .order = 5 },
	{ "rank", 0, "N[/SIZE]",
	  "of a recording of several ranks this one; chrome, parquet: else which rank of a "
	  "distributed program it is, of how many",
	  OPTION_TAKE, offsetof(struct export_options, sink), .take = export_take_rank,
	  .is_no = "rank (3, or 3/8 of eight)" },
	{ "begin-end", 0, NULL, "jsonl: a B and an E line for each call instead of one X",
	  OPTION_YES, offsetof(struct export_options, sink.begin_end) },
};

static const struct option_part parts[] = {
	{ &cli_range_options, offsetof(struct export_options, range) },
	{ &cli_filter_options, offsetof(struct export_options, sink) },
	{ 0 }
};

static const struct option_command options = {
	.group = { OPTION_ROWS(rows), .parts = parts, .word = export_word, .end = export_end },
	.operands = "FILE... -o OUT",
	.doc = "Writes a trace file in the format of another tool."
	       "\vExamples:\n"
	       "  cuscope export train.cuscope -o train.pftrace\n"
	       "  cuscope export train.cuscope -o train.json.gz --pid 4242 --rank 0/8\n"
	       "  cuscope export train.cuscope --format table --from 2s --to 2.1s\n"
	       "  cuscope export rank-*.cuscope --format parquet -o run1\n"
	       "  cuscope export before.cuscope after.cuscope -o both.html\n",
};

static bool to_stdout(const struct export_options *o)
{
	return !o->output || !strcmp(o->output, "-");
}

static int no_format(struct err *err)
{
	AT_END(buf_free) struct buf known = { 0 };

	sink_format_names(&known);
	err_set(err, EINVAL, "to which format? -o FILE with its ending, or --format %s",
	        known.data);
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
	if (o->n_inputs > 1 && !is_page(o) && o->sink.has_rank)
		return err_set(err, EINVAL, "--rank is that of one file, and there are %zu",
		               o->n_inputs);
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
	now = clock_now_ns();
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

static int convert_file(struct export_options *o, struct trace_file *file, struct err *err)
{
	struct trace_read_options read;
	struct consumer *sink;
	struct progress progress = { .terminal = isatty(STDERR_FILENO) && !to_stdout(o),
		                     .begin_ns = clock_now_ns(),
		                     .part = 1 };
	int rc = cli_range_begin(file, &o->range, &read, err);

	if (rc) {
		cli_range_end(&o->range, &read);
		return rc;
	}
	/* bounded, what the page has tells how far the file is read */
	o->sink.apart = !o->sink.pair && !o->range.has_max_size;
	o->sink.stopped = &interrupted;
	progress.sink = sink = o->format->create(&o->sink);
	read.progress = on_progress;
	read.data = &progress;
	scout(sink, file, &read);
	rc = trace_read(file, &read, &sink, 1, err);
	cli_range_end(&o->range, &read);
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

/*
 * What the program was started with, where that is one rank's. Of a recording of several ranks that
 * which is named is chosen; of others it is what they are called.
 */
static void choose_rank(struct export_options *o, const struct run_info *run)
{
	unsigned rank, size;

	snprintf(o->rank, sizeof(o->rank), "%u", o->sink.rank);
	if (o->sink.has_rank) /* `diff` has one of the range */
		o->range.rank = cli_has_rank_of_several(run, o->rank) ? o->rank : NULL;
	if (o->sink.has_rank || !who_rank(run, o->range.pids, o->range.n_pids, &rank, &size))
		return;
	o->sink.rank = rank;
	o->sink.world_size = size;
	o->sink.has_rank = true;
}

/* One, or the two of a page. What is wrong with the first of them is told before the second. */
static int convert(struct export_options *o, const struct inputs *inputs, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < inputs->n; i++) {
		struct sink_options as_given = o->sink;
		struct err of_one = { 0 };

		o->input = o->sink.trace = inputs->paths[i];
		choose_rank(o, trace_run(inputs->files[i]));
		of_one.code = convert_file(o, inputs->files[i], &of_one);
		o->sink = as_given;
		if (of_one.code && rc)
			cli_say("%s", err->text);
		if (of_one.code)
			*err = of_one;
		rc = of_one.code ? of_one.code : rc;
		if (!worth_keeping(of_one.code))
			break;
	}
	return rc;
}

static bool same_file(const char *a, const char *b)
{
	struct stat one, other;

	return !stat(a, &one) && !stat(b, &other) && one.st_dev == other.st_dev &&
	       one.st_ino == other.st_ino;
}

static int convert_to_file(struct export_options *o, const struct inputs *inputs, struct err *err)
{
	const struct new_file_options wanted = { .replace = o->force,
		                                 .regular = o->format->whole_file,
		                                 .mode = o->mode };
	struct new_file out;
	struct err ignored;
	int rc;

	for (size_t i = 0; i < inputs->n; i++)
		if (same_file(inputs->paths[i], o->output))
			return err_set(err, EINVAL, "%s is the trace itself: choose another name",
			               o->output);
	rc = new_file_open(&out, o->output, &wanted, err);
	if (rc)
		return rc;
	o->sink.out = out.out;
	o->sink.path = o->output;
	setvbuf(out.out, NULL, _IOFBF, OUTPUT_BUFFER);
	rc = convert(o, inputs, err);
	if (rc == -ENOSPC || rc == -EDQUOT) /* a stream would keep what it has */
		err_set(err, rc, "cannot write %s: %s; free some space or choose another place",
		        o->output, strerror(-rc));
	if (!worth_keeping(rc))
		new_file_drop(&out);
	else if (new_file_keep(&out, rc ? &ignored : err) && !rc)
		rc = err->code;
	return rc;
}

/* Folders that appear when they are whole, as a file does. */
static int convert_to_tree(struct export_options *o, const struct inputs *inputs, struct err *err)
{
	struct err ignored;
	int rc = convert(o, inputs, err);

	if (rc == -ENOSPC || rc == -EDQUOT)
		err_set(err, rc, "cannot write %s: %s; free some space or choose another place",
		        o->output, strerror(-rc));
	if (!worth_keeping(rc))
		new_tree_drop(o->sink.tree);
	else if (new_tree_keep(o->sink.tree, rc ? &ignored : err) && !rc)
		rc = err->code;
	return rc;
}

static int convert_to_stdout(struct export_options *o, const struct inputs *inputs, struct err *err)
{
	o->sink.out = stdout;
	o->sink.width = cli_width(stdout);
	return convert(o, inputs, err);
}

static int export_to(struct export_options *o, const struct inputs *inputs, struct err *err)
{
	if (o->format->many_files)
		return convert_to_tree(o, inputs, err);
	return to_stdout(o) ? convert_to_stdout(o, inputs, err) : convert_to_file(o, inputs, err);
}

static int export_traces(struct export_options *o, struct inputs *inputs, struct err *err)
{
	struct sink_options as_given = o->sink;
	int rc = 0;

	for (size_t i = 0; i < inputs->n && !rc; i++)
		rc = trace_open(inputs->paths[i], &inputs->files[i], err);
	cli_bound_outputs(&o->range, inputs->paths, inputs->n);
	o->sink.from_ns = o->range.from_ns;
	o->sink.to_ns = o->range.has_to ? o->range.to_ns : 0;
	o->sink.part = cli_is_part(&o->range);
	o->sink.chosen = cli_is_chosen(&o->range);
	if (!rc)
		rc = export_to(o, inputs, err);
	o->sink = as_given;
	return rc ? EXIT_FAILURE : 0;
}

static void inputs_close(struct inputs *inputs)
{
	for (size_t i = 0; i < inputs->n; i++) {
		if (inputs->files[i])
			trace_close(inputs->files[i]);
	}
}

/* What is said of both is known until the files are closed. */
static int export_pair(struct export_options *o, struct err *err)
{
	struct inputs inputs = { .paths = o->inputs, .n = DIFF_SIDES };
	struct page_pair_options compare = { 0 };
	int status;

	if (o->compare)
		compare = *o->compare;
	compare.read.from_ns = o->range.from_ns;
	compare.read.to_ns = o->range.has_to ? o->range.to_ns : 0;
	compare.read.part = cli_is_part(&o->range);
	compare.read.chosen = cli_is_chosen(&o->range);
	if (page_pair_new(&compare, &o->sink.pair, err))
		return EXIT_USAGE;
	status = export_traces(o, &inputs, err);
	page_pair_free(o->sink.pair);
	inputs_close(&inputs);
	return status;
}

/* One after the other. What is wrong with one of them is told, and the others are read. */
static int export_each(struct export_options *o, const char *called)
{
	struct err err = { 0 };
	int status = 0;

	for (size_t i = 0; i < o->n_inputs && err.code != -EINTR; i++) {
		struct inputs inputs = { .paths = &o->inputs[i], .n = 1 };

		err = (struct err){ 0 };
		if (export_traces(o, &inputs, &err))
			status = EXIT_FAILURE;
		inputs_close(&inputs);
		if (err.text[0])
			fprintf(stderr, "%s: %s\n", called, err.text);
	}
	return status;
}

static int export_all(struct export_options *o, const char *called, struct err *err)
{
	const struct new_tree_options wanted = { .replace = o->force,
		                                 .ending = ".parquet",
		                                 .mode = o->mode };
	int status;

	if (check_options(o, err))
		return EXIT_USAGE;
	if (o->format->many_files && new_tree_open(&o->sink.tree, o->output, &wanted, err))
		return EXIT_FAILURE;
	if (is_page(o) && o->n_inputs == DIFF_SIDES)
		return export_pair(o, err);
	status = export_each(o, called);
	if (o->sink.tree)
		new_tree_close(o->sink.tree);
	return status;
}

static int export_run(struct export_options *o, const char *called)
{
	/* the second one ends at once, whatever is waited for */
	struct sigaction action = { .sa_handler = interrupt, .sa_flags = SA_RESETHAND };
	struct err err = { 0 };
	int status;

	cli_ignore_signals();
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	status = export_all(o, called, &err);
	if (err.text[0])
		fprintf(stderr, "%s: %s\n", called, err.text);
	return status;
}

int cli_pair_write(const struct cli_pair *pair, const char *called)
{
	struct export_options o = { .inputs = (const char **)pair->paths,
		                    .n_inputs = DIFF_SIDES,
		                    .compare = pair->compare,
		                    .output = pair->page.path,
		                    .format = sink_format_by_name("html"),
		                    .range = pair->range,
		                    .mode = pair->page.mode,
		                    .force = pair->page.force };

	return export_run(&o, called);
}

int cli_export(int argc, char **argv)
{
	struct export_options o = { 0 };
	int status;

	option_parse(&options, argc, argv, false, &o);
	status = export_run(&o, argv[0]);
	free(o.range.pids);
	free(o.inputs);
	return status;
}
