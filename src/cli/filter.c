// SPDX-License-Identifier: MIT
/* --failed, --min-duration, --max-events: of the commands that write calls. */
#include "cli/cli.h"

#include "base/parse.h"
#include "output/sink.h"

enum { OPT_FAILED = 5000, OPT_MIN_DURATION, OPT_MAX_EVENTS };

static const struct argp_option options[] = {
	{ "failed", OPT_FAILED, 0, 0, "only calls that returned an error", 3 },
	{ "min-duration", OPT_MIN_DURATION, "TIME", 0,
	  "only calls, and work of a GPU, that took this long (10us, 1.5ms)", 0 },
	{ "max-events", OPT_MAX_EVENTS, "N", 0,
	  "end when N calls were written, those that they made not counted", 0 },
	{ 0 }
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct sink_options *sink = state->input;

	switch (key) {
	case OPT_FAILED:
		sink->failed_only = true;
		return 0;
	case OPT_MIN_DURATION:
		sink->min_duration_ns = cli_duration(state, "--min-duration", arg);
		return 0;
	case OPT_MAX_EVENTS:
		if (!parse_number(arg, UINT64_MAX / 2, &sink->max_events) || !sink->max_events)
			cli_bad_value(state, "--max-events", arg, "number from 1 on");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

const struct argp cli_filter_argp = { .options = options, .parser = parse_option };
