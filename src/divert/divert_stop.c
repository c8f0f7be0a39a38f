// SPDX-License-Identifier: MIT
#include "divert/divert_stop.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/process.h"
#include "base/vec.h"
#include "divert/divert_inside.h"

#ifndef PTRACE_GETSIGMASK
#define PTRACE_GETSIGMASK 0x420a
#endif

#define ERESTARTNOHAND 514 /* of the kernel, and never seen by a program */

#define LATE_NS   50000000u
#define DOZE_NS   100000u
#define FEW       8
#define ATTACHING "cuscope-attach" /* INJECT_COMM: traces for a moment */

uint64_t stop_now_ns(void)
{
	return clock_now_ns();
}

#ifdef __x86_64__

/* ---- calls that were interrupted ------------------------------------------------------------- */

/*
 * The kernel takes up most calls by itself. These give EINTR to a thread that was stopped and
 * continued, see signal(7): nothing has happened yet, and they are made again.
 */
static bool gives_eintr(uint64_t call)
{
	static const uint64_t calls[] = {
		SYS_epoll_wait, SYS_epoll_pwait, SYS_epoll_pwait2, SYS_rt_sigtimedwait,
		SYS_semop,      SYS_semtimedop,  SYS_io_getevents, SYS_accept,
		SYS_accept4,    SYS_recvfrom,    SYS_recvmsg,      SYS_recvmmsg,
		SYS_sendto,     SYS_sendmsg,     SYS_read,         SYS_readv,
		SYS_write,      SYS_writev,      SYS_sendmmsg,     SYS_io_uring_enter,
	};

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (calls[i] == call)
			return true;
	return false;
}

/* ---- registers ------------------------------------------------------------------------------- */

bool stop_get_regs(pid_t tid, struct user_regs_struct *regs)
{
	struct iovec io = { regs, sizeof(*regs) };

	return ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &io) == 0 && io.iov_len == sizeof(*regs);
}

bool stop_set_regs(pid_t tid, struct user_regs_struct *regs)
{
	struct iovec io = { regs, sizeof(*regs) };

	return ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &io) == 0;
}

static void read_place(struct stop_thread *thread)
{
	struct user_regs_struct regs;

	thread->has_regs = stop_get_regs(thread->tid, &regs);
	if (!thread->has_regs)
		return;
	thread->pc = regs.rip;
	thread->sp = regs.rsp;
	thread->interrupted = (long)regs.rax == -EINTR && gives_eintr(regs.orig_rax);
}

/* Of no call: what it does there is no call that would be made again. */
static bool place(const struct stop_thread *thread)
{
	struct user_regs_struct regs;

	if (!stop_get_regs(thread->tid, &regs))
		return false;
	regs.rip = thread->pc;
	regs.orig_rax = ~0ull;
	return stop_set_regs(thread->tid, &regs);
}

bool stop_place(struct stop *stop)
{
	bool placed = true;

	for (size_t i = 0; i < stop->count; i++) {
		struct stop_thread *thread = &stop->threads[i];

		if (!thread->changed)
			continue;
		thread->changed = false;
		thread->interrupted = false;
		placed &= place(thread);
	}
	return placed;
}

/*
 * The kernel decides whether the call is made again: a signal that is handled ends it with EINTR,
 * and one that is ignored does not.
 */
static void take_up_call(const struct stop_thread *thread)
{
	struct user_regs_struct regs;

	if (!thread->interrupted || !stop_get_regs(thread->tid, &regs))
		return;
	regs.rax = -ERESTARTNOHAND;
	stop_set_regs(thread->tid, &regs);
}

uint64_t stop_blocked(const struct stop_thread *thread)
{
	uint64_t mask = 0;

	return ptrace(PTRACE_GETSIGMASK, thread->tid, sizeof(mask), &mask) ? ~0ull : mask;
}

/* ---- who traces it --------------------------------------------------------------------------- */

struct tracer {
	pid_t pid;
	char name[32];
	bool root;
};

