// SPDX-License-Identifier: MIT
/* --hook, --hooks, --hook-limit: hooks that users ask for, checked before anything is traced. */
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nvidia/devices.h"
#include "probe/own_kernel.h"

/* Lines with a caret, which were made harmless where they were made. */
static void hooks_end_with(const struct argp_state *state, const char *wrong)
{
	fprintf(stderr, "%s: %s\n", state->name, wrong);
	exit(EXIT_USAGE);
}

static bool hooks_take(const struct argp_state *state, void *to, const char *value)
{
	struct buf wrong = { 0 };

	if (hook_list_add(to, value, &wrong))
		hooks_end_with(state, wrong.data);
	return true;
}

static bool hooks_take_file(const struct argp_state *state, void *to, const char *value)
{
	struct buf wrong = { 0 };

	if (hook_list_add_file(to, value, &wrong))
		hooks_end_with(state, wrong.data);
	return true;
}

static void hooks_begin(void *into)
{
	((struct hook_list *)into)->driver = nvidia_driver_version();
}

static void hooks_end(const struct argp_state *state, void *into)
{
	struct hook_list *list = into;
	struct buf wrong = { 0 };

	if (list->n && own_kernel_check(list, &wrong))
		hooks_end_with(state, wrong.data);
}

static const struct option_row rows[] = {
	{ .title = "Hooks of your own (see docs/hooks.md):", .order = 7 },
	{ "hook", 0, "SPEC",
	  "hook another function: 'uprobe:libx.so:f(n=arg0:u64) as x if n > 9'; uprobe, uentry, "
	  "uretprobe, usdt, kprobe, kentry, kretprobe, tracepoint; may be repeated",
	  OPTION_TAKE, .take = hooks_take },
	{ "hooks", 0, "FILE",
	  "hooks of a file, one a line, or of one that cuscope has (nccl, cublas, cudnn, pytorch, "
	  "nvidia, nvidia-uvm); may be repeated",
	  OPTION_TAKE, .take = hooks_take_file },
	{ "hook-limit", 0, "N", "functions that one pattern may stand for (512)", OPTION_NUMBER,
	  offsetof(struct hook_list, matches), .least = 1, .most = HOOK_MATCHES_TOP },
};

const struct option_group cli_hooks_options = { OPTION_ROWS(rows), .begin = hooks_begin,
	                                        .end = hooks_end };

int cli_hooks_check(const struct hook_list *hooks, bool returns, struct err *err)
{
	struct buf origin = { 0 };

	for (size_t i = 0; !returns && i < hooks->n; i++) {
		if (!spec_needs_return(hooks->spec[i]))
			continue;
		hook_list_add_origin(hooks->spec[i], &origin);
		err_set(err, EINVAL,
		        "%s: this hook needs returns, which --no-returns does not record",
		        origin.data);
		buf_free(&origin);
		return -EINVAL;
	}
	return 0;
}

int cli_hooks_check_spans(const struct hook_list *hooks, struct err *err)
{
	struct buf origin = { 0 };

	for (size_t i = 0; i < hooks->n; i++) {
		if (spec_is_span(hooks->spec[i]))
			continue;
		hook_list_add_origin(hooks->spec[i], &origin);
		err_set(err, EINVAL,
		        "%s: a profile is of time, and this hook is a moment: uprobe and kprobe "
		        "have a begin and an end",
		        origin.data);
		buf_free(&origin);
		return -EINVAL;
	}
	return 0;
}

/* ---- the agent, which has none --------------------------------------------------------------- */

#define CUDA_ALONE                                                                                 \
	": the agent looks at programs that use CUDA alone, and hooks may be of any; launches "    \
	"and "                                                                                     \
	"watch have it"

static const struct option_row no_rows[] = {
	{ "hook", 0, "SPEC", NULL, OPTION_REFUSED, .is_no = CUDA_ALONE },
	{ "hooks", 0, "FILE", NULL, OPTION_REFUSED, .is_no = CUDA_ALONE },
};

const struct option_group cli_no_hooks_options = { OPTION_ROWS(no_rows) };
