// SPDX-License-Identifier: MIT
/* `cuscope record`: what trace would show, into a file. */
#include "cli/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "analysis/missed.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/xalloc.h"

#define CHOSEN_WORDS_MAX 1023

/* What --last may take where it is a time: of all memory, and threads whose names are kept. */
#define LAST_PART    4
#define LAST_THREADS 262144

#define BEGIN_LEAST_NS 2000000000ull
#define BEGIN_MOST_NS  (24 * 3600 * 1000000000ull)
#define BEGIN_SOON_NS  1000000000ull /* what comes sooner is left out: hooks take some of it */

struct record_options {
	struct cli_attach attach;
	struct cli_stacks stacks;
	struct cli_metrics metrics;
	const char *output;
	uint64_t last_ns, last_bytes; /* --last */
	struct chosen_options chosen;
	mode_t mode;
	uint64_t begin_each_ns; /* --begin-at; 0: at once */
	bool force, verbose, no_ras;
	bool own_name; /* output is not what the user gave */
	const char *html;
};

/* A recording while it runs. */
struct record_run {
	struct recording recording; /* first: what callbacks get */
	struct record_options *options;
	unsigned snapshots; /* files that have been written, with those that were there before */
	char *name;         /* of the last of them; NULL: there is none but output */
	struct missed_left_out left_out; /* of the last snapshot */
	bool told_short;                 /* that --last is less than the time that was asked for */
	int page_rc;                     /* of --html */
	struct err page_err;
};

/* ---- options ------------------------------------------------------------------------------- */

static bool record_take_last(const struct argp_state *state, void *to, const char *value)
{
	struct record_options *o = to;

	if (!parse_duration_ns(value, &o->last_ns) && !parse_bytes(value, &o->last_bytes))
		return false;
	if (!o->last_ns && !o->last_bytes)
		option_bad_value(state, "--last", value, "length of time or of memory");
	return true;
}

/* A moment that comes again: whoever asks for it within the time between two begins with others. */
static bool record_take_begin(const struct argp_state *state, void *to, const char *value)
{
	uint64_t *each_ns = to;

	return *value == '/' && parse_duration_ns(value + 1, each_ns) &&
	       *each_ns >= BEGIN_LEAST_NS && *each_ns <= BEGIN_MOST_NS;
}

static const struct option_row rows[] = {
	{ .title = "What is kept, and where:", .order = 3 },
	{ "output", 'o', "FILE",
	  "the file (default: cuscope-COMMAND.cuscope or cuscope-PID.cuscope)", OPTION_TEXT,
	  offsetof(struct record_options, output) },
	CLI_FORCE_ROW(struct record_options, force, "overwrite files that exist"),
	CLI_MODE_ROW(struct record_options, mode),
	{ "html", 0, "FILE",
	  "also write the recording as a page for a browser: why, a timeline, tables", OPTION_TEXT,
	  offsetof(struct record_options, html) },
	{ "last", 0, "LENGTH",
	  "keep only the last 10s or 1GB, in memory, and write it at the end or on SIGUSR2",
	  OPTION_TAKE, .take = record_take_last,
	  .is_no = "duration (10s, 2m) or size (64MiB, 1GB)" },
	{ "begin-at", 0, "/TIME",
	  "begin when the wall clock is at the next whole multiple of this, as others do (/10s)",
	  OPTION_TAKE, offsetof(struct record_options, begin_each_ns), .take = record_take_begin,
	  .is_no = "multiple to begin at (/10s, /1m; from /2s to /24h)" },
	{ "failed", 0, NULL,
	  "only calls that returned an error, also launches that the runtime refuses", OPTION_YES,
	  offsetof(struct record_options, chosen.failed) },
	{ "min-duration", 0, "TIME",
	  "only calls, and work of a GPU, that took this long (10us, 1.5ms)", OPTION_TIME,
	  offsetof(struct record_options, chosen.min_duration_ns), .least = 1, .most = OPTION_ANY },
	{ "max-events", 0, "N", "end when N calls were kept, those that they made not counted",
	  OPTION_NUMBER, offsetof(struct record_options, chosen.max_calls), .least = 1,
	  .most = OPTION_ANY },
	{ "kernel", 0, NULL, "also system calls to the NVIDIA driver, decoded", OPTION_YES,
	  offsetof(struct record_options, attach.capture.kernel) },
	{ "verbose", 'v', NULL, "also the durations of driver calls that runtime calls make",
	  OPTION_YES, offsetof(struct record_options, verbose) },
	CLI_NO_RAS_ROW(struct record_options, no_ras),
};

