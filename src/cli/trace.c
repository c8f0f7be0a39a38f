// SPDX-License-Identifier: MIT
/* `cuscope trace`: calls as they happen, and the summary. */
#include "analysis/work.h"
#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/summary/summary.h"
#include "base/file.h"
#include "capture/capture.h"
#include "output/sink.h"

#define OUTPUT_BUFFER (1 << 18)

struct trace_options {
	struct cli_attach attach;
	struct sink_options sink;
	const struct sink_format *format;
	struct cli_metrics metrics;
	struct cli_stacks stacks; /* of these, what threads wait for */
	const char *output;
	const char *json_summary;
	const char *color; /* auto, always, never */
	mode_t mode;
	bool force, summary_only, verbose;
	struct new_file file; /* that output is */
};

/* ---- options ------------------------------------------------------------------------------- */

enum {
	OPT_FORMAT = 3000,
	OPT_FORCE,
	OPT_BEGIN_END,
	OPT_SUMMARY_ONLY,
	OPT_JSON_SUMMARY,
	OPT_COLOR,
	OPT_KERNEL,
	OPT_HOST_WAITS,
};

static const struct argp_option options[] = {
	{ 0, 0, 0, 0, "Which calls are shown (the summary counts all):", 3 },
	{ "kernel", OPT_KERNEL, 0, 0,
	  "also system calls to the NVIDIA driver, decoded, inside of the calls that made them",
	  0 },
	{ "host-waits", OPT_HOST_WAITS, "MIN", OPTION_ARG_OPTIONAL, CLI_WAITS_HELP, 0 },
	{ "verbose", 'v', 0, 0,
	  "also the driver calls that runtime calls make, with their durations", 0 },
	{ 0, 0, 0, 0, "Output:", 4 },
	{ "output", 'o', "FILE", 0, "write the calls to FILE; its ending chooses the format", 0 },
	{ "format", OPT_FORMAT, "NAME", 0, "", 0 }, /* see cli_help_formats() */
	{ "force", OPT_FORCE, 0, 0, "overwrite files that exist", 0 },
	CLI_MODE_OPTION,
	CLI_OLD_MODE_OPTION,
	{ "begin-end", OPT_BEGIN_END, 0, 0,
	  "jsonl: a B and an E line for each call instead of one X", 0 },
	{ "summary-only", OPT_SUMMARY_ONLY, 0, 0, "no calls, just the summary", 0 },
	{ "json-summary", OPT_JSON_SUMMARY, "FILE", 0, "also write the summary as JSON", 0 },
	{ "color", OPT_COLOR, "WHEN", 0,
	  "always, never, or auto (the default): on a terminal, unless NO_COLOR is set", 0 },
	{ 0 }
};

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
	case CLI_OPT_MODE:
		o->mode = cli_parse_mode(state, arg);
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

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct trace_options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &o->attach;
		state->child_inputs[1] = &o->sink;
		state->child_inputs[2] = &o->metrics;
		state->child_inputs[3] = &o->attach.hooks;
		return 0;
	case 'v':
		o->verbose = true;
		return 0;
	case OPT_KERNEL:
		o->attach.capture.kernel = true;
		return 0;
	case OPT_HOST_WAITS:
		cli_stacks_parse_waits(state, &o->stacks, arg);
		return 0;
	}
	return parse_output(key, arg, state);
}

