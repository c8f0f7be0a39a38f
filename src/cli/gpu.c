// SPDX-License-Identifier: MIT
/* --gpu and what goes with it. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include "agent/wire.h"
#include "base/array.h"
#include "base/parse.h"
#include "base/suggest.h"
#include "base/xalloc.h"

#define WINDOW_LEAST_NS 10000000ull /* CUPTI takes as long to begin */

enum { OPT_GPU = 4100, OPT_WINDOW, OPT_CUPTI };

static const struct argp_option options[] = {
	{ 0, 0, 0, 0, "What ran on the GPU, and when:", 6 },
	{ "gpu", OPT_GPU, "LIST", OPTION_ARG_OPTIONAL,
	  "GPU times by CUPTI, of kernels, copies, sets, sync, graphs, nvtx, overhead; without "
	  "LIST "
	  "kernels,copies,sets,nvtx",
	  0 },
	{ "gpu-window", OPT_WINDOW, "ON/PERIOD", 0, "measure 1s of every 30s (1s/30s)", 0 },
	{ "cupti", OPT_CUPTI, "PATH", 0, "the libcupti.so to use; by default one is looked for",
	  0 },
	{ 0 }
};

static const struct gpu_kind {
	const char *name;
	enum agent_kind kind;
	bool by_default;
} kinds[] = {
	{ "kernels", AGENT_WANT_KERNELS, true },    { "copies", AGENT_WANT_COPIES, true },
	{ "sets", AGENT_WANT_SETS, true },          { "sync", AGENT_WANT_SYNC, false },
	{ "graphs", AGENT_WANT_GRAPHS, false },     { "nvtx", AGENT_WANT_NVTX, true },
	{ "overhead", AGENT_WANT_OVERHEAD, false },
};
#define KINDS (ARRAY_SIZE(kinds))

static uint32_t parse_kind(const struct argp_state *state, const char *name)
{
	const char *names[KINDS], *near;

	for (size_t i = 0; i < KINDS; i++) {
		if (!strcmp(name, kinds[i].name))
			return kinds[i].kind;
		names[i] = kinds[i].name;
	}
	near = suggest(name, names, KINDS);
	fprintf(stderr, "%s: --gpu: there is nothing called '%s'", state->name, name);
	if (near)
		fprintf(stderr, "; did you mean '%s'?\n", near);
	else
		fputs(" (kernels, copies, sets, sync, graphs, nvtx, overhead)\n", stderr);
	exit(EXIT_USAGE);
}

static uint32_t parse_kinds(const struct argp_state *state, const char *list)
{
	char *copy = xstrdup(list), *rest = copy, *name;
	uint32_t all = 0;

	while ((name = strsep(&rest, ",")))
		all |= parse_kind(state, name);
	free(copy);
	return all;
}

void cli_gpu_ask(struct cli_gpu *gpu)
{
	gpu->asked = true;
	for (size_t i = 0; i < KINDS; i++)
		gpu->settings.kinds |= kinds[i].by_default ? kinds[i].kind : 0;
}

static void bad_usage(const struct argp_state *state, const char *text) __attribute__((noreturn));

static void bad_usage(const struct argp_state *state, const char *text)
{
	fprintf(stderr, "%s: %s\n", state->name, text);
	exit(EXIT_USAGE);
}

/* "--gpu kernels": the word would be taken for the command. A program of that name follows "--". */
static void check_next_word(const struct argp_state *state)
{
	const char *word = state->argv[state->next];
	char text[128];
	size_t length;

	for (size_t i = 0; word && i < KINDS; i++) {
		length = strlen(kinds[i].name);
		if (strncmp(word, kinds[i].name, length) || (word[length] && word[length] != ','))
			continue;
		snprintf(text, sizeof(text), "--gpu: its list follows '=': --gpu=%.60s", word);
		bad_usage(state, text);
	}
}

static void parse_window(const struct argp_state *state, struct capture_gpu *settings,
                         const char *arg)
{
	char *copy = xstrdup(arg), *slash = strchr(copy, '/');

	if (slash)
		*slash = '\0';
	if (!slash || !parse_duration_ns(copy, &settings->window_ns) ||
	    !parse_duration_ns(slash + 1, &settings->period_ns))
		cli_bad_value(state, "--gpu-window", arg,
		              "window (1s/30s measures one second of every thirty)");
	free(copy);
	if (settings->window_ns >= settings->period_ns)
		bad_usage(state, "--gpu-window: the window has to be shorter than the period; "
		                 "without --gpu-window all the time is measured");
	if (settings->window_ns < WINDOW_LEAST_NS)
		bad_usage(state, "--gpu-window: the window has to be 10ms or longer, because CUPTI "
		                 "takes that long to begin");
}

static void check(const struct argp_state *state, const struct cli_gpu *gpu)
{
	if (gpu->asked)
		return;
	if (gpu->settings.window_ns)
		bad_usage(state, "--gpu-window goes with --gpu");
	if (gpu->settings.cupti)
		bad_usage(state, "--cupti goes with --gpu");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct cli_gpu *gpu = state->input;

	switch (key) {
	case OPT_GPU:
		gpu->asked = true;
		if (arg) {
			gpu->settings.kinds |= parse_kinds(state, arg);
			return 0;
		}
		check_next_word(state);
		cli_gpu_ask(gpu);
		return 0;
	case OPT_WINDOW:
		parse_window(state, &gpu->settings, arg);
		return 0;
	case OPT_CUPTI:
		gpu->settings.cupti = arg;
		return 0;
	case ARGP_KEY_END:
		check(state, gpu);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

const struct argp cli_gpu_argp = { .options = options, .parser = parse };

/* ---- commands that have none --------------------------------------------------------------- */

static const struct argp_option no_options[] = {
	{ "gpu", OPT_GPU, "LIST", OPTION_ARG_OPTIONAL | OPTION_HIDDEN, 0, 0 },
	{ "gpu-window", OPT_WINDOW, "TIME", OPTION_HIDDEN, 0, 0 },
	{ "cupti", OPT_CUPTI, "PATH", OPTION_HIDDEN, 0, 0 },
	{ 0 }
};

static error_t refuse(int key, char *arg, struct argp_state *state)
{
	if (key != OPT_GPU && key != OPT_WINDOW && key != OPT_CUPTI)
		return ARGP_ERR_UNKNOWN;
	fprintf(stderr,
	        "%s: there is no option '--%s' here, because this command counts calls only; "
	        "trace, record and top have it\n",
	        state->name,
	        key == OPT_GPU      ? "gpu"
	        : key == OPT_WINDOW ? "gpu-window"
	                            : "cupti");
	exit(EXIT_USAGE);
}

const struct argp cli_no_gpu_argp = { .options = no_options, .parser = refuse };
