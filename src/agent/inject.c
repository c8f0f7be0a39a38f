// SPDX-License-Identifier: MIT
#include "agent/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/inject_run.h"
#include "base/xalloc.h"
#include "probe/helper.h"

#define GRACE_NS 1000000000ull /* after the limit, for what cannot be waited for with one */

struct inject {
	int outcome; /* our end; the process writes one struct outcome and closes its own */
	pid_t pid;   /* of the target */
};

struct outcome {
	int code;
	uint64_t stopped_ns;
	bool may_read;
	char text[sizeof(((struct err *)0)->text)];
};

/* ---- the process that does it ---------------------------------------------------------------- */

/* It may outlive cuscope: what cuscope has open (hooks, terminals, pipes) is not to live
 * with it. */
static void close_all_but(int fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = 0; i < 3; i++)
		if (null >= 0)
			dup2(null, i);
	if (fd > 3)
		syscall(SYS_close_range, 3, (unsigned)fd - 1, 0);
	syscall(SYS_close_range, (unsigned)fd + 1, ~0u, 0);
}

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

static void send_outcome(int to, const struct outcome *outcome, int socket)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec data = { (void *)outcome, sizeof(*outcome) };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1 };

	if (socket >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		control.head.cmsg_len = CMSG_LEN(sizeof(int));
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		memcpy(CMSG_DATA(&control.head), &socket, sizeof(int));
	}
	sendmsg(to, &message, MSG_NOSIGNAL);
}

static void work(const struct inject_options *options, int to)
{
	struct inject_result result = { .socket = -1 };
	struct outcome outcome = { 0 };
	struct err err = { 0 };

	prctl(PR_SET_NAME, INJECT_COMM);
	default_signals();
	die_after(options->limit_ns + GRACE_NS);
	close_all_but(to);
	outcome.code = inject_run(options, &result, &err);
	outcome.stopped_ns = result.stopped_ns;
	outcome.may_read = result.may_read;
	memcpy(outcome.text, err.text, sizeof(outcome.text));
	send_outcome(to, &outcome, result.socket);
	_exit(0);
}

/* Nobody's child, so that nobody needs to wait for it, and in no terminal's session. */
static int start(const struct inject_options *options, int ours, int its)
{
	pid_t child = fork();
	int status;

	if (child < 0)
		return -errno;
	if (child == 0) {
		close(ours);
		setsid();
		child = fork();
		if (child == 0)
			work(options, its);
		_exit(child < 0 ? 1 : 0);
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return 0; /* another thread, which waits for all children, was faster */
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EAGAIN;
}

/* ---- the interface --------------------------------------------------------------------------- */

int inject_begin(const struct inject_options *options, struct inject **out, struct err *err)
{
	struct inject *inject;
	int pair[2], rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return err_set(err, errno, "attaching to process %d: no sockets: %s", options->pid,
		               strerror(errno));
	rc = start(options, pair[0], pair[1]);
	close(pair[1]);
	if (rc) {
		close(pair[0]);
		return err_set(err, rc, "attaching to process %d: cannot make a process: %s",
		               options->pid, strerror(-rc));
	}
	inject = xcalloc(1, sizeof(*inject));
	inject->outcome = pair[0];
	inject->pid = options->pid;
	*out = inject;
	return 0;
}

int inject_fd(const struct inject *inject)
{
	return inject->outcome;
}

static int take_descriptor(struct msghdr *message)
{
	struct cmsghdr *head = CMSG_FIRSTHDR(message);
	int fd = -1;

	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
	    head->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(head), sizeof(fd));
	return fd;
}

int inject_result(struct inject *inject, struct inject_result *result, struct err *err)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct outcome outcome = { 0 };
	struct iovec data = { &outcome, sizeof(outcome) };
	struct msghdr message = { .msg_iov = &data,
		                  .msg_iovlen = 1,
		                  .msg_control = &control,
		                  .msg_controllen = sizeof(control) };
	ssize_t n;

	do
		n = recvmsg(inject->outcome, &message, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	result->socket = n == (ssize_t)sizeof(outcome) ? take_descriptor(&message) : -1;
	result->stopped_ns = outcome.stopped_ns;
	result->may_read = outcome.may_read;
	if (n != (ssize_t)sizeof(outcome))
		return err_set(err, ECHILD,
		               "attaching to process %d did not end: the process cuscope-attach "
		               "was killed",
		               inject->pid);
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