static const struct option_part parts[] = {
	{ &cli_attach_options, offsetof(struct record_options, attach) },
	{ &cli_stalls_options, offsetof(struct record_options, attach.gpu) },
	{ &cli_which_stacks_options, offsetof(struct record_options, stacks) },
	{ &cli_metrics_options, offsetof(struct record_options, metrics) },
	{ &cli_hooks_options, offsetof(struct record_options, attach.hooks) },
	{ 0 }
};

static const struct option_command options = {
	.group = { OPTION_ROWS(rows), .parts = parts },
	.operands = "[-- COMMAND [ARG...]]",
	.doc = "Keeps every CUDA call of a program in a file, for report, timeline and export."
	       "\vExamples:\n"
	       "  sudo cuscope record -o run.cuscope -- ./app\n"
	       "  sudo cuscope record -p 1234 --duration 10s\n"
	       "  sudo cuscope record --name 'python*' --last 30s -o crash.cuscope\n",
};

/* ---- files --------------------------------------------------------------------------------- */

/* "cuscope-app.cuscope"; targets that are neither a command nor a pid have no name of their own. */
static char *default_name(const struct target *target, char *const *command)
{
	const char *slash;

	if (target->kind == TARGET_PIDS)
		return xasprintf("cuscope-%d.cuscope", target->pids[0]);
	if (target->kind != TARGET_COMMAND)
		return xstrdup("cuscope-trace.cuscope");
	slash = strrchr(command[0], '/');
	return xasprintf("cuscope-%s.cuscope", slash && slash[1] ? slash + 1 : command[0]);
}

static void add_globs(struct buf *out, const char *option, const char *const *globs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf_printf(out, " %s %s", option, globs[i]);
}

/* Which options leave calls out, for those who read the file. NULL: none does. */
static char *chosen_words(const struct selection *selection, const struct chosen_options *chosen)
{
	AT_END(buf_free) struct buf out = { 0 };

	if (chosen->failed)
		buf_puts(&out, " --failed");
	if (chosen->min_duration_ns) {
		buf_puts(&out, " --min-duration ");
		buf_duration(&out, chosen->min_duration_ns);
	}
	for (int cls = 0; cls < CLASS_COUNT; cls++)
		if (selection->classes & 1u << cls)
			buf_printf(&out, " --class %s", api_class_name((enum api_class)cls));
	add_globs(&out, "--only", selection->only, selection->n_only);
	add_globs(&out, "--skip", selection->skip, selection->n_skip);
	return out.len ? xasprintf("%.*s", CHOSEN_WORDS_MAX, out.data + 1) : NULL;
}

/*
 * The next moment that all who are asked now agree on, by the wall clock; told of by a clock that
 * nobody sets. What came before it is not kept.
 */
static void choose_begin(struct record_options *o)
{
	uint64_t now_ns = clock_of_ns(CLOCK_REALTIME), each_ns = o->begin_each_ns, at_ns;
	char text[32];
	time_t seconds;
	struct tm tm;

	if (!each_ns)
		return;
	at_ns = (now_ns + BEGIN_SOON_NS + each_ns - 1) / each_ns * each_ns;
	o->chosen.from_ns = o->attach.capture.from_ns = clock_now_ns() + (at_ns - now_ns);
	seconds = (time_t)(at_ns / 1000000000);
	strftime(text, sizeof(text), "%H:%M:%S", localtime_r(&seconds, &tm));
	cli_say("the recording begins at %s, in %.1f s", text, (double)(at_ns - now_ns) / 1e9);
}

/* What --last is to write is not there before: a mistake is better told now. */
static int check_chosen(const struct record_options *o, struct err *err)
{
	if (!o->attach.capture.returns && (o->chosen.failed || o->chosen.min_duration_ns))
		return err_set(err, EINVAL, "%s needs returns, which --no-returns does not record",
		               o->chosen.failed ? "--failed" : "--min-duration");
	if (o->begin_each_ns && (o->last_ns || o->last_bytes))
		return err_set(err, EINVAL,
		               "--last keeps what came last, whatever --begin-at says");
	if (o->html && (o->last_ns || o->last_bytes))
		return err_set(err, EINVAL,
		               "--html is of a whole recording: of what --last has written "
		               "'cuscope export FILE -o page.html' makes a page");
	if (o->html && !strcmp(o->html, o->output))
		return err_set(err, EINVAL, "the recording and its page cannot be one file: %s",
		               o->html);
	return cli_hooks_check(&o->attach.hooks, o->attach.capture.returns, err);
}