/* Anybody may take a name: `root` is whether all of its user ids are 0. */
static void read_tracer(struct tracer *tracer)
{
	unsigned ids[4] = { 1, 1, 1, 1 };
	char path[64], line[128];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", tracer->pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		sscanf(line, "Name: %31[^\n]", tracer->name);
		if (sscanf(line, "Uid: %u %u %u %u", &ids[0], &ids[1], &ids[2], &ids[3]) == 4)
			break;
	}
	if (file)
		fclose(file);
	tracer->root = !(ids[0] | ids[1] | ids[2] | ids[3]);
}

static struct tracer tracer_of(pid_t pid, pid_t tid)
{
	struct tracer tracer = { 0 };

	process_status(pid, tid, "TracerPid: %d", &tracer.pid);
	if (tracer.pid)
		read_tracer(&tracer);
	return tracer;
}

static int refused(pid_t pid, pid_t tid, int code, struct err *err)
{
	struct tracer tracer = tracer_of(pid, tid);

	if (tracer.root && (!strcmp(tracer.name, ATTACHING) || !strcmp(tracer.name, DIVERT_COMM)))
		return err_set(err, EAGAIN, "process %d is traced by %s", pid, tracer.name);
	if (tracer.pid)
		return err_set(err, EBUSY,
		               "process %d is traced by process %d (%s), and only one can do that",
		               pid, tracer.pid, tracer.name);
	return err_set(err, code, "cannot trace process %d: %s", pid, strerror(code));
}

/* ---- stopping -------------------------------------------------------------------------------- */

static bool is_known(const struct stop *stop, pid_t tid, size_t *hint)
{
	if (*hint < stop->count && stop->threads[*hint].tid == tid) {
		(*hint)++;
		return true;
	}
	for (size_t i = 0; i < stop->count; i++) {
		if (stop->threads[i].tid == tid) {
			*hint = i + 1;
			return true;
		}
	}
	return false;
}

static int add(struct stop *stop, pid_t pid, pid_t tid, struct err *err)
{
	struct stop_thread *thread;

	if (stop->count == DIVERT_THREADS_MAX)
		return err_set(err, E2BIG, "process %d has more than %d threads", stop->pid,
		               DIVERT_THREADS_MAX);
	stop->threads = vec_room(stop->threads, stop->count, sizeof(*stop->threads));
	thread = &stop->threads[stop->count];
	*thread = (struct stop_thread){ .tid = tid };
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL)) {
		int code = errno;

		thread->gone = code == ESRCH || process_is_ending(pid, tid);
		if (!thread->gone)
			return refused(pid, tid, code, err);
	}
	stop->count++;
	return 0;
}

static size_t threads_of(pid_t pid)
{
	size_t threads = 0;

	process_status(pid, 0, "Threads: %zu", &threads);
	return threads;
}

/* Seizes those that are not known. *whole: all that there are were listed. */
static int add_of_group(struct stop *stop, const struct stop_group *group, bool *whole,
                        struct err *err)
{
	size_t hint = 0, listed = 0;
	pid_t tid;
	int rc = 0;

	rewinddir(group->tasks);
	while (!rc && (tid = process_next(group->tasks))) {
		listed++;
		if (!is_known(stop, tid, &hint))
			rc = add(stop, group->pid, tid, err);
	}
	*whole &= rc || listed == threads_of(group->pid);
	return rc;
}

static int add_new(struct stop *stop, bool *whole, struct err *err)
{
	int rc = 0;

	*whole = true;
	for (size_t i = 0; !rc && i < stop->n_groups; i++)
		rc = add_of_group(stop, &stop->groups[i], whole, err);
	return rc;
}

static bool set_stopped(struct stop_thread *thread, int status)
{
	thread->stopped = WIFSTOPPED(status);
	thread->gone = !thread->stopped;
	if (thread->stopped)
		thread->signal = status >> 16 ? 0 : WSTOPSIG(status);
	return thread->stopped;
}

