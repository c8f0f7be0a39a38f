// SPDX-License-Identifier: MIT
#include "agent/nudge.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/inject_thread.h"
#include "base/process.h"
#include "base/worker.h"

#define STOP_TRIES 100 /* of 0.2 ms */
#define ALL_MS     1000

struct nudging {
	const struct nudged *processes;
	size_t n;
};

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
}

/* Whether a socket has no limit of time, with which the kernel gives EINTR, see signal(7). What
 * else a thread reads by is taken up again. */
static bool is_without_limit(pid_t pid, int number)
{
	struct timeval limit = { 0 };
	socklen_t bytes = sizeof(limit);
	int process = (int)syscall(SYS_pidfd_open, pid, 0);
	int fd = process < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, process, number, 0);
	bool without = fd >= 0;

	if (fd >= 0 && !getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, &bytes))
		without = !limit.tv_sec && !limit.tv_usec;
	if (fd >= 0)
		close(fd);
	if (process >= 0)
		close(process);
	return without;
}

/* Those that give EINTR to whoever is stopped are left alone. */
static bool may_be_nudged(pid_t pid)
{
	struct waiting waiting;

	if (!thread_call(pid, pid, &waiting) || !is_harmless_wait(waiting.call))
		return false;
	switch (waiting.call) {
#ifdef SYS_epoll_wait
	case SYS_epoll_wait:
#endif
	case SYS_epoll_pwait:
#ifdef SYS_epoll_pwait2
	case SYS_epoll_pwait2:
#endif
	case SYS_rt_sigtimedwait:
		return false;
	case SYS_read: /* of a file, that of a server of the user's say: who knows */
		if (!is_harmless_entry(pid, pid, SYS_read, waiting.arg))
			return false;
		return is_without_limit(pid, (int)waiting.arg[0]);
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_accept:
	case SYS_accept4:
		return is_without_limit(pid, (int)waiting.arg[0]);
	default:
		return true;
	}
}

/* Once it is stopped it can be let go of; one that does not stop is let go of by our own end. */
static bool nudge(const struct nudged *process)
{
	pid_t tid = process->pid, got = 0;
	int status;

	if (!may_be_nudged(tid) || process_start_time(tid) != process->start_time)
		return false;
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL))
		return false;
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL))
		return false;
	for (int i = 0; i < STOP_TRIES && !got; i++, got ? (void)0 : nap())
		got = waitpid(tid, &status, WNOHANG | __WALL);
	if (got != tid || !WIFSTOPPED(status))
		return false;

	/* a signal that was about to be delivered is its own */
	bool own = status >> 16 == PTRACE_EVENT_STOP;

	return !ptrace(PTRACE_DETACH, tid, NULL, own ? 0ul : (unsigned long)WSTOPSIG(status));
}

/* What a process is in is not told while an exec of it is under way, which can be for good. */
static void nudge_run(void *data, int socket)
{
	const struct nudging *nudging = data;
	bool done[NUDGE_MOST] = { false };

	worker_close_all_but(socket, -1);
	signal(SIGCHLD, SIG_DFL);
	worker_end_after(ALL_MS);
	for (size_t i = 0; i < nudging->n; i++)
		done[i] = nudge(&nudging->processes[i]);
	worker_send(socket, done, sizeof(done), -1);
	_exit(0);
}

size_t nudge_processes(struct nudged *processes, size_t n)
{
	struct nudging nudging = { processes, n < NUDGE_MOST ? n : NUDGE_MOST };
	bool done[NUDGE_MOST] = { false };
	size_t n_done = 0;
	int socket;

	if (!n || worker_fork(true, nudge_run, &nudging, &socket))
		return 0;
	if (!worker_wait(socket, ALL_MS, NULL))
		worker_receive(socket, done, sizeof(done), NULL);
	close(socket);
	for (size_t i = 0; i < nudging.n; i++) {
		processes[i].done = done[i];
		n_done += done[i];
	}
	return n_done;
}
