// SPDX-License-Identifier: MIT
#include "agent/inject_run.h"

#include <errno.h>

#ifdef __x86_64__

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "agent/inject_plan.h"
#include "agent/inject_target.h"
#include "agent/inject_thread.h"
#include "agent/inject_trace.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/text.h"

#define MS          1000000ull
#define WAITING_MAX 64         /* threads that are listed at a time */
#define TRIES       4          /* of them in one round */
#define PATIENCE_NS (200 * MS) /* for one that waits; then those that run are looked at as well */
#define CHOICE_NS   (50 * MS)  /* before one of the last ranks is taken */
#define SLICE_NS    (20 * MS)  /* for each of these */
#define PAUSE_NS    (2 * MS)
#define BACK_NS     (300 * MS) /* for one that is given back, to say so */

struct run {
	const struct inject_options *options;
	struct inject_target target;
	uint64_t begin_ns, deadline_ns;
	size_t turn; /* of the threads that run */
	size_t threads, stopped;
	size_t skip; /* threads that wait, and were not to be had at the last looks */
};

/* ---- how it went ----------------------------------------------------------------------------- */

#define MESSAGES_MOST 16 /* the thread sends three at most */

struct inject_outcome {
	bool loaded, told, flooded;
	uint64_t loaded_ns, told_ns; /* CLOCK_MONOTONIC, as the thread says when it sent it */
	int returned;
	char text[704]; /* dlerror's */
};

/*
 * When it was sent: what it takes until we get a CPU is none of the thread's time. It is the
 * target's word, so it is some time until now.
 */
static uint64_t sent_ns(const struct plan_word *word)
{
	struct timespec real;
	uint64_t now_ns = clock_now_ns(), ago_ns;

	clock_gettime(CLOCK_REALTIME, &real);
	ago_ns = (uint64_t)real.tv_sec * 1000000000u + (uint64_t)real.tv_nsec -
	         (word->sent[0] * 1000000000u + word->sent[1]);
	return ago_ns < now_ns ? now_ns - ago_ns : now_ns; /* unless the clock was set */
}

/* One message of the target, which is not trusted: any bytes may come. */
static void take_message(struct inject_outcome *report, const struct borrowed *borrowed,
                         const void *data, size_t n)
{
	const struct step *step = data;
	struct plan_word word = { 0 };

	if (n == sizeof(word))
		memcpy(&word, data, n);
	else if (n == sizeof(*step))
		memcpy(&word, &step->arg[PLAN_WORD], sizeof(word));
	if (n == sizeof(word) && word.mark == borrowed->mark) {
		report->loaded = true;
		report->loaded_ns = sent_ns(&word);
	} else if (n == sizeof(*step) && word.mark == borrowed->mark) {
		report->told = true;
		report->told_ns = sent_ns(&word);
		report->returned = (int)step->result;
	} else if (!report->loaded && n < sizeof(report->text)) {
		memcpy(report->text, data, n);
		report->text[n] = '\0';
	}
}

/*
 * Until the thread has told how it went, which is the last thing that it does, or is gone; false:
 * too late. The end of the socket alone may not come: what another thread forks meanwhile has it.
 * Received without control messages: a descriptor that the target sends is never ours, to be closed
 * by us, which can take as long as the target likes.
 */
static bool await_report(const struct borrowed *borrowed, uint64_t deadline_ns,
                         struct inject_outcome *report)
{
	struct pollfd fd = { .fd = borrowed->report, .events = POLLIN };
	_Alignas(8) char message[1024];
	unsigned messages = 0;

	*report = (struct inject_outcome){ 0 };
	for (;;) {
		uint64_t now = clock_now_ns();
		ssize_t n;
		int r;

		if (now >= deadline_ns)
			return false;
		r = poll(&fd, 1, (int)((deadline_ns - now) / MS) + 1);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return false;
		n = recv(borrowed->report, message, sizeof(message), MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN))
			return true;
		if (n > 0)
			take_message(report, borrowed, message, (size_t)n);
		report->flooded = n > 0 && ++messages > MESSAGES_MOST;
		if (report->told || report->flooded)
			return true;
	}
}

static int not_loaded(const struct run *run, const struct inject_outcome *report, struct err *err)
{
	AT_END(buf_free) struct buf safe = { 0 };
	char proc[64];
	int rc;

	/* by which the loader opens it */
	snprintf(proc, sizeof(proc), "/proc/%d/root/proc/self", run->options->pid);
	text_add_safe(&safe, report->text);
	if (access(proc, F_OK) && errno == ENOENT)
		rc = err_set(err, ENOEXEC,
		             "process %d sees no /proc, as in a chroot without one, so its loader "
		             "finds no library of cuscope's; mount it there",
		             run->options->pid);
	else
		rc = err_set(err, ENOEXEC, "the loader of process %d refused the library: %s",
		             run->options->pid, safe.len ? safe.data : "it did not say why");
	return rc;
}