/* "run.cuscope", then "run-2.cuscope" and so on; without --force the first that is not there. */
static int open_next(struct record_run *r, struct err *err)
{
	const struct record_options *o = r->options;
	const char *path = o->output, *ending = strrchr(path, '.');
	size_t stem = ending && !strchr(ending, '/') ? (size_t)(ending - path) : strlen(path);
	int rc;

	do {
		free(r->name);
		r->name = ++r->snapshots == 1 ? xstrdup(path)
		                              : xasprintf("%.*s-%u%s", (int)stem, path,
		                                          r->snapshots, path + stem);
		rc = recording_open(&r->recording, r->name, o->force, o->mode, err);
	} while (rc == -EEXIST && r->snapshots < 100000);
	if (!rc) /* of those that were there */
		*err = (struct err){ 0 };
	return rc;
}

/* A name that a user gave stands; another recording of the same program has the next. */
static int open_first(struct record_run *r, struct err *err)
{
	const struct record_options *o = r->options;
	int rc = o->own_name ? open_next(r, err)
	                     : recording_open(&r->recording, o->output, o->force, o->mode, err);

	if (!rc && r->snapshots > 1)
		cli_say("%s exists already: this recording goes to %s", o->output, r->name);
	return rc;
}

static int check_output(struct record_run *r, struct err *err)
{
	const struct record_options *o = r->options;
	int rc;

	if (!strcmp(o->output, "-"))
		return err_set(err, EINVAL,
		               "a trace cannot be written to standard output: give a file, or use "
		               "'cuscope trace', which prints");
	if (!o->last_ns && !o->last_bytes)
		return 0;
	rc = open_first(r, err);
	if (!rc)
		new_file_drop(&r->recording.file);
	r->snapshots = 0;
	return rc;
}

/* The writer closes a descriptor of its own. */
static int open_snapshot(void *data, const char **name, struct err *err)
{
	struct record_run *r = data;
	int rc = open_next(r, err);

	*name = r->name;
	return rc ? rc : fcntl(fileno(r->recording.file.out), F_DUPFD_CLOEXEC, 0);
}

static uint64_t quarter_of_memory(void)
{
	return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / LAST_PART;
}

static void tell_left_out(void *data, struct run_info *run)
{
	struct record_run *r = data;

	missed_left_out_free(&r->left_out);
	missed_left_out_add(&r->left_out, r->recording.writer, run);
}

/* What was asked for is a time, and what its events take nobody knows before. */
static void tell_short(struct record_run *r)
{
	const struct record_options *o = r->options;
	struct writer_stats stats;
	char text[160];

	writer_stats(r->recording.writer, &stats);
	if (r->told_short || !o->last_ns || stats.bytes < quarter_of_memory() / 10 * 9)
		return;
	r->told_short = true;
	snprintf(text, sizeof(text),
	         "not all of that time is there: its events take more than a quarter of this "
	         "machine's memory, which is the most that --last takes");
	recording_notice(r, text);
}

static void snapshot_written(void *data, const struct run_info *run, uint64_t events,
                             uint64_t bytes)
{
	struct record_run *r = data;
	AT_END(buf_free) struct buf missed = { 0 };
	struct err err = { 0 };

	missed_brief(&missed, run);
	tell_short(r);
	if (cli_settle(&r->recording.file, true, &err))
		recording_notice(r, err.text);
	else
		recording_say_written(&r->recording, r->name, events, bytes, &missed);
}

/* SIGUSR2; what goes wrong does not end the recording. */
static void take_snapshot(void *data, const struct run_info *run)
{
	struct record_run *r = data;
	struct err err = { 0 };

	if (!writer_snapshot(r->recording.writer, run, &err))
		return;
	recording_notice(r, err.text);
	cli_settle(&r->recording.file, false, NULL);
}

/* Without --last: as it is by default, the signal would end the recording in the middle. */
static void refuse_snapshot(void *data, const struct run_info *run)
{
	recording_notice(data,
	                 "SIGUSR2 writes what --last keeps: this recording is in its file already");
}

/* ---- recording ----------------------------------------------------------------------------- */

