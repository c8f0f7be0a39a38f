// SPDX-License-Identifier: MIT
/* `cuscope record`: what trace would show, into a file. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "analysis/missed.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/parse.h"
#include "base/xalloc.h"
#include "trace/chosen.h"
#include "trace/writer.h"

#define PROGRESS_NS      500000000ull
#define CHOSEN_WORDS_MAX 1023

struct record_options {
	struct cli_attach attach;
	struct cli_stacks stacks;
	struct cli_metrics metrics;
	const char *output;
	uint64_t last_ns, last_bytes; /* --last */
	struct chosen_options chosen;
	mode_t mode;
	bool force, verbose;
	bool own_name; /* output is not what the user gave */
};

/* What is to be said of a recording in its last line. */
struct closing {
	struct consumer consumer; /* first: what the capture holds */
	struct buf missed;        /* missed_brief() */
};

/* A recording while it runs. */
struct recording {
	struct record_options *options;
	struct consumer *writer;
	struct consumer *chosen; /* in front of it */
	struct closing closing;
	char *chosen_words;
	struct new_file file; /* that is being written */
	unsigned snapshots;   /* files that have been written, with those that were there before */
	char *name;           /* of the last of them; NULL: there is none but output */
	uint64_t shown_ns;    /* when the progress was */
	bool shown;
};

/* ---- options ------------------------------------------------------------------------------- */

enum { OPT_FORCE = 3000, OPT_LAST, OPT_FAILED, OPT_MIN_DURATION, OPT_MAX_EVENTS, OPT_KERNEL };

static const struct argp_option options[] = {
	{ 0, 0, 0, 0, "What is kept, and where:", 3 },
	{ "output", 'o', "FILE", 0,
	  "the file (default: cuscope-COMMAND.cuscope or cuscope-PID.cuscope)", 0 },
	{ "force", OPT_FORCE, 0, 0, "overwrite files that exist", 0 },
	CLI_MODE_OPTION,
	CLI_OLD_MODE_OPTION,
	{ "last", OPT_LAST, "LENGTH", 0,
	  "keep only the last 10s or 1GB, in memory, and write it at the end or on SIGUSR2", 0 },
	{ "failed", OPT_FAILED, 0, 0, "only calls that returned an error", 0 },
	{ "min-duration", OPT_MIN_DURATION, "TIME", 0,
	  "only calls, and work of a GPU, that took this long (10us, 1.5ms)", 0 },
	{ "max-events", OPT_MAX_EVENTS, "N", 0,
	  "end when N calls were kept, those that they made not counted", 0 },
	{ "kernel", OPT_KERNEL, 0, 0, "also system calls to the NVIDIA driver, decoded", 0 },
	{ "verbose", 'v', 0, 0, "also the durations of driver calls that runtime calls make", 0 },
	{ 0 }
};

static void parse_last(const struct argp_state *state, struct record_options *o, const char *arg)
{
	if (!parse_duration_ns(arg, &o->last_ns) && !parse_bytes(arg, &o->last_bytes))
		cli_bad_value(state, "--last", arg, "duration (10s, 2m) or size (64MiB, 1GB)");
	if (!o->last_ns && !o->last_bytes)
		cli_bad_value(state, "--last", arg, "length of time or of memory");
}

static error_t parse_chosen(int key, char *arg, struct argp_state *state)
{
	struct chosen_options *o = &((struct record_options *)state->input)->chosen;

	switch (key) {
	case OPT_FAILED:
		o->failed = true;
		return 0;
	case OPT_MIN_DURATION:
		o->min_duration_ns = cli_duration(state, "--min-duration", arg);
		return 0;
	case OPT_MAX_EVENTS:
		if (!parse_number(arg, UINT64_MAX / 2, &o->max_calls) || !o->max_calls)
			cli_bad_value(state, "--max-events", arg, "number from 1 on");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct record_options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &o->attach;
		state->child_inputs[1] = &o->stacks;
		state->child_inputs[2] = &o->metrics;
		state->child_inputs[3] = &o->attach.hooks;
		return 0;
	case 'o':
		o->output = arg;
		return 0;
	case OPT_FORCE:
		o->force = true;
		return 0;
	case CLI_OPT_MODE:
		o->mode = cli_parse_mode(state, arg);
		return 0;
	case OPT_LAST:
		parse_last(state, o, arg);
		return 0;
	case 'v':
		o->verbose = true;
		return 0;
	case OPT_KERNEL:
		o->attach.capture.kernel = true;
		return 0;
	}
	return parse_chosen(key, arg, state);
}

