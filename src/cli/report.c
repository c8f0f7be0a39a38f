// SPDX-License-Identifier: MIT
/* `cuscope report`: tables from a trace file. */
#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/machines.h"
#include "base/buf.h"
#include "base/parse.h"
#include "base/text.h"
#include "base/vec.h"
#include "report/set.h"
#include "trace/together.h"

#define DEFAULT_REPORT "overview"
#define HELP_WIDTH     78 /* argp fills what is longer */
#define HELP_AT        25 /* what a report is about */

struct report_command {
	struct cli_range range;
	struct report_set_options set;
	struct report_choice *choices;
	size_t n_choices;
	struct cli_recordings files;
	const char *paths[TOGETHER_MAX]; /* of these, those that are read */
	size_t n_paths;
	const char *color;
	const char *of_gaps; /* an option that only this report heeds; NULL: none was given */
};

/* ---- options ------------------------------------------------------------------------------- */

/* The same report twice says nothing more. */
static void add_choice(struct report_command *o, const struct report_choice *choice)
{
	for (size_t i = 0; i < o->n_choices; i++) {
		if (o->choices[i].report == choice->report &&
		    o->choices[i].names == choice->names &&
		    o->choices[i].by_place == choice->by_place)
			return;
	}
	*VEC_ADD(o->choices, o->n_choices) = *choice;
}

static bool report_word(const struct argp_state *state, void *into, char *word)
{
	struct report_command *o = into;
	struct report_choice choice;
	struct err err = { 0 };

	/* the first is a file, but where there is none of that name */
	bool is_name = (o->n_paths || access(word, F_OK)) && !report_choose(word, &choice, &err);

	if (is_name) {
		add_choice(o, &choice);
		return true;
	}
	if (o->n_paths && access(word, F_OK))
		option_bad_usage(state, "%s", err.text);
	if (o->n_paths && access(o->paths[0], F_OK))
		option_bad_usage(state, "cannot read %s: %s", o->paths[0], strerror(errno));
	if (cli_recordings_add(&o->files, word, &err))
		option_bad_usage(state, "%s", err.text);
	if (o->files.n > TOGETHER_MAX)
		option_bad_usage(state, "more than %d files", TOGETHER_MAX);
	while (o->n_paths < o->files.n) {
		o->paths[o->n_paths] = o->files.paths[o->n_paths];
		o->n_paths++;
	}
	return true;
}

static void report_end(const struct argp_state *state, void *into)
{
	if (!((struct report_command *)into)->n_paths)
		option_bad_usage(state, "which trace file? 'cuscope record' makes one");
}

static bool report_take_gap(const struct argp_state *state, void *to, const char *value)
{
	struct report_command *o = to;

	o->of_gaps = "--gap";
	return parse_duration_ns(value, &o->set.gap_ns) && o->set.gap_ns;
}

static bool report_take_stacks(const struct argp_state *state, void *to, const char *value)
{
	struct report_command *o = to;

	o->of_gaps = "--stacks";
	o->set.stacks = true;
	return true;
}

static const struct option_row rows[] = {
	{ .title = "What is shown:", .order = 2 },
	CLI_TOP_ROW(struct report_command, set.table.top),
	{ "sort", 0, "COLUMN",
	  "rows by this column (\"Total Time\", calls:asc), of the tables that have it",
	  OPTION_TEXT, offsetof(struct report_command, set.table.sort) },
	{ "nested", 0, NULL, "also the calls that other calls made", OPTION_YES,
	  offsetof(struct report_command, set.nested) },
	{ "gap", 0, "TIME",
	  "report gaps: each gap from this length on (default 20us); shorter ones are summed up",
	  OPTION_TAKE, .take = report_take_gap, .is_no = "duration (10us, 1.5ms, 2s, 3m)" },
	{ "stacks", 0, NULL, "report gaps: whole chains of calls, not the innermost three",
	  OPTION_TAKE, .take = report_take_stacks },
	{ .title = "Output:", .order = 3 },
	CLI_TABLE_FORMAT_ROW(struct report_command, set.table.form),
	{ "output-dir", 0, "DIR", "a file in DIR for each report (cuda_api_sum.csv)", OPTION_TEXT,
	  offsetof(struct report_command, set.folder) },
	{ "output", 0, "DIR", NULL, OPTION_TEXT, /* as nsys stats calls it */
	  offsetof(struct report_command, set.folder) },
	CLI_FORCE_ROW(struct report_command, set.replace, "overwrite files that exist"),
	CLI_MODE_ROW(struct report_command, set.mode),
	CLI_COLOR_ROW(struct report_command, color),
};