static int too_late(const struct run *run, const struct inject_outcome *report, bool given_back,
                    struct err *err)
{
	if (given_back)
		return err_set(
			err, ETIMEDOUT,
			"loading a library into process %d did not end in %.1f s, since a lock of "
			"its loader or its allocator did not come free; the thread was given "
			"back to what it did",
			run->options->pid, (double)run->options->limit_ns / 1e9);
	if (!report->loaded)
		return err_set(
			err, ETIMEDOUT,
			"loading a library into process %d did not end in %.1f s (another of "
			"its threads may hold the loader's lock); the process is left alone "
			"and cuscope's library stays unused",
			run->options->pid, (double)run->options->limit_ns / 1e9);
	return err_set(err, ETIMEDOUT, "cuscope's library in process %d did not start in %.1f s",
	               run->options->pid, (double)run->options->limit_ns / 1e9);
}

static void tell_parts(const struct borrowed *borrowed, const struct inject_outcome *report,
                       struct inject_result *result)
{
	uint64_t now_ns = report->told ? report->told_ns : clock_now_ns();
	uint64_t loaded_ns = report->loaded ? report->loaded_ns : now_ns;

	if (loaded_ns < borrowed->free_ns) /* clocks are read one after the other */
		loaded_ns = borrowed->free_ns;
	if (now_ns < loaded_ns)
		now_ns = loaded_ns;

	result->stopped_ns = now_ns - borrowed->since_ns;
	result->part_ns[INJECT_LOOK] = borrowed->looked_ns - borrowed->since_ns;
	result->part_ns[INJECT_OPEN] = borrowed->opened_ns - borrowed->looked_ns;
	result->part_ns[INJECT_FILL] = borrowed->free_ns - borrowed->opened_ns;
	result->part_ns[INJECT_LOAD] = loaded_ns - borrowed->free_ns;
	result->part_ns[INJECT_CALL] = now_ns - loaded_ns;
}

static int conclude(const struct run *run, struct borrowed *borrowed, struct inject_result *result,
                    struct err *err)
{
	struct inject_outcome report;
	bool ended = await_report(borrowed, run->deadline_ns, &report), given_back = false;
	int rc = 0;

	if (!ended && !report.loaded && give_back(&run->target, borrowed)) {
		given_back = true;
		await_report(borrowed, clock_now_ns() + BACK_NS, &report);
	}

	tell_parts(borrowed, &report, result);
	result->may_read = borrowed->may_read;
	close(borrowed->report);
	if (!ended)
		rc = too_late(run, &report, given_back, err);
	else if (!report.told && report.flooded)
		rc = err_set(err, EPROTO,
		             "process %d sent more to cuscope than a thread does that loads its "
		             "library",
		             run->options->pid);
	else if (!report.told)
		rc = err_set(err, ESRCH,
		             "process %d ended, or started another program, while cuscope "
		             "attached to it",
		             run->options->pid);
	else if (!report.loaded)
		rc = not_loaded(run, &report, err);
	else if (report.returned)
		rc = err_set(err, report.returned,
		             "cuscope's library in process %d could not start: %s",
		             run->options->pid,
		             strerror(report.returned < 0 ? -report.returned : report.returned));
	if (rc)
		close(borrowed->socket);
	else
		result->socket = borrowed->socket;
	return rc;
}

/* ---- finding a thread ------------------------------------------------------------------------ */

/* Each file of a process is read once, and then it is as it was. */
static int try_one(struct run *run, const struct waiting *one, struct borrowed *borrowed,
                   struct err *err)
{
	size_t reads;
	int rc;

	do {
		reads = run->target.reads;
		rc = borrow_waiting(run->options, &run->target, one, run->deadline_ns, borrowed,
		                    err);
	} while (rc == -EAGAIN && run->target.reads > reads);
	return rc;
}

static int try_waiting(struct run *run, struct borrowed *borrowed, struct err *err)
{
	struct waiting list[WAITING_MAX];
	int n = waiting_list(run->options->pid, list, WAITING_MAX, &run->threads, &run->stopped);
	size_t holding = run->target.holding;
	int rc = -EAGAIN;

	if (n < 0)
		return err_set(err, ESRCH, "process %d has ended", run->options->pid);
	for (int i = 0; i < n && i < TRIES && rc == -EAGAIN; i++) {
		const struct waiting *one = &list[(run->skip + (size_t)i) % (size_t)n];

		if (one->rank >= RANK_LAST && clock_now_ns() - run->begin_ns < CHOICE_NS)
			continue;
		rc = try_one(run, one, borrowed, err);
	}
	run->skip += run->target.holding - holding;
	return rc;
}