static const struct argp_child children[] = { { &cli_attach_argp, 0, NULL, 0 },
	                                      { &cli_which_stacks_argp, 0, NULL, 0 },
	                                      { &cli_metrics_argp, 0, NULL, 0 },
	                                      { &cli_hooks_argp, 0, NULL, 0 },
	                                      { 0 } };

static const struct argp argp = {
	.options = options,
	.parser = parse_option,
	.args_doc = "[-- COMMAND [ARG...]]",
	.doc = "Keeps every CUDA call of a program in a file, for report, timeline and export."
	       "\vExamples:\n"
	       "  sudo cuscope record -o run.cuscope -- ./app\n"
	       "  sudo cuscope record -p 1234 --duration 10s\n"
	       "  sudo cuscope record --name 'python*' --last 30s -o crash.cuscope\n",
	.children = children,
};

/* ---- what is said -------------------------------------------------------------------------- */

static void clear_progress(struct recording *r)
{
	if (r->shown)
		fputs("\r\033[K", stderr);
	r->shown = false;
}

static void notice(void *data, const char *text)
{
	clear_progress(data);
	cli_say("%s", text);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* "123456 events  1.02 MiB  0 lost  overhead 1.2 %", over and over in the same line. */
static void show_progress(void *data, const struct capture_state *state)
{
	struct recording *r = data;
	struct writer_stats stats;
	struct winsize size;
	struct buf line = { 0 };

	if (now_ns() - r->shown_ns < PROGRESS_NS || ioctl(STDERR_FILENO, TIOCGWINSZ, &size))
		return;
	r->shown_ns = now_ns();
	r->shown = true;
	writer_stats(r->writer, &stats);
	buf_printf(&line, "recording: %llu events  ", (unsigned long long)stats.events);
	buf_bytes(&line, stats.bytes);
	buf_printf(&line, "%s  %llu lost  overhead %.1f %%",
	           r->options->last_ns || r->options->last_bytes ? " held" : "",
	           (unsigned long long)missed_events(state->lost), state->overhead_percent);
	fprintf(stderr, "\r%.*s\033[K", size.ws_col > 1 ? size.ws_col - 1 : 80, line.data);
	buf_free(&line);
}

static void say_written(struct recording *r, const char *name, uint64_t events, uint64_t bytes,
                        const struct buf *missed)
{
	struct buf text = { 0 };

	clear_progress(r);
	buf_printf(&text, "%s: %llu events in ", name, (unsigned long long)events);
	buf_bytes(&text, bytes);
	if (events >= 1000) /* else it is definitions rather than events */
		buf_printf(&text, " (%.1f bytes an event)", (double)bytes / (double)events);
	if (missed && missed->len)
		buf_printf(&text, ", %s ('cuscope info %s' says why)", missed->data, name);
	else if (missed)
		buf_puts(&text, ", none lost");
	cli_say("%s; next: cuscope report %s", text.data, name);
	buf_free(&text);
}

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

/* A trace is read in several places at once, so it has to be a file. */
static int open_file(struct recording *r, const char *path, struct err *err)
{
	const struct record_options *o = r->options;
	const struct new_file_options wanted = {
		.replace = o->force, .grows = true, .regular = true, .mode = o->mode
	};
	int rc = new_file_open(&r->file, path, &wanted, err);

	if (rc == -EINVAL)
		return err_set(err, EINVAL,
		               "cannot record to %s: it is not a regular file ('cuscope trace' "
		               "writes to pipes)",
		               path);
	return rc;
}

static void add_globs(struct buf *out, const char *option, const char *const *globs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf_printf(out, " %s %s", option, globs[i]);
}

/* Which options leave calls out, for those who read the file. NULL: none does. */
static char *chosen_words(const struct selection *selection, const struct chosen_options *chosen)
{
	struct buf out = { 0 };
	char *words;

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
	words = out.len ? xasprintf("%.*s", CHOSEN_WORDS_MAX, out.data + 1) : NULL;
	buf_free(&out);
	return words;
}

/* What --last is to write is not there before: a mistake is better told now. */
static int check_chosen(const struct record_options *o, struct err *err)
{
	if (!o->attach.capture.returns && (o->chosen.failed || o->chosen.min_duration_ns))
		return err_set(err, EINVAL, "%s needs returns, which --no-returns does not record",
		               o->chosen.failed ? "--failed" : "--min-duration");
	return cli_hooks_check(&o->attach.hooks, o->attach.capture.returns, err);
}

/* "run.cuscope", then "run-2.cuscope" and so on; without --force the first that is not there. */
static int open_next(struct recording *r, struct err *err)
{
	const char *path = r->options->output, *ending = strrchr(path, '.');
	size_t stem = ending && !strchr(ending, '/') ? (size_t)(ending - path) : strlen(path);
	int rc;

	do {
		free(r->name);
		r->name = ++r->snapshots == 1 ? xstrdup(path)
		                              : xasprintf("%.*s-%u%s", (int)stem, path,
		                                          r->snapshots, path + stem);
		rc = open_file(r, r->name, err);
	} while (rc == -EEXIST && r->snapshots < 100000);
	if (!rc) /* of those that were there */
		*err = (struct err){ 0 };
	return rc;
}

/* A name that a user gave stands; another recording of the same program has the next. */
static int open_first(struct recording *r, struct err *err)
{
	const struct record_options *o = r->options;
	int rc = o->own_name ? open_next(r, err) : open_file(r, o->output, err);

	if (!rc && r->snapshots > 1)
		cli_say("%s exists already: this recording goes to %s", o->output, r->name);
	return rc;
}

static int check_output(struct recording *r, struct err *err)
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
		new_file_drop(&r->file);
	r->snapshots = 0;
	return rc;
}

