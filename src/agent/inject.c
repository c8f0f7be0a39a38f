// SPDX-License-Identifier: MIT
#include "agent/inject.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <unistd.h>

#include "agent/inject_run.h"
#include "agent/inject_target.h"
#include "base/process.h"
#include "base/worker.h"
#include "base/xalloc.h"
#include "probe/helper.h"

/* ---- inject allowed ------------------------------------------------------------------------ */

/* Of inject.h: what can be known before any process is entered. */

#define SYS_PTRACE 19 /* linux/capability.h */

static bool has_capability(int number)
{
	unsigned long long mask = 0;

	process_status(0, 0, "CapEff: %llx", &mask);
	return mask >> number & 1;
}

int inject_allowed(struct err *err)
{
#ifndef __x86_64__
	return err_set(err, ENOTSUP, "is there on x86-64 only");
#endif
	if (!has_capability(SYS_PTRACE))
		return err_set(err, EPERM, "needs CAP_SYS_PTRACE: run as root (sudo)");
	if (target_yama_scope() >= 3)
		return err_set(err, EPERM,
		               "needs ptrace, which is forbidden here until the next boot "
		               "(kernel.yama.ptrace_scope is 3): start them by cuscope");
	return 0;
}

/* ---- inject -------------------------------------------------------------------------------- */

#define GRACE_NS 1000000000ull /* after the limit, for what cannot be waited for with one */

struct inject {
	int outcome; /* our end; the process writes one struct outcome and closes its own */
	pid_t pid;   /* of the target */
};

struct outcome {
	int code;
	struct inject_result result;
	char text[sizeof(((struct err *)0)->text)];
};

/* ---- the process that does it ---------------------------------------------------------------- */

/* SIGALRM ends it: nothing that it has stopped needs it to go on. */
static void die_after(uint64_t ns)
{
	struct itimerval timer = { .it_value = { .tv_sec = (time_t)(ns / 1000000000u),
		                                 .tv_usec =
		                                         (suseconds_t)(ns % 1000000000u / 1000) } };

	setitimer(ITIMER_REAL, &timer, NULL);
}

static void default_signals(void)
{
	sigset_t child;

	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_SETMASK, &child, NULL);
}

/* What cuscope has open (hooks, terminals, pipes) is not to live with it: it may outlive cuscope.
 */
static void work(void *data, int to)
{
	const struct inject_options *options = data;
	struct inject_result result = { .socket = -1 };
	struct outcome outcome = { 0 };
	struct err err = { 0 };

	prctl(PR_SET_NAME, INJECT_COMM);
	default_signals();
	die_after(options->limit_ns + GRACE_NS);
	worker_close_all_but(to, -1);
	outcome.code = inject_run(options, &result, &err);
	outcome.result = result;
	memcpy(outcome.text, err.text, sizeof(outcome.text));
	worker_send(to, &outcome, sizeof(outcome), result.socket);
	_exit(0);
}

/* ---- the interface --------------------------------------------------------------------------- */

int inject_begin(const struct inject_options *options, struct inject **out, struct err *err)
{
	struct inject *inject;
	int socket, rc = worker_fork(true, work, (void *)options, &socket);

	if (rc)
		return err_set(err, rc, "attaching to process %d: cannot make a process: %s",
		               options->pid, strerror(-rc));
	inject = xcalloc(1, sizeof(*inject));
	inject->outcome = socket;
	inject->pid = options->pid;
	*out = inject;
	return 0;
}

int inject_fd(const struct inject *inject)
{
	return inject->outcome;
}

int inject_result(struct inject *inject, struct inject_result *result, struct err *err)
{
	struct outcome outcome = { 0 };
	int socket;
	ssize_t n = worker_receive(inject->outcome, &outcome, sizeof(outcome), &socket);

	*result = outcome.result;
	result->socket = socket; /* as this process has it */
	if (n != (ssize_t)sizeof(outcome)) {
		helper_let_go(result->socket);
		result->socket = -1;
		return err_set(err, ECHILD,
		               "attaching to process %d did not end: the process cuscope-attach "
		               "was killed",
		               inject->pid);
	}
	if (outcome.code) {
		helper_let_go(result->socket);
		result->socket = -1;
		return err_set(err, outcome.code, "%s", outcome.text);
	}
	if (result->socket < 0)
		return err_set(err, EMFILE,
		               "attaching to process %d: its socket could not be taken: %s",
		               inject->pid, strerror(EMFILE));
	return 0;
}

void inject_free(struct inject *inject)
{
	if (!inject)
		return;
	helper_let_go(inject->outcome); /* with the target's socket, where nobody took it */
	free(inject);
}