static int record_window(struct record_run *run, struct err *err)
{
	struct record_options *o = run->options;
	struct recording *r = &run->recording;
	const bool late = o->last_ns && o->attach.capture.gpu; /* what is to be kept is */
	const struct writer_window window = {
		.last_ns = o->last_ns + (late ? CAPTURE_GPU_LATE_NS : 0),
		.last_bytes = o->last_bytes ? o->last_bytes : quarter_of_memory(),
		.shared = true,
		.threads = LAST_THREADS,
		.open = open_snapshot,
		.tell = tell_left_out,
		.written = snapshot_written,
		.data = run
	};
	int status;

	r->writer = writer_new_window(&window);
	r->chosen = chosen_new(r->writer, &r->chosen_options);
	r->held = o->attach.capture.who_newest = true;
	o->attach.capture.snapshot = take_snapshot;
	status = recording_capture(r, &r->chosen, 1, err);
	r->chosen->ops->free(r->chosen);
	cli_settle(&r->file, false, NULL); /* what the last one could not write to its end */
	r->writer->ops->free(r->writer);
	missed_left_out_free(&run->left_out);
	return status;
}

static struct cli_page record_page_of(const struct record_options *o)
{
	return (struct cli_page){ .path = o->html, .force = o->force, .mode = o->mode };
}

/* Before a command that runs on is waited for. */
static void record_page(struct recording *recording, int fd)
{
	struct record_run *run = (struct record_run *)recording;
	const struct record_options *o = run->options;
	const struct cli_page page = record_page_of(o);
	const struct cli_range all = { 0 };

	if (fd < 0)
		return;
	cli_bound_output(&all, NULL);
	run->page_rc = cli_page_of(fd, run->name ? run->name : o->output, &page, &run->page_err);
	if (!run->page_rc)
		cli_say("page: %s", o->html);
}

static int record_all(struct record_run *run, struct err *err)
{
	const struct cli_page page = record_page_of(run->options);
	int status;

	if (page.path && cli_page_check(&page, err))
		return EXIT_FAILURE;
	if (open_first(run, err))
		return EXIT_FAILURE;
	run->options->attach.capture.snapshot = refuse_snapshot;
	if (run->options->html)
		run->recording.over = record_page;
	status = recording_take(&run->recording, run->name ? run->name : run->options->output, err);
	if (!run->page_rc)
		return status;
	if (err->text[0]) /* one sentence is told at the end, another before */
		cli_say("%s", err->text);
	*err = run->page_err;
	return status ? status : EXIT_FAILURE;
}

static int record(struct record_options *o, struct err *err)
{
	struct record_run run = { .options = o,
		                  .recording = { .attach = &o->attach,
		                                 .stacks = &o->stacks,
		                                 .metrics = &o->metrics,
		                                 .chosen_options = o->chosen } };
	char *words;
	int status;

	if (check_chosen(o, err))
		return EXIT_USAGE;
	if (check_output(&run, err))
		return EXIT_FAILURE;
	choose_begin(o);
	run.recording.chosen_options = o->chosen;
	if (o->attach.gpu.asked && o->attach.capture.returns)
		cli_ranks_ask(&o->attach, o->no_ras);
	words = chosen_words(&o->attach.selection, &o->chosen);
	/* of a choice of calls nobody can say where the time went, and all processes are many */
	if (!words && o->attach.choice.target.kind != TARGET_ALL)
		cli_stacks_cheap(&o->stacks);
	/* of all processes, waits of those that have to do with no GPU would be most of the file */
	if (o->attach.capture.kernel && o->attach.choice.target.kind != TARGET_ALL)
		cli_stacks_wait(&o->stacks);
	o->attach.capture.nested_returns = o->verbose;
	run.recording.chosen_words = words;
	status = o->last_ns || o->last_bytes ? record_window(&run, err) : record_all(&run, err);
	free(words);
	free(run.name);
	return status;
}

int cli_record(int argc, char **argv)
{
	struct record_options o = { .attach = { .capture = { .returns = true } } };
	struct origin origin;
	struct err err = { 0 };
	AT_END(at_end_free) char *name = NULL;
	int status;

	origin_save(&origin);
	cli_stacks_init(&o.stacks);
	option_parse(&options, argc, argv, true, &o);
	o.attach.choice.target.command.origin = &origin;
	cli_ignore_signals();
	if (cli_target_settle(&o.attach.choice, o.attach.command, &err) ||
	    cli_metrics_check(&o.metrics, &o.attach.choice.target, &err))
		return cli_refuse(argv[0], &err);
	if (!o.output)
		o.output = name = default_name(&o.attach.choice.target, o.attach.command);
	o.own_name = name != NULL;
	status = record(&o, &err);
	if (err.text[0])
		cli_say("%s", err.text);
	cli_attach_free(&o.attach);
	return status;
}