static const struct option_part parts[] = {
	{ &cli_range_options, offsetof(struct report_command, range) },
	{ &cli_calls_options, offsetof(struct report_command, range) },
	{ 0 }
};

/* The reports, each with what it is about: what --help would wrap begins below that. */
static void add_reports(struct buf *out)
{
	for (const struct report *r = reports; r->name; r++) {
		AT_END(buf_free) struct buf help = { 0 };
		char *rest, *line;

		buf_printf(&help, "%s%s", r->help, r->gpu_times ? " (*)" : "");
		text_wrap_lines(&help, 0, HELP_WIDTH - HELP_AT);
		buf_printf(out, "  %-22s", r->name);
		rest = help.data;
		line = strsep(&rest, "\n");
		buf_printf(out, " %s\n", line);
		while ((line = strsep(&rest, "\n")))
			buf_printf(out, "%*s%s\n", HELP_AT, "", line);
	}
}

static char *make_doc(void)
{
	struct buf doc = { 0 };

	buf_puts(&doc,
	         "Tables from a trace file. Names and columns of the cuda_* reports are those "
	         "of Nsight Systems. Without a name: " DEFAULT_REPORT ".\v"
	         "Reports:\n");
	add_reports(&doc);
	buf_puts(&doc, "(*) needs GPU times in the trace. Reports of kernels take ':base', names "
	               "without template arguments and parameters, and ':mangled'. cuda_api_sum "
	               "and launches take ':place': rows by the line of Python or the function "
	               "that called, of "
	               "recordings with --stacks.\n\n"
	               "Examples:\n"
	               "  cuscope report run.cuscope cuda_api_sum\n"
	               "  cuscope report run.cuscope cuda_gpu_kern_sum:base --format csv\n"
	               "  cuscope report run.cuscope cuda_api_trace --from 1s --to 1.1s\n"
	               "  cuscope report rank*.cuscope ranks\n");
	return doc.data;
}

/* ---- reporting ----------------------------------------------------------------------------- */

static void tell_note(void *data, const char *name, const char *text)
{
	cli_say("%s: %s", name, text);
}

static int make_folder(const char *folder, struct err *err)
{
	if (mkdir(folder, 0777) && errno != EEXIST)
		return err_set(err, errno, "cannot make the folder %s: %s", folder,
		               strerror(errno));
	return 0;
}

/* What is missing for the lines of code that gaps are due to. */
static void say_no_samples(const struct report_command *o, const struct run_info *run)
{
	for (size_t i = 0; i < o->n_choices; i++) {
		if (strcmp(o->choices[i].report->name, "gaps") || run->stacks.sample_ns ||
		    run->stacks.blocked || !run->gpu_times)
			continue;
		cli_say("gaps: %s has no samples of stacks: 'cuscope record --stacks' takes them, "
		        "and gaps then names the lines of code that the GPU waited for",
		        o->paths[0]);
	}
}

static int print_reports(struct report_command *o, struct trace_file *file, struct err *err)
{
	struct consumer *const *consumers;
	struct report_set *set;
	int rc, rc_finish;
	size_t n;

	if (o->set.folder && make_folder(o->set.folder, err))
		return err->code;
	if (report_set_new(o->choices, o->n_choices, &o->set, &set, err))
		return err->code;
	consumers = report_set_consumers(set, &n);
	rc = cli_read(file, &o->range, consumers, n, err);
	if (cli_worth_showing(rc)) {
		rc_finish = report_set_finish(set, rc ? NULL : err);
		if (!rc_finish && !o->set.folder && o->set.table.form == TABLE_FORM_TEXT)
			cli_print_incomplete(trace_run(file));
		say_no_samples(o, trace_run(file));
		rc = rc ? rc : rc_finish;
	}
	report_set_free(set);
	return rc ? rc : cli_say_missed(o->paths[0], trace_run(file), err);
}