static int try_running(struct run *run, struct borrowed *borrowed, struct err *err)
{
	uint64_t until_ns = clock_now_ns() + SLICE_NS;
	pid_t tid = thread_number(run->options->pid, run->turn++);

	if (until_ns > run->deadline_ns)
		until_ns = run->deadline_ns;
	return tid ? borrow_running(run->options, &run->target, tid, until_ns, run->deadline_ns,
	                            borrowed, err)
	           : -EAGAIN;
}

static int no_point(const struct run *run, struct err *err)
{
	if (run->threads && run->stopped == run->threads)
		return err_set(err, EAGAIN,
		               "process %d is stopped (SIGSTOP, or a debugger): let it go on first",
		               run->options->pid);
	if (run->target.holding)
		return err_set(
			err, EAGAIN,
			"no thread of process %d can be borrowed: those that wait are in an "
			"allocator or the loader, or nobody knows in what, and could wait for "
			"themselves for good; try again, or start the program with cuscope",
			run->options->pid);
	return err_set(err, EAGAIN,
	               "no thread of process %d reached a point at which a library can be loaded "
	               "(waiting in poll, sleep, read from a socket ...) in %.1f s; try again, or "
	               "start the program with cuscope",
	               run->options->pid, (double)run->options->limit_ns / 1e9);
}

/* Whether the process still has the program that was looked at. */
static bool is_same_program(const struct inject_target *target)
{
	uint64_t there;

	return target_read(target, target->dlopen, &there, sizeof(there));
}

/* 0 with a borrowed thread that works; -ESTALE when all is to be looked at again. */
static int find_thread(struct run *run, struct borrowed *borrowed, struct err *err)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	uint64_t now;
	int rc;

	while ((now = clock_now_ns()) < run->deadline_ns) {
		rc = try_waiting(run, borrowed, err);
		if (rc == -EAGAIN && now - run->begin_ns > PATIENCE_NS)
			rc = try_running(run, borrowed, err);
		if (rc != -EAGAIN)
			return rc;
		if (!is_same_program(&run->target))
			return -ESTALE;
		nanosleep(&pause, NULL);
	}
	return no_point(run, err);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int look_and_find(struct run *run, struct borrowed *borrowed, struct err *err)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	int rc;

	do {
		rc = target_look(run->options, &run->target, err);
		if (!rc) {
			rc = find_thread(run, borrowed, err);
			target_close(&run->target);
		}
		if (rc == -ESTALE)
			nanosleep(&pause, NULL);
	} while (rc == -ESTALE && clock_now_ns() < run->deadline_ns);
	return rc == -ESTALE ? no_point(run, err) : rc;
}

int inject_run(const struct inject_options *options, struct inject_result *result, struct err *err)
{
	struct run run = { .options = options, .begin_ns = clock_now_ns() };
	struct borrowed borrowed;
	int rc;

	if (!plan_fits() || strlen(options->name) >= PLAN_NAME_MAX ||
	    strlen(options->function) >= PLAN_NAME_MAX)
		return err_set(err, ENOTSUP, "attaching: this processor's registers do not fit");
	run.deadline_ns = run.begin_ns + options->limit_ns;
	rc = look_and_find(&run, &borrowed, err);
	return rc ? rc : conclude(&run, &borrowed, result, err);
}

#else

int inject_run(const struct inject_options *options, struct inject_result *result, struct err *err)
{
	return err_set(err, ENOTSUP,
	               "attaching is not supported on AArch64 yet; start the program with cuscope");
}

#endif

#ifdef __x86_64__

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef PIDFD_THREAD /* Linux 6.9 */
#define PIDFD_THREAD O_EXCL
#endif

static int get_descriptor(const struct inject_target *target, pid_t tid, int number)
{
	/* its own table of descriptors, also when the main thread has ended */
	int pidfd = (int)syscall(SYS_pidfd_open, tid, PIDFD_THREAD), fd;

	if (pidfd < 0)
		pidfd = (int)syscall(SYS_pidfd_open, target->pid, 0);
	if (pidfd < 0)
		return -errno;
	fd = (int)syscall(SYS_pidfd_getfd, pidfd, number, 0);
	fd = fd < 0 ? -errno : fd;
	close(pidfd);
	return fd;
}

static int fill(int fd, const void *bytes, size_t n)
{
	const char *from = bytes;

	while (n) {
		ssize_t put = write(fd, from, n);

		if (put <= 0)
			return put < 0 ? -errno : -ENOSPC;
		from += put;
		n -= (size_t)put;
	}
	return 0;
}