/* The writer closes a descriptor of its own. */
static int open_snapshot(void *data, const char **name, struct err *err)
{
	struct recording *r = data;
	int rc = open_next(r, err);

	*name = r->name;
	return rc ? rc : fcntl(fileno(r->file.out), F_DUPFD_CLOEXEC, 0);
}

static void snapshot_written(void *data, const struct run_info *run, uint64_t events,
                             uint64_t bytes)
{
	struct recording *r = data;
	struct buf missed = { 0 };
	struct err err = { 0 };

	missed_brief(&missed, run);
	if (cli_settle(&r->file, true, &err))
		notice(r, err.text);
	else
		say_written(r, r->name, events, bytes, &missed);
	buf_free(&missed);
}

/* SIGUSR2; what goes wrong does not end the recording. */
static void take_snapshot(void *data, const struct run_info *run)
{
	struct recording *r = data;
	struct err err = { 0 };

	if (!writer_snapshot(r->writer, run, &err))
		return;
	notice(r, err.text);
	cli_settle(&r->file, false, NULL);
}

/* Without --last: as it is by default, the signal would end the recording in the middle. */
static void refuse_snapshot(void *data, const struct run_info *run)
{
	notice(data, "SIGUSR2 writes what --last keeps: this recording is in its file already");
}

static bool enough(void *data)
{
	return chosen_enough(((const struct recording *)data)->chosen);
}

/* ---- recording ----------------------------------------------------------------------------- */

static int capture(struct recording *r, struct consumer **consumers, size_t count, struct err *err)
{
	struct record_options *o = r->options;

	o->attach.capture.target = o->attach.choice.target;
	o->attach.selection.failed = o->chosen.failed;
	o->attach.capture.selection = o->attach.selection;
	o->attach.capture.chosen = r->chosen_words;
	/* of all processes, waits of those that have to do with no GPU would be most of the file */
	if (o->attach.capture.kernel && o->attach.choice.target.kind != TARGET_ALL)
		cli_stacks_wait(&o->stacks);
	o->attach.capture.stacks = cli_stacks_settle(&o->stacks);
	cli_metrics_settle(&o->metrics, true, &o->attach.capture);
	o->attach.capture.who = true;
	o->attach.capture.who_newest = o->last_ns || o->last_bytes;
	o->attach.capture.enough = enough;
	o->attach.capture.nested_returns = o->verbose;
	o->attach.capture.consumers = consumers;
	o->attach.capture.n_consumers = count;
	o->attach.capture.notice = notice;
	o->attach.capture.progress = isatty(STDERR_FILENO) ? show_progress : NULL;
	o->attach.capture.data = r;
	return cli_capture(&o->attach.capture, err);
}

