// SPDX-License-Identifier: MIT
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/calls.h"
#include "base/file.h"
#include "base/parse.h"
#include "capture/capture.h"
#include "output/sink.h"

#define OUTPUT_BUFFER (1 << 18)

struct trace_options {
	struct target_choice choice;
	struct selection selection;
	struct capture_options capture;
	struct sink_options sink;
	const struct sink_format *format;
	const char *output;
	const char *json_summary;
	const char *color; /* auto, always, never */
	bool force, summary_only, verbose;
	char **command;
};

/* ---- options ------------------------------------------------------------------------------- */

enum {
	OPT_FORMAT = 3000,
	OPT_FORCE,
	OPT_BEGIN_END,
	OPT_FAILED,
	OPT_MIN_DURATION,
	OPT_MAX_EVENTS,
	OPT_NO_RETURNS,
	OPT_DURATION,
	OPT_TIMEOUT,
	OPT_SUMMARY_ONLY,
	OPT_JSON_SUMMARY,
	OPT_COLOR,
	OPT_MAX_OVERHEAD,
	OPT_WITHOUT,
	OPT_RING_SIZE,
};

static const struct argp_option options[] = {
	{ 0, 0, 0, 0, "Which calls are shown (the summary counts all):", 3 },
	{ "failed", OPT_FAILED, 0, 0, "only calls that returned an error", 0 },
	{ "min-duration", OPT_MIN_DURATION, "TIME", 0,
	  "only calls that took this long (10us, 1.5ms)", 0 },
	{ "max-events", OPT_MAX_EVENTS, "N", 0, "end when N calls were shown", 0 },
	{ "verbose", 'v', 0, 0,
	  "also the driver calls that runtime calls make, with their durations", 0 },
	{ 0, 0, 0, 0, "Output:", 4 },
	{ "output", 'o', "FILE", 0, "write the calls to FILE; its ending chooses the format", 0 },
	{ "format", OPT_FORMAT, "NAME", 0, "", 0 }, /* see cli_help_formats() */
	{ "force", OPT_FORCE, 0, 0, "overwrite files that exist", 0 },
	{ "begin-end", OPT_BEGIN_END, 0, 0,
	  "jsonl: a B and an E line for each call instead of one X", 0 },
	{ "summary-only", OPT_SUMMARY_ONLY, 0, 0, "no calls, just the summary", 0 },
	{ "json-summary", OPT_JSON_SUMMARY, "FILE", 0, "also write the summary as JSON", 0 },
	{ "color", OPT_COLOR, "WHEN", 0,
	  "always, never, or auto (the default): on a terminal, unless NO_COLOR is set", 0 },
	{ 0, 0, 0, 0, "How long, and at what cost:", 5 },
	{ "duration", OPT_DURATION, "TIME", 0, "end after this time (10s, 2m)", 0 },
	{ "timeout", OPT_TIMEOUT, "TIME", 0, "give up when no CUDA library was loaded by then", 0 },
	{ "no-returns", OPT_NO_RETURNS, 0, 0, "half the cost: no durations, no results", 0 },
	{ "max-overhead", OPT_MAX_OVERHEAD, "N%", 0,
	  "give up detail to slow targets down by less than this: getters, then durations, then "
	  "all but windows of time",
	  0 },
	{ "ring-size", OPT_RING_SIZE, "BYTES", 0,
	  "memory of all ring buffers together (8 MiB for each CPU)", 0 },
	{ "without", OPT_WITHOUT, "LIST", 0,
	  "kernel features not to use, as 'cuscope doctor' names them", 0 },
	{ 0 }
};

static uint64_t duration(const struct argp_state *state, const char *option, const char *arg)
{
	uint64_t ns;

	if (!parse_duration_ns(arg, &ns) || !ns)
		cli_bad_value(state, option, arg, "duration (10us, 1.5ms, 2s, 3m)");
	return ns;
}

