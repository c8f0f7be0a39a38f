// SPDX-License-Identifier: MIT
/* --hook, --hooks, --hook-limit: hooks that users ask for, checked before anything is traced. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "probe/own_kernel.h"

enum { OPT_HOOK = 2400, OPT_HOOKS, OPT_HOOK_LIMIT };

static const struct argp_option options[] = {
	{ 0, 0, 0, 0, "Hooks of your own (see docs/hooks.md):", 7 },
	{ "hook", OPT_HOOK, "SPEC", 0,
	  "hook another function: 'uprobe:libx.so:f(n=arg0:u64) as x if n > 9'; uprobe, uentry, "
	  "uretprobe, usdt, kprobe, kentry, kretprobe, tracepoint; may be repeated",
	  7 },
	{ "hooks", OPT_HOOKS, "FILE", 0,
	  "hooks of a file, one a line, or of one that cuscope has (nccl, cublas, cudnn, pytorch, "
	  "nvidia, nvidia-uvm); may be repeated",
	  7 },
	{ "hook-limit", OPT_HOOK_LIMIT, "N", 0, "functions that one pattern may stand for (512)",
	  7 },
	{ 0 }
};

/* Lines with a caret, which were made harmless where they were made. */
static void end_with(const struct argp_state *state, const char *wrong)
{
	fprintf(stderr, "%s: %s\n", state->name, wrong);
	exit(EXIT_USAGE);
}

/* "570.86.15" of the driver that is loaded; 0: none is. */
static unsigned driver_version(void)
{
	int fd = open("/sys/module/nvidia/version", O_RDONLY | O_CLOEXEC);
	char text[32] = "";

	if (fd < 0)
		return 0;
	if (read(fd, text, sizeof(text) - 1) <= 0)
		text[0] = '\0';
	close(fd);
	return (unsigned)strtoul(text, NULL, 10);
}

static error_t parse_hooks(int key, char *arg, struct argp_state *state)
{
	struct hook_list *list = state->input;
	struct buf wrong = { 0 };
	uint64_t limit;

	switch (key) {
	case ARGP_KEY_INIT:
		list->driver = driver_version();
		return 0;
	case ARGP_KEY_END:
		if (list->n && own_kernel_check(list, &wrong))
			end_with(state, wrong.data);
		return 0;
	case OPT_HOOK:
		if (hook_list_add(list, arg, &wrong))
			end_with(state, wrong.data);
		return 0;
	case OPT_HOOKS:
		if (hook_list_add_file(list, arg, &wrong))
			end_with(state, wrong.data);
		return 0;
	case OPT_HOOK_LIMIT:
		if (!parse_number(arg, HOOK_MATCHES_TOP, &limit) || !limit)
			cli_bad_value(state, "--hook-limit", arg, "number from 1 to 8192");
		list->matches = limit;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

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

const struct argp cli_hooks_argp = { .options = options, .parser = parse_hooks };

/* ---- the agent, which has none --------------------------------------------------------------- */

static const struct argp_option no_options[] = { { "hook", OPT_HOOK, "SPEC", OPTION_HIDDEN, 0, 0 },
	                                         { "hooks", OPT_HOOKS, "FILE", OPTION_HIDDEN, 0,
	                                           0 },
	                                         { 0 } };

static error_t refuse(int key, char *arg, struct argp_state *state)
{
	if (key != OPT_HOOK && key != OPT_HOOKS)
		return ARGP_ERR_UNKNOWN;
	fprintf(stderr,
	        "%s: there is no option '--%s' here: the agent looks at programs that use CUDA "
	        "alone, and hooks may be of any; launches and watch have it\n",
	        state->name, key == OPT_HOOK ? "hook" : "hooks");
	exit(EXIT_USAGE);
}

const struct argp cli_no_hooks_argp = { .options = no_options, .parser = refuse };
