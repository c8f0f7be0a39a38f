// SPDX-License-Identifier: MIT
/* `cuscope trace`: calls as they happen, and the summary. */
#include "analysis/work.h"
#include "cli/cli.h"

#include <errno.h>
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

static const struct option_row rows[] = {
	{ .title = "Which calls are shown (the summary counts all):", .order = 3 },
	{ "kernel", 0, NULL,
	  "also system calls to the NVIDIA driver, decoded, inside of the calls that made them",
	  OPTION_YES, offsetof(struct trace_options, attach.capture.kernel) },
	CLI_HOST_WAITS_ROW(offsetof(struct trace_options, stacks), CLI_WAITS_HELP),
	{ "verbose", 'v', NULL,
	  "also the driver calls that runtime calls make, with their durations", OPTION_YES,
	  offsetof(struct trace_options, verbose) },
	{ .title = "Output:", .order = 4 },
	{ "output", 'o', "FILE", "write the calls to FILE; its ending chooses the format",
	  OPTION_TEXT, offsetof(struct trace_options, output) },
	CLI_SINK_FORMAT_ROW(struct trace_options, format),
	CLI_FORCE_ROW(struct trace_options, force, "overwrite files that exist"),
	CLI_MODE_ROW(struct trace_options, mode),
	{ "begin-end", 0, NULL, "jsonl: a B and an E line for each call instead of one X",
	  OPTION_YES, offsetof(struct trace_options, sink.begin_end) },
	{ "summary-only", 0, NULL, "no calls, just the summary", OPTION_YES,
	  offsetof(struct trace_options, summary_only) },
	{ "json-summary", 0, "FILE", "also write the summary as JSON", OPTION_TEXT,
	  offsetof(struct trace_options, json_summary) },
	CLI_COLOR_ROW(struct trace_options, color),
};

static const struct option_part parts[] = {
	{ &cli_attach_options, offsetof(struct trace_options, attach) },
	{ &cli_stalls_options, offsetof(struct trace_options, attach.gpu) },
	{ &cli_filter_options, offsetof(struct trace_options, sink) },
	{ &cli_metrics_options, offsetof(struct trace_options, metrics) },
	{ &cli_hooks_options, offsetof(struct trace_options, attach.hooks) },
	{ 0 }
};

static const struct option_command options = {
	.group = { OPTION_ROWS(rows), .parts = parts },
	.operands = "[-- COMMAND [ARG...]]",
	.doc = "Shows every CUDA call of a program as it happens, and sums it up at the end."
	       "\vExamples:\n"
	       "  sudo cuscope trace -- ./app\n"
	       "  sudo cuscope trace -p 1234 --duration 10s --summary-only\n"
	       "  sudo cuscope trace --name 'python*' --class memory,launch -o calls.jsonl\n",
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
	if (o->format->many_files)
		return err_set(err, EINVAL,
		               "%s is made of a file: cuscope record, and export of its file",
		               o->format->name);
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
	option_parse(&options, argc, argv, true, &o);
	o.attach.choice.target.command.origin = &origin;
	cli_ignore_signals();
	if (cli_target_settle(&o.attach.choice, o.attach.command, &err) ||
	    cli_metrics_check(&o.metrics, &o.attach.choice.target, &err))
		return cli_refuse(argv[0], &err);
	status = trace(&o, &err);
	if (err.text[0])
		cli_say("%s", err.text);
	cli_attach_free(&o.attach);
	return status;
}