static error_t parse_output(int key, char *arg, struct argp_state *state)
{
	struct trace_options *o = state->input;

	switch (key) {
	case 'o':
		o->output = arg;
		return 0;
	case OPT_FORMAT:
		o->format = cli_parse_format(state, arg);
		return 0;
	case OPT_FORCE:
		o->force = true;
		return 0;
	case OPT_BEGIN_END:
		o->sink.begin_end = true;
		return 0;
	case OPT_SUMMARY_ONLY:
		o->summary_only = true;
		return 0;
	case OPT_JSON_SUMMARY:
		o->json_summary = arg;
		return 0;
	case OPT_COLOR:
		if (strcmp(arg, "auto") && strcmp(arg, "always") && strcmp(arg, "never"))
			cli_bad_value(state, "--color", arg, "choice (auto, always or never)");
		o->color = arg;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static error_t parse_limits(int key, char *arg, struct argp_state *state)
{
	struct trace_options *o = state->input;
	uint64_t bytes;

	switch (key) {
	case OPT_DURATION:
		o->capture.duration_ns = duration(state, "--duration", arg);
		return 0;
	case OPT_TIMEOUT:
		o->capture.timeout_ns = duration(state, "--timeout", arg);
		return 0;
	case OPT_NO_RETURNS:
		o->capture.returns = false;
		return 0;
	case OPT_MAX_OVERHEAD:
		if (!parse_percent(arg, &o->capture.max_overhead))
			cli_bad_value(state, "--max-overhead", arg, "percentage (5% or 0.5%)");
		return 0;
	case OPT_RING_SIZE:
		if (!parse_bytes(arg, &bytes) || bytes < 65536 || bytes > 8ull << 30)
			cli_bad_value(state, "--ring-size", arg, "size from 64KiB to 8GiB");
		o->capture.ring_bytes = bytes;
		return 0;
	case OPT_WITHOUT:
		o->capture.without = arg;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct trace_options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &o->choice;
		state->child_inputs[1] = &o->choice;
		state->child_inputs[2] = &o->selection;
		return 0;
	case OPT_FAILED:
		o->sink.failed_only = true;
		return 0;
	case OPT_MIN_DURATION:
		o->sink.min_duration_ns = duration(state, "--min-duration", arg);
		return 0;
	case OPT_MAX_EVENTS:
		if (!parse_number(arg, UINT64_MAX / 2, &o->sink.max_events) || !o->sink.max_events)
			cli_bad_value(state, "--max-events", arg, "number from 1 on");
		return 0;
	case 'v':
		o->verbose = true;
		return 0;
	case ARGP_KEY_ARGS: /* what stands after -- or begins with the first word */
		o->command = state->argv + state->next;
		return 0;
	}
	if (parse_output(key, arg, state) == 0)
		return 0;
	return parse_limits(key, arg, state);
}

static const struct argp_child children[] = { { &cli_process_argp, 0, NULL, 0 },
	                                      { &cli_start_argp, 0, NULL, 0 },
	                                      { &cli_selection_argp, 0, NULL, 0 },
	                                      { 0 } };

static char *help_filter(int key, const char *text, void *input)
{
	return key == OPT_FORMAT ? cli_help_formats() : (char *)text;
}

static const struct argp argp = {
	.options = options,
	.parser = parse_option,
	.args_doc = "[-- COMMAND [ARG...]]",
	.doc = "Shows every CUDA call of a program as it happens, and sums it up at the end."
	       "\vExamples:\n"
	       "  sudo cuscope trace -- ./app\n"
	       "  sudo cuscope trace -p 1234 --duration 10s --summary-only\n"
	       "  sudo cuscope trace --name 'python*' --class memory,launch -o calls.jsonl\n",
	.children = children,
	.help_filter = help_filter,
};

/* ---- output -------------------------------------------------------------------------------- */

/* That the file can be made is known now; the format makes it itself, and expects none. */
static int make_way(const struct trace_options *o, int fd, FILE **out)
{
	close(fd);
	unlink(o->output);
	*out = NULL;
	return 0;
}

static int open_output(struct trace_options *o, FILE **out, struct err *err)
{
	int flags = O_WRONLY | O_CLOEXEC | O_CREAT | (o->force ? O_TRUNC : O_EXCL);
	struct stat st;
	int fd;

	*out = stdout;
	if (!o->output || !strcmp(o->output, "-"))
		return o->summary_only ? 0 : cli_check_stdout(o->format, err);
	if (stat(o->output, &st) == 0 && !S_ISREG(st.st_mode))
		flags = O_WRONLY | O_CLOEXEC; /* a pipe, /dev/null */
	fd = open(o->output, flags, 0644);
	if (fd < 0 && errno == EEXIST)
		return err_set(err, EEXIST, "%s exists already: --force overwrites it", o->output);
	if (fd < 0)
		return err_set(err, errno, "cannot write %s: %s", o->output, strerror(errno));
	o->sink.path = o->sink.place = o->output;
	if (o->format->opens_path && !o->summary_only)
		return make_way(o, fd, out);
	*out = fdopen(fd, "w");
	setvbuf(*out, NULL, _IOFBF, OUTPUT_BUFFER);
	return 0;
}

/* What could not begin leaves nothing behind that --force would be needed for next time. */
static void remove_if_empty(const struct trace_options *o, FILE *out)
{
	struct stat st;

	if (out)
		fflush(out);
	if (!o->force && stat(o->output, &st) == 0 && S_ISREG(st.st_mode) && !st.st_size)
		unlink(o->output);
}

static bool use_color(const struct trace_options *o, FILE *out)
{
	const char *no_color = getenv("NO_COLOR");

	if (o->color && strcmp(o->color, "auto"))
		return !strcmp(o->color, "always");
	return out && isatty(fileno(out)) && !(no_color && *no_color);
}

static size_t terminal_width(FILE *out)
{
	struct winsize size;

	if (!out || !isatty(fileno(out)) || ioctl(fileno(out), TIOCGWINSZ, &size))
		return 0;
	return size.ws_col;
}

/* The summary goes where it does not mix with lines that a program is to read. */
static FILE *summary_stream(const struct trace_options *o, FILE *out)
{
	if (o->summary_only || strcmp(o->format->name, "table") == 0)
		return out == stdout || o->summary_only ? out : stdout;
	return out == stdout ? stderr : stdout;
}

/* ---- running ------------------------------------------------------------------------------- */

static bool enough(void *data)
{
	return data && sink_done(data);
}

static void notice(void *data, const char *text)
{
	cli_say("%s", text);
}

static int choose_format(struct trace_options *o, struct err *err)
{
	if (!o->format && o->output)
		o->format = sink_format_by_ending(o->output);
	if (!o->format)
		o->format = sink_format_by_name("table");
	if (o->sink.begin_end && strcmp(o->format->name, "jsonl"))
		return err_set(err, EINVAL, "--begin-end goes with --format jsonl");
	return 0;
}

/* A mistake that would show only at the end of a long trace is better told now. */
static int check_json_summary(const char *path, bool force, struct err *err)
{
	struct stat st;

	if (!force && stat(path, &st) == 0 && S_ISREG(st.st_mode))
		return err_set(err, EEXIST, "%s exists already: --force overwrites it", path);
	return file_can_replace(path, err);
}

static int check_options(const struct trace_options *o, struct err *err)
{
	if (!o->capture.returns && o->sink.failed_only)
		return err_set(err, EINVAL,
		               "--failed needs results, which --no-returns does not record");
	if (!o->capture.returns && o->sink.min_duration_ns)
		return err_set(
			err, EINVAL,
			"--min-duration needs durations, which --no-returns does not record");
	return o->json_summary ? check_json_summary(o->json_summary, o->force, err) : 0;
}

/* Runs the capture with its consumers made. Returns the exit status. */
static int run(struct trace_options *o, struct consumer **consumers, size_t count,
               struct consumer *sink, struct err *err)
{
	struct capture *capture = NULL;
	int status, r;

	o->capture.target = o->choice.target;
	o->capture.selection = o->selection;
	o->capture.begin_records = o->sink.begin_end;
	o->capture.nested_returns = o->verbose;
	o->capture.consumers = consumers;
	o->capture.n_consumers = count;
	o->capture.enough = enough;
	o->capture.notice = notice;
	o->capture.data = sink;
	r = capture_open(&o->capture, &capture, err);
	if (r)
		return EXIT_FAILURE;
	r = capture_run(capture, err);
	if (r)
		cli_say("%s", err->text);
	err->text[0] = '\0';
	status = capture_finish(capture);
	capture_free(capture);
	return r && !status ? EXIT_FAILURE : status;
}

static int trace(struct trace_options *o, struct err *err)
{
	struct calls_options calls = { .json = o->json_summary };
	struct consumer *consumers[2], *sink = NULL;
	size_t count = 0;
	int status;
	FILE *out;

	if (choose_format(o, err) || check_options(o, err) || open_output(o, &out, err))
		return err->code == -EINVAL ? EXIT_USAGE : EXIT_FAILURE;
	calls.text = summary_stream(o, out);
	calls.color = use_color(o, calls.text);
	calls.apart = calls.text == out && !o->summary_only;
	calls.width = terminal_width(calls.text);
	o->sink.out = out;
	o->sink.color = use_color(o, out);
	o->sink.width = terminal_width(out);
	o->sink.verbose = o->verbose;
	if (!o->summary_only)
		consumers[count++] = sink = o->format->create(&o->sink);
	consumers[count++] = calls_new(&calls);
	status = run(o, consumers, count, sink, err);
	while (count--)
		consumers[count]->ops->free(consumers[count]);
	if (status && out != stdout)
		remove_if_empty(o, out);
	if (out && out != stdout && fclose(out) && !status) {
		err_set(err, errno, "writing %s: %s", o->output, strerror(errno));
		status = EXIT_FAILURE;
	}
	return status;
}

int cli_trace(int argc, char **argv)
{
	struct trace_options o = { .capture = { .returns = true } };
	struct origin origin;
	struct err err = { 0 };
	int status;

	origin_save(&origin);
	cli_parse(&argp, argc, argv, true, &o);
	o.choice.target.command.origin = &origin;
	signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of writing, told like others */
	signal(SIGCHLD, SIG_DFL); /* ignored, the command would leave no status */
	if (cli_target_settle(&o.choice, o.command, &err)) {
		fprintf(stderr, "%s: %s\n", argv[0], err.text);
		return EXIT_USAGE;
	}
	status = trace(&o, &err);
	if (err.text[0])
		cli_say("%s", err.text);
	free(o.choice.pids);
	free(o.selection.only);
	free(o.selection.skip);
	return status;
}
