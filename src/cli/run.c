// SPDX-License-Identifier: MIT
/* What the commands that trace have in common: limits, the file that is made, and the run. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/parse.h"

/* ---- limits -------------------------------------------------------------------------------- */

enum {
	OPT_DURATION = 4000,
	OPT_TIMEOUT,
	OPT_NO_RETURNS,
	OPT_MAX_OVERHEAD,
	OPT_RING_SIZE,
	OPT_WITHOUT,
	OPT_IN_PROCESS,
	OPT_NO_IN_PROCESS,
};

static const struct argp_option bound_options[] = {
	{ 0, 0, 0, 0, "How long, and at what cost:", 5 },
	{ "duration", OPT_DURATION, "TIME", 0, "end after this time (10s, 2m)", 0 },
	{ "timeout", OPT_TIMEOUT, "TIME", 0, "give up when no CUDA library was loaded by then", 0 },
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

static const struct argp_option limit_options[] = {
	{ "no-returns", OPT_NO_RETURNS, 0, 0, "half the cost: no durations, no results", 5 },
	{ "in-process", OPT_IN_PROCESS, 0, 0,
	  "record calls inside of the processes, where that can be, without the traps of probes",
	  5 },
	{ "no-in-process", OPT_NO_IN_PROCESS, 0, 0, "by probes alone (default without --gpu)", 5 },
	{ 0 }
};

uint64_t cli_duration(const struct argp_state *state, const char *option, const char *arg)
{
	uint64_t ns;

	if (!parse_duration_ns(arg, &ns) || !ns)
		cli_bad_value(state, option, arg, "duration (10us, 1.5ms, 2s, 3m)");
	return ns;
}

uint64_t cli_ring_bytes(const struct argp_state *state, const char *arg)
{
	uint64_t bytes;

	if (!parse_bytes(arg, &bytes) || bytes < 65536 || bytes > 8ull << 30)
		cli_bad_value(state, "--ring-size", arg, "size from 64KiB to 8GiB");
	return bytes;
}

void cli_check_in_process(const struct argp_state *state, const struct capture_options *capture)
{
	if (capture->in_process != IN_PROCESS_YES || (capture->returns && !capture->max_overhead))
		return;
	fprintf(stderr,
	        "%s: --in-process does not go with %s: what that saves is the cost of probes\n",
	        state->name, capture->returns ? "--max-overhead" : "--no-returns");
	exit(EXIT_USAGE);
}

static error_t parse_bounds(int key, char *arg, struct argp_state *state)
{
	struct capture_options *capture = state->input;

	switch (key) {
	case OPT_DURATION:
		capture->duration_ns = cli_duration(state, "--duration", arg);
		return 0;
	case OPT_TIMEOUT:
		capture->timeout_ns = cli_duration(state, "--timeout", arg);
		return 0;
	case OPT_MAX_OVERHEAD:
		if (!parse_percent(arg, &capture->max_overhead))
			cli_bad_value(state, "--max-overhead", arg, "percentage (5% or 0.5%)");
		return 0;
	case OPT_RING_SIZE:
		capture->ring_bytes = cli_ring_bytes(state, arg);
		return 0;
	case OPT_WITHOUT:
		capture->without = arg;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

const struct argp cli_bounds_argp = { .options = bound_options, .parser = parse_bounds };

static error_t parse_limits(int key, char *arg, struct argp_state *state)
{
	struct capture_options *capture = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = capture;
		return 0;
	case OPT_NO_RETURNS:
		capture->returns = false;
		return 0;
	case OPT_IN_PROCESS:
	case OPT_NO_IN_PROCESS:
		capture->in_process = cli_in_process(key == OPT_IN_PROCESS);
		return 0;
	case ARGP_KEY_END:
		cli_check_in_process(state, capture);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_child bounds[] = { { &cli_bounds_argp, 0, NULL, 0 }, { 0 } };

const struct argp cli_limits_argp = { .options = limit_options,
	                              .parser = parse_limits,
	                              .children = bounds };

/* ---- all that is traced, and how ----------------------------------------------------------- */

static error_t parse_attach(int key, char *arg, struct argp_state *state)
{
	struct cli_attach *attach = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &attach->choice;
		state->child_inputs[1] = &attach->choice;
		state->child_inputs[2] = &attach->selection;
		state->child_inputs[3] = &attach->gpu;
		state->child_inputs[4] = &attach->capture;
		return 0;
	case ARGP_KEY_END:
		attach->capture.gpu = attach->gpu.asked ? &attach->gpu.settings : NULL;
		attach->selection.hooks = attach->hooks.n ? &attach->hooks : NULL;
		return 0;
	case ARGP_KEY_ARGS: /* what stands after -- or begins with the first word */
		attach->command = state->argv + state->next;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_child attach_children[] = {
	{ &cli_process_argp, 0, NULL, 0 },   { &cli_start_argp, 0, NULL, 0 },
	{ &cli_selection_argp, 0, NULL, 0 }, { &cli_gpu_argp, 0, NULL, 0 },
	{ &cli_limits_argp, 0, NULL, 0 },    { 0 }
};

const struct argp cli_attach_argp = { .parser = parse_attach, .children = attach_children };

void cli_attach_free(struct cli_attach *attach)
{
	free(attach->choice.pids);
	free(attach->choice.env);
	free(attach->selection.only);
	free(attach->selection.skip);
	hook_list_free(&attach->hooks);
}

/* ---- the run ------------------------------------------------------------------------------- */

/* Until the capture waits for them, they would end cuscope. */
static void hold_back_user_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static void join(struct buf *out, char *const *words)
{
	for (size_t i = 0; words[i]; i++) {
		buf_puts(out, i ? " " : "");
		buf_puts(out, words[i]);
	}
}

char *cli_target_text(const struct target *target)
{
	struct buf text = { 0 };

	switch (target->kind) {
	case TARGET_COMMAND:
		join(&text, target->command.argv);
		break;
	case TARGET_PIDS:
		buf_puts(&text, target->n_pids == 1 ? "process" : "processes");
		for (size_t i = 0; i < target->n_pids; i++)
			buf_printf(&text, " %d", target->pids[i]);
		break;
	case TARGET_NAME:
		buf_printf(&text, "processes named %s", target->glob);
		break;
	case TARGET_CGROUP:
		buf_printf(&text, "cgroup %s", target->cgroup);
		break;
	case TARGET_ALL:
		buf_puts(&text, "all processes");
		break;
	}
	return text.data;
}

int cli_capture(struct capture_options *options, struct err *err)
{
	struct capture *capture = NULL;
	int status, r;

	hold_back_user_signals();
	if (!options->notice)
		options->notice = cli_notice;
	r = capture_open(options, &capture, err);
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
