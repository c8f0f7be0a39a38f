// SPDX-License-Identifier: MIT
#include "agent/inject_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/order.h"
#include "base/process.h"

/* ---- calls ----------------------------------------------------------------------------------- */

enum care {
	ANY,
	STREAM, /* its first argument is to be a socket, a pipe, a terminal ...: a file may be the
	         * loader's */
	FUTEX,
};

/*
 * Ranks: waits that the kernel takes up again where they were come first, then those that somebody
 * may be timing. Last come epoll_wait and sigtimedwait, which give EINTR to whoever is stopped and
 * continued: that is undone, but not if cuscope is killed in the very moment, and their time begins
 * anew. `entry`: a thread that enters the call can be taken as well.
 */
static const struct harmless {
	long call;
	unsigned rank;
	enum care care;
	bool waits, entry;
} harmless[] = {
#ifdef SYS_poll
	{ SYS_poll, 0, ANY, true, true },
	{ SYS_select, 1, ANY, true, true },
	{ SYS_pause, 1, ANY, true, true },
	{ SYS_epoll_wait, RANK_LAST, ANY, true, true },
#endif
	{ SYS_ppoll, 0, ANY, true, true },
	{ SYS_pselect6, 1, ANY, true, true },
	{ SYS_accept, 1, ANY, true, true },
	{ SYS_accept4, 1, ANY, true, true },
	{ SYS_recvfrom, 1, ANY, true, true },
	{ SYS_recvmsg, 1, ANY, true, true },
	{ SYS_read, 1, STREAM, true, true },
	{ SYS_nanosleep, 2, ANY, true, true },
	{ SYS_clock_nanosleep, 2, ANY, true, true },
	{ SYS_rt_sigsuspend, 2, ANY, true, true },
	{ SYS_rt_sigtimedwait, RANK_LAST, ANY, true, true },
	{ SYS_restart_syscall, 2, ANY, true, true }, /* poll or a sleep, interrupted before */
	{ SYS_wait4, 2, ANY, true, true },
	{ SYS_waitid, 2, ANY, true, true },
	{ SYS_epoll_pwait, RANK_LAST, ANY, true, true },
#ifdef SYS_epoll_pwait2
	{ SYS_epoll_pwait2, RANK_LAST, ANY, true, true },
#endif
	{ SYS_futex, 3, FUTEX, true, true },
	/* what allocator and loader never call, and CUDA or Python often do */
	{ SYS_ioctl, 0, ANY, false, true },
	{ SYS_sched_yield, 0, ANY, false, true },
	{ SYS_getpid, 0, ANY, false, true },
	{ SYS_gettid, 0, ANY, false, true },
	{ SYS_getppid, 0, ANY, false, true },
	{ SYS_clock_gettime, 0, ANY, false, true },
	{ SYS_getrusage, 0, ANY, false, true },
	{ SYS_write, 0, STREAM, false, true },
	{ SYS_sendto, 0, ANY, false, true },
	{ SYS_sendmsg, 0, ANY, false, true },
	{ SYS_epoll_ctl, 0, ANY, false, true },
};

static const struct harmless *find_harmless(long call)
{
	for (size_t i = 0; i < ARRAY_SIZE(harmless); i++)
		if (harmless[i].call == call)
			return &harmless[i];
	return NULL;
}

static bool is_stream(pid_t pid, pid_t tid, uint64_t fd)
{
	static const char *const kinds[] = { "socket:", "pipe:", "anon_inode:", "/dev/" };
	char path[96], to[64];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/fd/%u", pid, tid, (unsigned)fd);
	len = readlink(path, to, sizeof(to) - 1);
	to[len < 0 ? 0 : len] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strncmp(to, kinds[i], strlen(kinds[i])) == 0)
			return true;
	return false;
}

/*
 * A lock of the allocator or the loader is waited for by FUTEX_WAIT until it is no longer 2, the
 * value "taken, and others wait"; conditions, semaphores and joins of glibc by FUTEX_WAIT_BITSET.
 * Returns what is to be added to the rank, or -1.
 */
static int futex_rank(const uint64_t arg[6])
{
	unsigned command = (unsigned)arg[1] & FUTEX_CMD_MASK;

	if (command != FUTEX_WAIT && command != FUTEX_WAIT_BITSET)
		return -1;
	if ((uint32_t)arg[2] == 2)
		return -1;
	return command == FUTEX_WAIT ? RANK_LAST : 0;
}

/* -1: not harmless with these arguments. */
static int rank_of(const struct harmless *known, pid_t pid, pid_t tid, const uint64_t arg[6])
{
	int more;

	switch (known->care) {
	case STREAM:
		return is_stream(pid, tid, arg[0]) ? (int)known->rank : -1;
	case FUTEX:
		more = futex_rank(arg);
		return more < 0 ? -1 : (int)known->rank + more;
	default:
		return (int)known->rank;
	}
}

bool is_harmless_wait(long call)
{
	const struct harmless *known = find_harmless(call);

	return known && known->waits;
}

bool is_harmless_entry(pid_t pid, pid_t tid, long call, const uint64_t arg[6])
{
	const struct harmless *known = find_harmless(call);

	return known && known->entry && rank_of(known, pid, tid, arg) >= 0;
}

