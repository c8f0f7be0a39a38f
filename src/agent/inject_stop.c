// SPDX-License-Identifier: MIT
#include "agent/inject_stop.h"

#ifdef __x86_64__

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "agent/inject_trace.h"
#include "base/clock.h"
#include "base/process.h"

#define SEIZES   8       /* tries, */
#define SEIZE_NS 1000000 /* and between two */

static enum stop kind_of(int status)
{
	int sig;

	if (!WIFSTOPPED(status))
		return STOP_GONE;
	sig = WSTOPSIG(status);
	if (sig == (SIGTRAP | 0x80))
		return STOP_CALL;
	if (status >> 16 == PTRACE_EVENT_STOP)
		return sig == SIGTRAP ? STOP_TRAP : STOP_GROUP;
	return STOP_SIGNAL;
}

enum stop thread_next_stop(pid_t tid, uint64_t until_ns, int *sig)
{
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	for (;;) {
		uint64_t now = clock_now_ns();
		struct timespec rest;
		int status;
		pid_t r = waitpid(tid, &status, __WALL | WNOHANG);

		if (r == tid) {
			*sig = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
			return kind_of(status);
		}
		if (r < 0)
			return STOP_GONE;
		if (now >= until_ns)
			return STOP_LATE;
		rest.tv_sec = (time_t)((until_ns - now) / 1000000000u);
		rest.tv_nsec = (long)((until_ns - now) % 1000000000u);
		sigtimedwait(&child, NULL, &rest);
	}
}

int thread_let_go(pid_t tid, int sig)
{
	ptrace(PTRACE_DETACH, tid, NULL, sig);
	return -EAGAIN;
}

static bool is_ending(pid_t pid, pid_t tid)
{
	struct process_stat stat;

	return !process_stat_read(pid, tid, &stat) || stat.state == 'Z' || stat.state == 'X';
}

/* Another one that attaches has it for a moment, and may be gone when it is asked who has it. */
int thread_seize(const struct inject_target *target, pid_t tid, struct err *err)
{
	bool traced = false;
	int code = 0, rc;

	for (int i = 0; i < SEIZES; i++) {
		if (ptrace(PTRACE_SEIZE, tid, NULL, PTRACE_O_TRACESYSGOOD) == 0)
			return 0;
		code = errno;
		if (code != EPERM)
			break;
		traced |= target_tracer(target->pid, tid) != 0;
		nanosleep(&(struct timespec){ .tv_nsec = SEIZE_NS }, NULL);
	}
	if (code == ESRCH || is_ending(target->pid, tid))
		return -EAGAIN;
	rc = target_refused(target->pid, tid, code, err);
	return rc == -EPERM && traced ? -EAGAIN : rc;
}

#endif