/* ---- of several files ------------------------------------------------------------------------ */

/* All consumers of a set as one. */
struct fan {
	struct consumer consumer;
	struct consumer *const *row;
	size_t n;
};

static int fan_begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	const struct fan *fan = (const struct fan *)self;

	return consumers_begin(fan->row, fan->n, run, err);
}

static int fan_event(struct consumer *self, const struct event *event, struct err *err)
{
	const struct fan *fan = (const struct fan *)self;

	return consumers_event(fan->row, fan->n, event, err);
}

static int fan_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	const struct fan *fan = (const struct fan *)self;

	return consumers_end(fan->row, fan->n, run, err);
}

static const struct consumer_ops fan_ops = {
	.begin = fan_begin, .event = fan_event, .end = fan_end, .metrics = true, .stalls = true
};

/* Those that the account makes, which is of all ranks: all others are of one file's order. */
static int check_together(const struct report_command *o, struct err *err)
{
	for (size_t i = 0; i < o->n_choices; i++) {
		const char *name = o->choices[i].report->name;

		if (strcmp(name, "ranks") && strcmp(name, "why") && strcmp(name, "gaps") &&
		    strcmp(name, "overlap"))
			return err_set(
				err, EINVAL,
				"%s is of one file: ranks, why, gaps and overlap are of several "
				"that were recorded at the same time",
				name);
	}
	if (cli_is_part(&o->range) || cli_is_chosen(&o->range))
		return err_set(err, EINVAL,
		               "of several files all is read: no --from, --pid and the "
		               "like");
	return 0;
}

/* Of a file that does not go with those before. */
static int refuse_apart(const struct report_command *o, const struct machines *machines, size_t i,
                        enum together_how how, struct err *err)
{
	static const char *const why[] = {
		[TOGETHER_NO_CLOCK] = "which clock its times are of was not recorded",
		[TOGETHER_TWIN] = "it says that it began in the nanosecond in which another one "
				  "did, which it is no copy of",
		[TOGETHER_OTHER_TIME] = "it was recorded at another time",
		[TOGETHER_TOO_MANY] = "there are more than are read together",
	};

	if (how == TOGETHER_OTHER_CLOCK)
		return err_set(err, EINVAL,
		               "%s does not go with %s: %s; \"cuscope why FILE...\" answers each, "
		               "and tells whom a job waits for that stands still",
		               o->paths[i], o->paths[0], machines_why(machines, i));
	return err_set(err, EINVAL, "%s does not go with %s: %s", o->paths[i], o->paths[0],
	               why[how]);
}

/* Those that go with the first; one that is there already is left out. */
static int join_together(struct report_command *o, const struct machines *machines,
                         struct trace_file **files, struct together *together, struct err *err)
{
	size_t n = 1;

	*together = together_of(trace_run(files[0]), files[0], machines_clock(machines, 0));
	for (size_t i = 1; i < o->n_paths; i++) {
		enum together_how how = together_join(together, trace_run(files[i]), files[i],
		                                      machines_clock(machines, i));

		if (how == TOGETHER_SAME) {
			cli_say("%s is read once: it is a recording that another file has",
			        o->paths[i]);
			trace_close(files[i]);
			files[i] = NULL;
			continue;
		}
		if (how != TOGETHER)
			return refuse_apart(o, machines, i, how, err);
		o->paths[n] = o->paths[i];
		files[n++] = files[i];
		if (n <= i)
			files[i] = NULL;
	}
	o->n_paths = n;
	return 0;
}

static int open_together(struct report_command *o, struct trace_file **files,
                         struct together *together, struct err *err)
{
	struct machines machines;
	int rc = 0;

	for (size_t i = 0; i < o->n_paths && !rc; i++)
		rc = trace_open(o->paths[i], &files[i], err);
	if (rc)
		return rc;
	machines_align(&machines, files, o->n_paths);
	rc = join_together(o, &machines, files, together, err);
	machines_clear(&machines);
	return rc;
}