/*
 * A name for the memfd that the loader has never seen: it compares names before it looks at files,
 * and descriptors' numbers come again. The kernel sees "//" and "/./" as "/".
 */
static void write_path(char *path, size_t size, uint64_t salt, int number)
{
	int n = snprintf(path, size, "/proc/thread-self/fd");

	for (int bit = 0; bit < 24; bit++)
		n += snprintf(path + n, size - (size_t)n, salt >> bit & 1 ? "/." : "/");
	snprintf(path + n, size - (size_t)n, "/%d", number);
}

/* What the target's own calls answered. */
static int check_made(const struct inject_target *target, const struct area *area, struct err *err)
{
	int memfd = (int)area->step[STEP_MEMFD].result, pair = (int)area->step[STEP_PAIR].result;
	int report = (int)area->step[STEP_REPORT_PAIR].result;

	if (!target->loaded && memfd < 0)
		return err_set(err, memfd, "process %d could not make a memfd: %s%s", target->pid,
		               strerror(-memfd),
		               memfd == -EACCES ? "; vm.memfd_noexec forbids it (sysctl "
		                                  "vm.memfd_noexec=0)"
		                                : "");
	if (pair < 0 || report < 0)
		return err_set(err, pair < 0 ? pair : report,
		               "process %d could not make a pair of sockets: %s", target->pid,
		               strerror(pair < 0 ? -pair : -report));
	return 0;
}

/*
 * The target may have put something else in its place: where a write waits for somebody, has a
 * meaning to the kernel, or is of use to it because it is root who writes. Files of a tmpfs have
 * seals as well, but F_SEAL_SEAL among them from the beginning, and nothing takes a seal away: one
 * that can still be sealed was made by memfd_create with MFD_ALLOW_SEALING, and has no name.
 */
static bool is_fresh_memfd(int fd)
{
	struct statfs fs;
	struct stat st;

	return fcntl(fd, F_GET_SEALS) == 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       !st.st_nlink && !st.st_size && fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

static int fill_library(const struct inject_options *options, const struct inject_target *target,
                        pid_t tid, const struct plan *plan, uint64_t base, const struct area *area,
                        struct err *err)
{
	int number = (int)area->step[STEP_MEMFD].result;
	int fd = get_descriptor(target, tid, number), rc;
	char path[sizeof(area->path)];

	if (fd < 0)
		return err_set(err, fd, "taking the memfd of process %d: %s", target->pid,
		               strerror(-fd));
	if (!is_fresh_memfd(fd)) {
		close(fd);
		return err_set(err, EBADF, "process %d has put another file in place of a memfd",
		               target->pid);
	}
	rc = fill(fd, options->library, options->bytes);
	close(fd);
	write_path(path, sizeof(path), plan->mark, number);
	if (!rc && !target_write(target, base + offsetof(struct area, path), path, sizeof(path)))
		rc = -EFAULT;
	return rc ? err_set(err, rc, "writing the library into process %d: %s", target->pid,
	                    strerror(-rc))
	          : 0;
}

/* The target may have put something else in its place, as above. */
static bool is_our_kind(int fd)
{
	int domain = 0, type = 0;
	socklen_t size = sizeof(int);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX &&
	       getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

static int take_sockets(const struct inject_target *target, pid_t tid, const struct area *area,
                        struct borrowed *borrowed, struct err *err)
{
	int rc;

	borrowed->socket = get_descriptor(target, tid, area->pair[0]);
	borrowed->report = get_descriptor(target, tid, area->report[0]);
	rc = borrowed->socket < 0 ? borrowed->socket : borrowed->report;
	if (rc >= 0 && (!is_our_kind(borrowed->socket) || !is_our_kind(borrowed->report)))
		rc = -ENOTSOCK;
	return rc < 0 ? err_set(err, rc, "taking the sockets of process %d: %s", target->pid,
	                        strerror(-rc))
	              : 0;
}

int handover(const struct inject_options *options, const struct inject_target *target, pid_t tid,
             const struct plan *plan, uint64_t base, struct borrowed *borrowed, struct err *err)
{
	uint64_t go = SYS_getpid;
	struct area area;
	int rc;

	if (!target_read(target, base, &area, sizeof(area)))
		return err_set(err, EFAULT, "reading the memory of process %d failed", target->pid);
	rc = check_made(target, &area, err);
	if (!rc)
		rc = take_sockets(target, tid, &area, borrowed, err);
	if (!rc && !target->loaded)
		rc = fill_library(options, target, tid, plan, base, &area, err);
	if (!rc && !target_write(target, base + offsetof(struct area, go), &go, sizeof(go)))
		rc = err_set(err, EFAULT, "writing to the memory of process %d failed",
		             target->pid);
	return rc;
}

#endif