static const struct argp_child children[] = { { &cli_attach_argp, 0, NULL, 0 },
	                                      { &cli_filter_argp, 0, NULL, 0 },
	                                      { &cli_metrics_argp, 0, NULL, 0 },
	                                      { &cli_hooks_argp, 0, NULL, 0 },
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

/* A format that is of use only as a whole has no name before; all others grow under theirs. */
static int open_output(struct trace_options *o, FILE **out, struct err *err)
{
	const struct new_file_options whole = { .replace = o->force,
		                                .regular = true,
		                                .mode = o->mode };
	int rc;

	*out = stdout;
	if (!o->output || !strcmp(o->output, "-"))
		return o->summary_only ? 0 : cli_check_stdout(o->format, err);
	if (o->format->whole_file && !o->summary_only)
		rc = new_file_open(&o->file, o->output, &whole, err);
	else
		rc = cli_create(&o->file, o->output, o->force, o->mode, err);
	if (rc)
		return rc;
	o->sink.path = o->output;
	*out = o->file.out;
	setvbuf(*out, NULL, _IOFBF, OUTPUT_BUFFER);
	return 0;
}

/* Half a database is no use; of what was written from front to back each line is. */
static int close_output(struct trace_options *o, const struct consumer *sink, int status,
                        struct err *err)
{
	struct err failure = { 0 };

	if (sink && o->format->whole_file && !sink_ended(sink))
		new_file_drop(&o->file);
	if (!o->file.out || !cli_settle(&o->file, !status, &failure) || status)
		return status;
	*err = failure;
	return EXIT_FAILURE;
}

/* The summary goes where it does not mix with lines that a program is to read. */
static FILE *summary_stream(const struct trace_options *o, FILE *out)
{
	if (o->summary_only || strcmp(o->format->name, "table") == 0)
		return out == stdout || o->summary_only ? out : stdout;
	return cli_is_stdout(out) ? stderr : stdout;
}

/* ---- running ------------------------------------------------------------------------------- */

/* A trace while it runs. */
struct tracing {
	struct consumer *sink; /* NULL: no calls are shown */
	struct consumer *calls;
};

static bool enough(void *data)
{
	const struct tracing *tracing = data;

	return tracing->sink && sink_done(tracing->sink);
}

/* SIGUSR1. What goes wrong is told at the end, when it is tried again. */
static void print_summary(void *data, const struct run_info *run)
{
	const struct tracing *tracing = data;

	summary_print(tracing->calls, run, &(struct err){ 0 });
}

static int choose_format(struct trace_options *o, struct err *err)
{
	bool named = o->output && strcmp(o->output, "-") && !o->summary_only;

	if (!o->format)
		o->format = named ? cli_format_of(o->output, err) : sink_format_by_name("table");
	if (!o->format)
		return err->code;
	if (o->sink.begin_end && strcmp(o->format->name, "jsonl"))
		return err_set(err, EINVAL, "--begin-end goes with --format jsonl");
	return 0;
}

static int check_options(const struct trace_options *o, struct err *err)
{
	if (!o->attach.capture.returns && o->sink.failed_only)
		return err_set(err, EINVAL,
		               "--failed needs results, which --no-returns does not record");
	if (!o->attach.capture.returns && o->sink.min_duration_ns)
		return err_set(
			err, EINVAL,
			"--min-duration needs durations, which --no-returns does not record");
	if (o->summary_only && o->stacks.host_waits)
		return err_set(err, EINVAL,
		               "--host-waits shows lines, of which --summary-only shows none");
	if (cli_hooks_check(&o->attach.hooks, o->attach.capture.returns, err))
		return err->code;
	/* a mistake that would show only at the end of a long trace is better told now */
	return o->json_summary ? file_can_replace(o->json_summary, o->force, err) : 0;
}

/* Runs the capture with its consumers made. Returns the exit status. */
static int run(struct trace_options *o, struct consumer **consumers, size_t count,
               struct tracing *tracing, struct err *err)
{
	o->attach.capture.target = o->attach.choice.target;
	o->attach.selection.failed = o->sink.failed_only;
	o->attach.capture.selection = o->attach.selection;
	o->attach.capture.begin_records = o->sink.begin_end;
	o->attach.capture.nested_returns = o->verbose;
	o->attach.capture.stacks = cli_stacks_settle(&o->stacks);
	o->attach.capture.consumers = consumers;
	o->attach.capture.n_consumers = count;
	o->attach.capture.enough = enough;
	o->attach.capture.summary = print_summary;
	cli_metrics_settle(&o->metrics, o->output && strcmp(o->output, "-"), &o->attach.capture);
	o->attach.capture.who = o->output != NULL;
	o->attach.capture.data = tracing;
	return cli_capture(&o->attach.capture, err);
}

static int trace(struct trace_options *o, struct err *err)
{
	struct summary_options calls = { .json = o->json_summary, .json_mode = o->mode };
	struct consumer *consumers[4], *sink = NULL;
	struct tracing tracing = { 0 };
	size_t count = 0;
	int status;
	FILE *out;

	if (choose_format(o, err) || check_options(o, err) || open_output(o, &out, err))
		return err->code == -EINVAL ? EXIT_USAGE : EXIT_FAILURE;
	if (!o->summary_only && strcmp(o->format->name, "table"))
		cli_part_command(out, &o->attach.choice.target);
	calls.text = summary_stream(o, out);
	calls.color = cli_color(o->color, calls.text);
	calls.apart = calls.text == out && !o->summary_only;
	calls.width = cli_width(calls.text);
	o->sink.out = out;
	o->sink.color = cli_color(o->color, out);
	o->sink.width = cli_width(out);
	o->sink.verbose = o->verbose;
	o->sink.work = calls.work = work_new(WORK_BYTES_LIVE);
	consumers[count++] = work_consumer(calls.work);
	if (out != stdout && !o->format->whole_file)
		consumers[count++] = cli_placer(&o->file);
	if (!o->summary_only)
		consumers[count++] = sink = o->format->create(&o->sink);
	tracing.sink = sink;
	consumers[count++] = tracing.calls = summary_new(&calls);
	status = run(o, consumers, count, &tracing, err);
	if (sink)
		cli_say_unjoined(sink, "cuscope record, and export of its file, join all");
	status = close_output(o, sink, status, err);
	while (count--)
		consumers[count]->ops->free(consumers[count]);
	return status;
}

int cli_trace(int argc, char **argv)
{
	struct trace_options o = { .attach = { .capture = { .returns = true } } };
	struct origin origin;
	struct err err = { 0 };
	int status;

	origin_save(&origin);
	cli_stacks_init(&o.stacks);
	cli_parse(&argp, argc, argv, true, &o);
	o.attach.choice.target.command.origin = &origin;
	cli_ignore_signals();
	signal(SIGCHLD, SIG_DFL); /* ignored, the command would leave no status */
	if (cli_target_settle(&o.attach.choice, o.attach.command, &err) ||
	    cli_metrics_check(&o.metrics, &o.attach.choice.target, &err)) {
		fprintf(stderr, "%s: %s\n", argv[0], err.text);
		return EXIT_USAGE;
	}
	status = trace(&o, &err);
	if (err.text[0])
		cli_say("%s", err.text);
	cli_attach_free(&o.attach);
	return status;
}