static int record_window(struct recording *r, struct err *err)
{
	struct record_options *o = r->options;
	const bool late = o->last_ns && o->attach.capture.gpu; /* what is to be kept is */
	const struct writer_window window = { .last_ns =
		                                      o->last_ns + (late ? CAPTURE_GPU_LATE_NS : 0),
		                              .last_bytes = o->last_bytes,
		                              .open = open_snapshot,
		                              .written = snapshot_written,
		                              .data = r };
	int status;

	r->writer = writer_new_window(&window);
	r->chosen = chosen_new(r->writer, &o->chosen);
	o->attach.capture.snapshot = take_snapshot;
	status = capture(r, &r->chosen, 1, err);
	r->chosen->ops->free(r->chosen);
	cli_settle(&r->file, false, NULL); /* what the last one could not write to its end */
	r->writer->ops->free(r->writer);
	return status;
}

static int closing_event(struct consumer *self, const struct event *event, struct err *err)
{
	return 0;
}

static int closing_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	missed_brief(&((struct closing *)self)->missed, run);
	return 0;
}

static void closing_free(struct consumer *self)
{
	buf_free(&((struct closing *)self)->missed);
}

static const struct consumer_ops closing_ops = { .event = closing_event,
	                                         .end = closing_end,
	                                         .free = closing_free };

/* The file grows under its name: a recording that is killed is read up to its last whole chunk. */
static int record_all(struct recording *r, struct err *err)
{
	struct err failure = { 0 };
	struct consumer *consumers[3];
	struct writer_stats stats;
	const char *path;
	bool began;
	int status;

	if (open_first(r, err))
		return EXIT_FAILURE;
	path = r->name ? r->name : r->options->output;
	consumers[0] = cli_placer(&r->file);
	r->writer = writer_new(fileno(r->file.out), path);
	consumers[1] = r->chosen = chosen_new(r->writer, &r->options->chosen);
	r->closing.consumer.ops = &closing_ops;
	consumers[2] = &r->closing.consumer;
	r->options->attach.capture.snapshot = refuse_snapshot;
	status = capture(r, consumers, 3, err);
	writer_stats(r->writer, &stats);
	began = stats.events || stats.ended;
	if (!began)
		new_file_drop(&r->file);
	cli_settle(&r->file, true, &failure);
	if (began)
		say_written(r, path, stats.whole, stats.bytes,
		            stats.ended && !failure.code ? &r->closing.missed : NULL);
	for (size_t i = 0; i < 3; i++)
		consumers[i]->ops->free(consumers[i]);
	r->writer->ops->free(r->writer);
	if (!failure.code || status)
		return status;
	*err = failure;
	return EXIT_FAILURE;
}

static int record(struct record_options *o, struct err *err)
{
	struct recording recording = { .options = o };
	int status;

	if (check_chosen(o, err))
		return EXIT_USAGE;
	if (check_output(&recording, err))
		return EXIT_FAILURE;
	recording.chosen_words = chosen_words(&o->attach.selection, &o->chosen);
	status = o->last_ns || o->last_bytes ? record_window(&recording, err)
	                                     : record_all(&recording, err);
	free(recording.chosen_words);
	free(recording.name);
	return status;
}

int cli_record(int argc, char **argv)
{
	struct record_options o = { .attach = { .capture = { .returns = true } } };
	struct origin origin;
	struct err err = { 0 };
	char *name = NULL;
	int status;

	origin_save(&origin);
	cli_stacks_init(&o.stacks);
	cli_parse(&argp, argc, argv, true, &o);
	o.attach.choice.target.command.origin = &origin;
	cli_ignore_signals();
	signal(SIGCHLD, SIG_DFL); /* ignored, the command would leave no status */
	if (cli_target_settle(&o.attach.choice, o.attach.command, &err)) {
		fprintf(stderr, "%s: %s\n", argv[0], err.text);
		return EXIT_USAGE;
	}
	if (!o.output)
		o.output = name = default_name(&o.attach.choice.target, o.attach.command);
	o.own_name = name != NULL;
	status = record(&o, &err);
	if (err.text[0])
		cli_say("%s", err.text);
	free(name);
	cli_attach_free(&o.attach);
	return status;
}