/* Whether it runs still. */
static bool poll_one(struct stop_thread *thread)
{
	int status;
	pid_t r;

	if (thread->stopped || thread->gone)
		return false;
	r = waitpid(thread->tid, &status, __WALL | WNOHANG);
	if (r == thread->tid)
		set_stopped(thread, status);
	else if (r)
		thread->gone = true;
	return !r;
}

/*
 * Until a thread has stopped, where few are awaited: SIGCHLD is blocked, and ends the sleep. Of
 * many, each would take the processor from the next one, so it sleeps for a while.
 */
static void doze(uint64_t until_ns, uint64_t now, size_t awaited)
{
	uint64_t ns = until_ns - now;
	struct timespec rest;
	sigset_t child;

	if (awaited > FEW && ns > DOZE_NS)
		ns = DOZE_NS;
	rest = (struct timespec){ .tv_nsec = (long)ns };
	if (awaited > FEW) {
		nanosleep(&rest, NULL);
		return;
	}
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigtimedwait(&child, NULL, &rest);
}

/* Reads the places of those that have stopped since the last time. How many have not. */
static size_t look_at_those_from(struct stop *stop, size_t first)
{
	size_t awaited = 0;

	for (size_t i = first; i < stop->count; i++) {
		struct stop_thread *thread = &stop->threads[i];

		if (thread->stopped || thread->gone)
			continue;
		if (poll_one(thread))
			awaited++;
		else if (thread->stopped)
			read_place(thread);
	}
	return awaited;
}

static int stop_those_from(struct stop *stop, size_t first, struct err *err)
{
	size_t awaited;
	uint64_t now;

	for (size_t i = first; i < stop->count; i++)
		if (!stop->threads[i].gone)
			ptrace(PTRACE_INTERRUPT, stop->threads[i].tid, NULL, NULL);
	while ((awaited = look_at_those_from(stop, first))) {
		now = stop_now_ns();
		if (now >= stop->until_ns)
			return err_set(err, EAGAIN,
			               "the threads of process %d did not all stop within %.1f ms",
			               stop->pid, (double)(stop->until_ns - stop->begin_ns) / 1e6);
		doze(stop->until_ns, now, awaited);
	}
	return 0;
}

static size_t threads_of_all(const struct stop *stop)
{
	size_t threads = 0;

	for (size_t i = 0; i < stop->n_groups; i++)
		threads += threads_of(stop->groups[i].pid);
	return threads;
}

static size_t stopped_of(const struct stop *stop)
{
	size_t stopped = 0;

	for (size_t i = 0; i < stop->count; i++)
		stopped += stop->threads[i].stopped;
	return stopped;
}

/*
 * Threads that are stopped make no others: where there are no more than these, that is all of them.
 * Where some are ending, all are listed until no new one is found.
 */
static int stop_rounds(struct stop *stop, struct err *err)
{
	size_t first = 0;
	bool whole;
	int rc = 0;

	while (!rc) {
		rc = stop_those_from(stop, first, err);
		first = stop->count;
		if (!rc && stopped_of(stop) == threads_of_all(stop))
			return 0;
		if (!rc)
			rc = add_new(stop, &whole, err);
		if (!rc && first == stop->count && whole)
			return 0;
		if (!rc && stop_now_ns() >= stop->until_ns)
			rc = err_set(err, EAGAIN, "process %d makes threads all the time",
			             stop->pid);
	}
	return rc;
}

/* Letting a thread go takes a little longer than finding and seizing it. */
static uint64_t let_go_ns(const struct stop *stop)
{
	return stop->count * stop->seize_ns * 5 / 4;
}

uint64_t stop_left_ns(const struct stop *stop)
{
	uint64_t by = stop_now_ns() + let_go_ns(stop);

	return by < stop->end_ns ? stop->end_ns - by : 0;
}

/* Seizes all, by which nobody is stopped. */
static int seize_all(struct stop *stop, struct err *err)
{
	uint64_t begin_ns = stop_now_ns();
	bool whole;
	int rc = add_new(stop, &whole, err);

	if (stop->count)
		stop->seize_ns = (stop_now_ns() - begin_ns) / stop->count;
	return rc;
}

