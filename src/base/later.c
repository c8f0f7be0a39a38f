// SPDX-License-Identifier: MIT
#include "base/later.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/xalloc.h"

static atomic_bool near_end;

bool end_is_near(void)
{
	return atomic_load(&near_end);
}

void end_set_near(bool near)
{
	atomic_store(&near_end, near);
}

#define CLOSERS_MAX   512
#define CLOSER_STACK  65536
#define CLOSE_LIMIT_S 10 /* for all, at the end of the program */

/*
 * A thread that is killed while the kernel takes a probe away leaves the probe there ("failed to
 * unregister, leaking uprobe"), and the end of the program kills threads. So it waits for them.
 */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t done;
	size_t closing;
	pid_t pid; /* whose threads they are: a fork has none of them */
} pending = { .lock = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER };

static void wait_for_closers(void)
{
	struct timespec until;

	if (getpid() != pending.pid)
		return;
	clock_gettime(CLOCK_MONOTONIC, &until); /* not one that is set */
	until.tv_sec += CLOSE_LIMIT_S;
	LOCKED(&pending.lock);
	while (pending.closing && pthread_cond_clockwait(&pending.done, &pending.lock,
	                                                 CLOCK_MONOTONIC, &until) != ETIMEDOUT)
		;
}

static void closers_add(void)
{
	LOCKED(&pending.lock);
	if (pending.pid != getpid()) {
		pending.pid = getpid();
		pending.closing = 0;
		atexit(wait_for_closers);
	}
	pending.closing++;
}

static void closers_remove(void)
{
	LOCKED(&pending.lock);
	pending.closing--;
	pthread_cond_signal(&pending.done);
}

static void *close_main(void *fd)
{
	close((int)(intptr_t)fd);
	closers_remove();
	return NULL;
}

void close_later(int fd)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, old;
	int r;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	closers_add();
	r = pthread_create(&thread, &attr, close_main, (void *)(intptr_t)fd);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (r)
		close_main((void *)(intptr_t)fd);
}

/* ---- many at once -------------------------------------------------------------------------- */

struct closer {
	pthread_t thread;
	const int *fds;
	size_t count;
};

static void *closer_main(void *data)
{
	struct closer *closer = data;

	for (size_t i = 0; i < closer->count; i++)
		close(closer->fds[i]);
	return NULL;
}

void close_together(const int *fds, size_t count)
{
	size_t n = count < CLOSERS_MAX ? count : CLOSERS_MAX, started = 0;
	AT_END(at_end_free) struct closer *closers = xcalloc(n, sizeof(*closers));
	pthread_attr_t attr;
	sigset_t all, old;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, CLOSER_STACK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	for (size_t i = 0; i < n; i++) {
		struct closer *closer = &closers[i];
		size_t first = count * i / n;

		closer->fds = fds + first;
		closer->count = count * (i + 1) / n - first;
		if (pthread_create(&closer->thread, &attr, closer_main, closer)) {
			closer->count = count - first; /* no more threads: the rest from here */
			closer_main(closer);
			break;
		}
		started++;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	for (size_t i = 0; i < started; i++)
		pthread_join(closers[i].thread, NULL);
}

/* ---- after the end ------------------------------------------------------------------------- */

#define FILES_MAX 65536

static bool is_among(int fd, const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (fds[i] == fd)
			return true;
	}
	return false;
}

/* Who closes it last frees what it has, which takes long where that is in many pieces. */
static bool is_deleted(int fd)
{
	struct statx x;

	return !statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_NLINK, &x) &&
	       S_ISREG(x.stx_mode) && !x.stx_nlink;
}

/* A pipe or a terminal that stayed open would never end for its reader. Without `fds`: those of
 * the kernel's that have no file stay, and deleted files. */
static void close_files(const int *fds, size_t count)
{
	long limit = sysconf(_SC_OPEN_MAX);

	for (int fd = 0; fd < limit && fd < FILES_MAX; fd++) {
		char link[32], name[16] = "";

		if (is_among(fd, fds, count) || fcntl(fd, F_GETFD) < 0)
			continue;
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		if (fds || (readlink(link, name, sizeof(name) - 1) > 0 &&
		            strncmp(name, "anon_inode:", 11) && !is_deleted(fd)))
			close(fd);
	}
}

#define LEISURE_TICKS   30 /* of 100 ms each */
#define LEISURE_TICK_NS 100000000

static void keep_in_child(const int *fds, size_t count, unsigned ticks)
{
	static const struct timespec tick = { .tv_nsec = LEISURE_TICK_NS };
	pid_t parent = getpid();

	/* not by fork(), which waits for locks that a thread may hold for ever */
	if (syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) != 0)
		return; /* without a child they are closed here */
	setsid();
	close_files(fds, count);
	/* sent when the parent's own descriptors are closed already */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (unsigned i = 0; getppid() == parent && (!ticks || i < ticks); i++)
		nanosleep(&tick, NULL);
	_exit(0);
}

void close_events_at_leisure(void)
{
	keep_in_child(NULL, 0, 0);
}

void close_at_leisure(const int *fds, size_t count)
{
	keep_in_child(fds, count, LEISURE_TICKS);
	for (size_t i = 0; i < count; i++)
		close(fds[i]);
}
