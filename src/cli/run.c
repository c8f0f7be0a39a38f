// SPDX-License-Identifier: MIT
/* What the commands that trace have in common: the run. */
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