static int print_together(struct report_command *o, struct trace_file *const *files,
                          const struct together *together, struct err *err)
{
	struct err errs[TOGETHER_MAX] = { 0 };
	struct fan fan = { .consumer = { &fan_ops } };
	struct report_set *set;
	int rc;

	if (o->set.folder && make_folder(o->set.folder, err))
		return err->code;
	if (report_set_new(o->choices, o->n_choices, &o->set, &set, err))
		return err->code;
	fan.row = report_set_consumers(set, &fan.n);
	rc = together_read(together, files, &fan.consumer, errs, err);
	if (cli_worth_showing(rc) && report_set_finish(set, rc ? NULL : err) && !rc)
		rc = err->code;
	report_set_free(set);
	for (size_t i = 0; i < o->n_paths; i++) {
		if (errs[i].text[0] && !err->text[0])
			*err = errs[i];
		if (!errs[i].text[0] && !err->text[0])
			rc = cli_say_missed(o->paths[i], trace_run(files[i]), err);
	}
	return rc;
}

static int report_together(struct report_command *o, struct err *err)
{
	struct trace_file *files[TOGETHER_MAX] = { NULL };
	struct together together;
	int rc = check_together(o, err);

	if (!rc)
		rc = open_together(o, files, &together, err);
	if (!rc)
		rc = print_together(o, files, &together, err);
	for (size_t i = 0; i < TOGETHER_MAX; i++)
		if (files[i])
			trace_close(files[i]);
	return rc;
}

static int check_options(const struct report_command *o, struct err *err)
{
	bool gaps = false;

	for (size_t i = 0; i < o->n_choices; i++) {
		gaps = gaps || !strcmp(o->choices[i].report->name, "gaps");
		if (o->choices[i].report->page && o->set.table.sort)
			return err_set(err, EINVAL,
			               "%s is a page, not a table: --sort has nothing to put in "
			               "order there",
			               o->choices[i].report->name);
		if (o->choices[i].report->page && o->set.table.form == TABLE_FORM_CSV)
			return err_set(err, EINVAL,
			               "%s is a page, not a table: there is no csv of it "
			               "(--format table or json)",
			               o->choices[i].report->name);
	}
	if (o->of_gaps && !gaps)
		return err_set(err, EINVAL,
		               "%s is of the report gaps, which is none of those chosen",
		               o->of_gaps);
	return 0;
}

static int report_one(struct report_command *o, struct err *err)
{
	struct trace_file *file;
	int rc = trace_open(o->paths[0], &file, err);

	if (rc)
		return rc;
	rc = print_reports(o, file, err);
	trace_close(file);
	return rc;
}

static int report(struct report_command *o, struct err *err)
{
	struct report_choice choice;
	int rc;

	if (!o->n_choices) {
		rc = report_choose(DEFAULT_REPORT, &choice, err);
		if (rc)
			return rc;
		add_choice(o, &choice);
	}
	cli_bound_output(&o->range, o->paths[0]);
	o->set.table.out = stdout;
	o->set.table.note = tell_note;
	o->set.from_ns = o->range.from_ns;
	o->set.part = cli_is_part(&o->range);
	o->set.chosen = cli_is_chosen(&o->range);
	o->set.to_ns = o->range.has_to ? o->range.to_ns : 0;
	if (!o->set.folder) {
		o->set.table.color = cli_color(o->color, stdout);
		o->set.table.width = cli_width(stdout);
	}
	return o->n_paths > 1 ? report_together(o, err) : report_one(o, err);
}

int cli_report(int argc, char **argv)
{
	struct option_command options = {
		.group = { OPTION_ROWS(rows), .parts = parts, .word = report_word,
		           .end = report_end },
		.operands = "FILE... [NAME...]",
	};
	struct report_command o = { 0 };
	struct err err = { 0 };
	char *doc = make_doc();
	int status = 0;

	options.doc = doc;
	option_parse(&options, argc, argv, false, &o);
	cli_ignore_signals();
	if (check_options(&o, &err))
		status = EXIT_USAGE;
	else if (report(&o, &err))
		status = EXIT_FAILURE;
	if (status)
		cli_say_failure(&err);
	free(o.choices);
	cli_recordings_free(&o.files);
	free(o.range.pids);
	free(doc);
	return status;
}