static int begin(struct stop *stop, uint64_t limit_ns, uint64_t work_ns, struct err *err)
{
	uint64_t rest_ns = work_ns + let_go_ns(stop);

	if (rest_ns > limit_ns / 4 * 3)
		return err_set(err, EAGAIN,
		               "to stop the %zu threads of process %d takes longer than %.0f ms",
		               stop->count, stop->pid, (double)limit_ns / 1e6);
	stop->begin_ns = stop_now_ns();
	stop->end_ns = stop->begin_ns + limit_ns;
	stop->until_ns = stop->end_ns - rest_ns;
	return 0;
}

static void open_group(struct stop *stop, pid_t pid)
{
	DIR *tasks = process_list(pid);

	if (tasks)
		stop->groups[stop->n_groups++] = (struct stop_group){ pid, tasks };
}

int stop_all(struct stop *stop, pid_t pid, const struct peers *peers, uint64_t limit_ns,
             uint64_t work_ns, struct err *err)
{
	int rc;

	*stop = (struct stop){ .pid = pid };
	open_group(stop, pid);
	if (!stop->n_groups)
		return err_set(err, ESRCH, "process %d has ended", pid);
	for (size_t i = 0; peers && i < peers->count; i++)
		open_group(stop, peers->pids[i]);
	rc = threads_of(pid) > DIVERT_THREADS_MAX
	             ? err_set(err, E2BIG, "process %d has more than %d threads", pid,
	                       DIVERT_THREADS_MAX)
	             : seize_all(stop, err);
	if (!rc)
		rc = begin(stop, limit_ns, work_ns, err);
	if (!rc)
		rc = stop_rounds(stop, err);
	for (size_t i = 0; i < stop->n_groups; i++)
		closedir(stop->groups[i].tasks);
	stop->n_groups = 0;
	return rc;
}

pid_t stop_one(const struct stop *stop)
{
	for (size_t i = 0; i < stop->count; i++)
		if (stop->threads[i].stopped && stop->threads[i].has_regs)
			return stop->threads[i].tid;
	return 0;
}

static void let_one_go(const struct stop_thread *thread)
{
	take_up_call(thread);
	ptrace(PTRACE_DETACH, thread->tid, NULL, thread->signal);
}

static struct stop_thread *thread_of(const struct stop *stop, pid_t tid)
{
	for (size_t i = 0; i < stop->count; i++)
		if (stop->threads[i].tid == tid)
			return &stop->threads[i];
	return NULL;
}

/* Those that were late: each as soon as it stops. */
static void let_late_go(const struct stop *stop, size_t late)
{
	uint64_t now = stop_now_ns(), until_ns = now + LATE_NS;
	int status;

	while (late && now < until_ns) {
		pid_t tid = waitpid(-1, &status, __WALL | WNOHANG);
		struct stop_thread *thread = tid > 0 ? thread_of(stop, tid) : NULL;

		if (thread && set_stopped(thread, status)) {
			read_place(thread);
			let_one_go(thread);
		}
		late -= tid > 0;
		if (tid < 0)
			return;
		if (!tid)
			doze(until_ns, now, 1);
		now = stop_now_ns();
	}
}

uint64_t stop_let_go(struct stop *stop)
{
	size_t late = 0;
	uint64_t end;

	for (size_t i = 0; i < stop->count; i++) {
		const struct stop_thread *thread = &stop->threads[i];

		late += !thread->stopped && !thread->gone;
		if (thread->stopped)
			let_one_go(thread);
		else if (!thread->gone)
			ptrace(PTRACE_INTERRUPT, thread->tid, NULL, NULL);
	}
	end = stop_now_ns();
	let_late_go(stop, late);
	free(stop->threads);
	stop->threads = NULL;
	stop->count = 0;
	return stop->begin_ns ? end - stop->begin_ns : 0;
}

#endif
