// SPDX-License-Identifier: MIT
/* --gpu and what goes with it. */
#include "cli/cli.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/wire.h"
#include "base/parse.h"
#include "base/xalloc.h"

#define WINDOW_LEAST_NS 10000000ull /* CUPTI takes as long to begin */

static const char *const kinds[] = { "kernels", "copies", "sets",     "sync",
	                             "graphs",  "nvtx",   "overhead", NULL };
static_assert(AGENT_WANT_KERNELS == 1 && AGENT_WANT_OVERHEAD == 1 << 6, "bits by the names' order");

#define DEFAULT_KINDS (AGENT_WANT_KERNELS | AGENT_WANT_COPIES | AGENT_WANT_SETS | AGENT_WANT_NVTX)

void cli_gpu_ask(struct cli_gpu *gpu)
{
	gpu->asked = true;
	gpu->settings.kinds |= DEFAULT_KINDS;
}

static bool gpu_take_window(const struct argp_state *state, void *to, const char *value)
{
	struct capture_gpu *settings = to;
	char *copy = xstrdup(value), *slash = strchr(copy, '/');
	bool good;

	if (slash)
		*slash = '\0';
	good = slash && parse_duration_ns(copy, &settings->window_ns) &&
	       parse_duration_ns(slash + 1, &settings->period_ns);
	free(copy);
	if (good && settings->window_ns >= settings->period_ns)
		option_bad_usage(state,
		                 "--gpu-window: the window has to be shorter than the period; "
		                 "without --gpu-window all the time is measured");
	if (good && settings->window_ns < WINDOW_LEAST_NS)
		option_bad_usage(state,
		                 "--gpu-window: the window has to be 10ms or longer, because CUPTI "
		                 "takes that long to begin");
	return good;
}

static void gpu_end(const struct argp_state *state, void *into)
{
	struct cli_gpu *gpu = into;

	if (gpu->asked)
		return;
	if (gpu->settings.window_ns)
		option_bad_usage(state, "--gpu-window goes with --gpu");
	if (gpu->settings.cupti)
		option_bad_usage(state, "--cupti goes with --gpu");
}

static const struct option_row rows[] = {
	{ .title = "What ran on the GPU, and when:", .order = 6 },
	{ "gpu", 0, "LIST",
	  "GPU times by CUPTI, of kernels, copies, sets, sync, graphs, nvtx, overhead; without "
	  "LIST kernels,copies,sets,nvtx",
	  OPTION_SET, offsetof(struct cli_gpu, settings.kinds), OPTION_WITH(struct cli_gpu, asked),
	  .least = DEFAULT_KINDS, .words = kinds, .is_no = "kind", .optional = true },
	{ "gpu-window", 0, "ON/PERIOD", "measure 1s of every 30s (1s/30s)", OPTION_TAKE,
	  offsetof(struct cli_gpu, settings), .take = gpu_take_window,
	  .is_no = "window (1s/30s measures one second of every thirty)" },
	{ "cupti", 0, "PATH", "the libcupti.so to use; by default one is looked for", OPTION_TEXT,
	  offsetof(struct cli_gpu, settings.cupti) },
};

const struct option_group cli_gpu_options = { OPTION_ROWS(rows), .end = gpu_end };

/* ---- commands that have none --------------------------------------------------------------- */

static void gpu_refuse(const struct argp_state *state, const char *name) __attribute__((noreturn));

static void gpu_refuse(const struct argp_state *state, const char *name)
{
	option_bad_usage(state,
	                 "there is no option '--%s' here, because this command counts calls only; "
	                 "trace, record and top have it",
	                 name);
}

static bool gpu_refuse_gpu(const struct argp_state *state, void *to, const char *value)
{
	gpu_refuse(state, "gpu");
}

static bool gpu_refuse_window(const struct argp_state *state, void *to, const char *value)
{
	gpu_refuse(state, "gpu-window");
}

static bool gpu_refuse_cupti(const struct argp_state *state, void *to, const char *value)
{
	gpu_refuse(state, "cupti");
}

static const struct option_row no_rows[] = {
	{ "gpu", 0, "LIST", NULL, OPTION_TAKE, .take = gpu_refuse_gpu, .optional = true },
	{ "gpu-window", 0, "TIME", NULL, OPTION_TAKE, .take = gpu_refuse_window },
	{ "cupti", 0, "PATH", NULL, OPTION_TAKE, .take = gpu_refuse_cupti },
};

const struct option_group cli_no_gpu_options = { OPTION_ROWS(no_rows) };
