// SPDX-License-Identifier: MIT
/* What the commands that read trace files share: which part of them, and what to say of them. */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "analysis/missed.h"
#include "base/buf.h"
#include "base/lines.h"
#include "base/parse.h"

enum {
	OPT_FROM = 2200,
	OPT_TO,
	OPT_FUNCTION,
	OPT_KERNEL,
	OPT_FAILED,
	OPT_MAX_EVENTS,
	OPT_MAX_SIZE,
};

#define MAX_SIZE                                                                                   \
	{ 0, 0, 0, 0, "How much is written:", 9 },                                                 \
	{                                                                                          \
		"max-size", OPT_MAX_SIZE, "SIZE", 0,                                               \
			"each output has this size at most, 0: any (default: 1000 times the "      \
			"file's, and 64M)",                                                        \
			0                                                                          \
	}

#define FROM_TO                                                                                    \
	{                                                                                          \
		"from",                                                                            \
		OPT_FROM,                                                                          \
		"TIME",                                                                            \
		0,                                                                                 \
		"what ended later than this after the trace's begin (10ms)",                       \
		0                                                                                  \
	},                                                                                         \
	{                                                                                          \
		"to", OPT_TO, "TIME", 0, "what ended earlier (1.5s)", 0                            \
	}

static const struct argp_option range_options[] = {
	{ 0, 0, 0, 0, "Which part of the trace:", 1 },
	FROM_TO,
	{ "pid", 'p', "PID[,PID]", 0, "what these processes did; may be repeated", 0 },
	{ "function", OPT_FUNCTION, "GLOB", 0, "only calls of these functions ('cuMemcpy*')", 0 },
	{ "kernel", OPT_KERNEL, "GLOB", 0,
	  "only these kernels and their launches ('gemm*'), by full, short or mangled name", 0 },
	MAX_SIZE,
	{ 0 }
};

static uint64_t parse_time(const struct argp_state *state, const char *option, const char *arg)
{
	uint64_t ns;

	if (!parse_duration_ns(arg, &ns))
		cli_bad_value(state, option, arg, "time since the trace's begin (10us, 1.5ms, 2s)");
	return ns;
}