/* ---- threads --------------------------------------------------------------------------------- */

/* "running", "-1 sp pc", or "call arg... sp pc": the last two are hexadecimal, as the arguments. */
bool thread_call(pid_t pid, pid_t tid, struct waiting *waiting)
{
	unsigned long long v[8];
	char path[96];
	FILE *file;
	int n;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", pid, tid);
	file = fopen(path, "re");
	if (!file)
		return false;
	n = fscanf(file, "%ld %llx %llx %llx %llx %llx %llx %llx %llx", &waiting->call, &v[0],
	           &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]);
	fclose(file);
	if (n != 9)
		return false;
	for (int i = 0; i < 6; i++)
		waiting->arg[i] = v[i];
	waiting->sp = v[6];
	waiting->pc = v[7];
	waiting->tid = tid;
	return true;
}

/* 0: it is gone. */
static char state_of(pid_t pid, pid_t tid)
{
	struct process_stat stat;

	return process_stat_read(pid, tid, &stat) ? stat.state : 0;
}

/* The main thread is what people time; the youngest ones are mostly libraries' own. */
ORDER_BY(compare_waiting, struct waiting, UP(rank), DOWN(tid));

int waiting_list(pid_t pid, struct waiting *list, size_t room, size_t *threads, size_t *stopped)
{
	DIR *tasks = process_list(pid);
	size_t n = 0;
	pid_t tid;

	*threads = *stopped = 0;
	if (!tasks)
		return -ESRCH;
	while ((tid = process_next(tasks))) {
		char state = state_of(pid, tid);
		struct waiting *one = &list[n];
		const struct harmless *known;
		int rank;

		(*threads)++;
		*stopped += state == 'T' || state == 't';
		if (n == room || state != 'S' || !thread_call(pid, tid, one))
			continue;
		known = find_harmless(one->call);
		rank = known && known->waits ? rank_of(known, pid, tid, one->arg) : -1;
		if (rank < 0)
			continue;
		one->rank = (unsigned)rank + (tid == pid ? RANK_MAIN : 0);
		n++;
	}
	process_list_end(&tasks);
	qsort(list, n, sizeof(*list), compare_waiting);
	return (int)n;
}

pid_t thread_number(pid_t pid, size_t i)
{
	AT_END(process_list_end) DIR *tasks = process_list(pid);
	size_t n = 0;
	pid_t tid, found = 0;

	while (process_next(tasks))
		n++;
	if (n)
		rewinddir(tasks);
	for (i = n ? i % n + 1 : 0; i && (tid = process_next(tasks)); i--)
		found = tid;
	return found;
}

/* ---- signals --------------------------------------------------------------------------------- */

bool thread_status_of(pid_t pid, pid_t tid, struct thread_status *status)
{
	unsigned long long value;
	char path[96], line[256];
	FILE *file;
	int found = 0;

	*status = (struct thread_status){ 0 };
	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "SigPnd: %llx", &value) == 1 ||
		    sscanf(line, "ShdPnd: %llx", &value) == 1)
			status->pending |= value;
		else if (sscanf(line, "SigBlk: %llx", &value) == 1)
			status->blocked = value;
		else if (sscanf(line, "SigCgt: %llx", &value) == 1)
			status->caught = value;
		else if (sscanf(line, "Seccomp: %llu", &value) == 1)
			status->seccomp = (unsigned)value;
		else
			continue;
		found++;
	}
	if (file)
		fclose(file);
	return found >= 4; /* Seccomp is the fifth, in kernels that have it */
}

/* A handler has its own signal blocked. So have threads that leave signals to others, but those
 * block nearly all. */
bool may_be_in_handler(const struct thread_status *status)
{
	return (status->blocked & status->caught) &&
	       __builtin_popcountll(status->blocked & 0x7fffffff) < 20;
}

#ifdef __x86_64__

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/process.h"

#define SEIZES   8       /* tries, */
#define SEIZE_NS 1000000 /* and between two */

static enum inject_stop kind_of(int status)
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

enum inject_stop thread_next_stop(pid_t tid, uint64_t until_ns, int *sig)
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

/* Whoever has the pid by now is not touched: what was seized goes on at the end of this process. */
static int check_process(const struct inject_target *target, struct err *err)
{
	if (!target->start_time || process_start_time(target->pid) == target->start_time)
		return 0;
	return err_set(err, ESRCH, "process %d has ended, and another one may have its number",
	               target->pid);
}

/* Another one that attaches has it for a moment, and may be gone when it is asked who has it. */
int thread_seize(const struct inject_target *target, pid_t tid, struct err *err)
{
	bool traced = false;
	int code = 0, rc;

	for (int i = 0; i < SEIZES; i++) {
		if (ptrace(PTRACE_SEIZE, tid, NULL, PTRACE_O_TRACESYSGOOD) == 0)
			return check_process(target, err);
		code = errno;
		if (code != EPERM)
			break;
		traced |= target_tracer(target->pid, tid) != 0;
		nanosleep(&(struct timespec){ .tv_nsec = SEIZE_NS }, NULL);
	}
	if (code == ESRCH || process_is_ending(target->pid, tid))
		return -EAGAIN;
	rc = target_refused(target->pid, tid, code, err);
	return rc == -EPERM && traced ? -EAGAIN : rc;
}

#endif