static error_t parse_times(int key, char *arg, struct argp_state *state)
{
	struct cli_range *range = state->input;

	switch (key) {
	case OPT_FROM:
		range->from_ns = parse_time(state, "--from", arg);
		range->has_from = true;
		return 0;
	case OPT_TO:
		range->to_ns = parse_time(state, "--to", arg);
		range->has_to = true;
		return 0;
	case OPT_MAX_SIZE:
		if (!parse_bytes(arg, &range->max_size))
			cli_bad_value(state, "--max-size", arg, "size (100M, 2GiB; 0: any)");
		range->has_max_size = true;
		return 0;
	case ARGP_KEY_END:
		if (range->has_to && range->to_ns <= range->from_ns)
			argp_failure(state, EXIT_USAGE, 0, "--to is not later than --from");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_option times_options[] = {
	{ 0, 0, 0, 0, "Which part of a trace file:", 2 }, FROM_TO, MAX_SIZE, { 0 }
};

const struct argp cli_times_argp = { .options = times_options, .parser = parse_times };

static error_t parse_range(int key, char *arg, struct argp_state *state)
{
	struct cli_range *range = state->input;

	switch (key) {
	case 'p':
		if (!parse_pids(arg, &range->pids, &range->n_pids))
			cli_bad_value(state, "--pid", arg, "list of process ids (123 or 123,456)");
		return 0;
	case OPT_FUNCTION:
		if (!*arg)
			cli_bad_value(state, "--function", arg, "pattern ('cuMemcpy*')");
		range->filter.function = arg;
		return 0;
	case OPT_KERNEL:
		if (!*arg)
			cli_bad_value(state, "--kernel", arg, "pattern ('gemm*')");
		range->filter.kernel = arg;
		return 0;
	}
	return parse_times(key, arg, state);
}

const struct argp cli_range_argp = { .options = range_options, .parser = parse_range };

static const struct argp_option calls_options[] = {
	{ "failed", OPT_FAILED, 0, 0, "only calls that returned an error", 1 },
	{ "max-events", OPT_MAX_EVENTS, "N", 0,
	  "only the first N calls with those that they made, and what ran on the GPU until then",
	  1 },
	{ 0 }
};

static error_t parse_calls(int key, char *arg, struct argp_state *state)
{
	struct filter_choice *filter = &((struct cli_range *)state->input)->filter;

	switch (key) {
	case OPT_FAILED:
		filter->failed = true;
		return 0;
	case OPT_MAX_EVENTS:
		if (!parse_number(arg, UINT64_MAX / 2, &filter->max_calls) || !filter->max_calls)
			cli_bad_value(state, "--max-events", arg, "number from 1 on");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

const struct argp cli_calls_argp = { .options = calls_options, .parser = parse_calls };

bool cli_is_chosen(const struct cli_range *range)
{
	return range->n_pids || filter_is_any(&range->filter);
}

bool cli_is_part(const struct cli_range *range)
{
	return range->from_ns || range->has_to || cli_is_chosen(range);
}

struct trace_read_options cli_range_of(const struct trace_file *file, const struct cli_range *range)
{
	uint64_t begin_ns = trace_run(file)->begin_ns;

	return (struct trace_read_options){
		.from_ns = range->from_ns ? begin_ns + range->from_ns : 0,
		.to_ns = range->has_to ? begin_ns + range->to_ns : 0,
		.cut = range->cut,
		.pids = (const uint32_t *)range->pids, /* never negative */
		.n_pids = range->n_pids,
	};
}

int cli_read(struct trace_file *file, const struct cli_range *range,
             struct consumer *const *consumers, size_t n, struct err *err)
{
	struct trace_read_options options = cli_range_of(file, range);
	int rc;

	if (filter_is_any(&range->filter))
		options.filter = filter_new(&range->filter);
	rc = trace_read(file, &options, consumers, n, err);
	filter_free(options.filter);
	return rc;
}

int cli_say_missed(const char *path, const struct run_info *run, struct err *err)
{
	struct buf brief = { 0 };

	if (missed_brief(&brief, run))
		cli_say("%s: %s while it was recorded: 'cuscope report %s summary' says why", path,
		        brief.data, path);
	buf_free(&brief);
	if (!run->cut_short)
		return 0;
	return err_set(err, ENODATA,
	               "%s has no end, the recording was cut short: this is of what came before",
	               path);
}

/*
 * A call takes 3 to 10 bytes in a file, and some hundred in most outputs; of names of a kilobyte as
 * much as these. What is larger is mostly zeros.
 */
#define SIZE_TIMES 1000
#define SIZE_LEAST (64ull << 20)
#define SIZE_LIVE  (1ull << 30)

static uint64_t bound_of(const char *input)
{
	struct stat st;

	if (!input || stat(input, &st))
		return SIZE_LIVE;
	return SIZE_LEAST + SIZE_TIMES * (uint64_t)st.st_size;
}

void cli_bound_output(const struct cli_range *range, const char *input)
{
	lines_bound(range->has_max_size ? range->max_size : bound_of(input),
	            "--max-size SIZE allows more, and --max-size 0 anything");
}

bool cli_is_full(int rc)
{
	return rc == -EOVERFLOW;
}

void cli_print_incomplete(const struct run_info *run)
{
	struct buf why = { 0 };

	if (missed_of_file(run, &why))
		printf("\nnot all: %s\n", why.data);
	fflush(stdout);
	buf_free(&why);
}

bool cli_worth_showing(int rc)
{
	return !rc || rc == -EBADMSG;
}

void cli_say_failure(const struct err *err)
{
	if (err->code != -EPIPE)
		cli_say("%s", err->text);
}

void cli_range_times(const struct cli_range *range, const struct run_info *run, uint64_t *begin_ns,
                     uint64_t *duration_ns)
{
	uint64_t whole_ns = run->end_ns - run->begin_ns, from_ns = range->from_ns;
	uint64_t to_ns = range->has_to && range->to_ns < whole_ns ? range->to_ns : whole_ns;

	if (from_ns > to_ns)
		from_ns = to_ns;
	*begin_ns = run->begin_ns + (uint64_t)run->realtime_offset_ns + from_ns;
	*duration_ns = to_ns - from_ns;
}
