// SPDX-License-Identifier: MIT
#include "probe/frozen.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/process.h"
#include "base/worker.h"
#include "base/xalloc.h"
#include "probe/bpf_call.h"

#define LOOK_MS  1000
#define AGAIN_MS 500 /* where it stands still */
/* So many looks in a row until connections are ended, five seconds and ten: somebody's training
 * that reads from a slow store has answers by then. */
#define LOOKS_USERS 8 /* of users whose threads wait */
#define LOOKS_ALL   18
#define THREADS_MAX 64  /* that may stand still at once, and are looked at */
#define WAITERS_MAX 256 /* for files */

#define FUSE_CTL_SUPER_MAGIC 0x65735543

/* A thread of cuscope's that waits in the kernel, and how long it had run by then. */
struct waiting {
	pid_t tid;
	unsigned long long ran_ns;
};

/* A thread of anybody's that waits for a file. */
struct waiter {
	pid_t pid, tid;
	uid_t user;
	unsigned long long ran_ns;
};

struct watch {
	pid_t pid; /* of cuscope */
	int pidfd, news;
	struct waiting waiting[THREADS_MAX];
	size_t n_waiting;
	unsigned looks; /* in a row at which it stood still */
	struct waiter waiters[WAITERS_MAX];
	size_t n_waiters; /* since the first of these looks, without having run */
};

static int socket_of_news = -1;
static pid_t owner;

/* ---- who waits for a probe ------------------------------------------------------------------ */

/* The first bytes of a file, as a text. */
static bool read_text(int folder, const char *path, char *text, size_t size)
{
	AT_END(at_end_close) int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

static bool thread_text(pid_t pid, pid_t tid, const char *name, char *text, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
	return read_text(AT_FDCWD, path, text, size);
}

static bool thread_ran(pid_t pid, pid_t tid, unsigned long long *ran_ns)
{
	char text[128];

	if (!thread_text(pid, tid, "schedstat", text, sizeof(text)))
		return false;
	*ran_ns = strtoull(text, NULL, 10);
	return true;
}

/* Of cuscope itself: of others these files may wait for an exec that is never over. */
static bool waits_for_probe(pid_t pid, pid_t tid)
{
	struct process_stat stat;
	char stack[4096];

	return process_stat_read(pid, tid, &stat) && stat.state == 'D' &&
	       thread_text(pid, tid, "stack", stack, sizeof(stack)) &&
	       strstr(stack, "register_for_each_vma") && !strstr(stack, "synchronize_rcu");
}

static const struct waiting *before(const struct watch *watch, pid_t tid)
{
	for (size_t i = 0; i < watch->n_waiting; i++) {
		if (watch->waiting[i].tid == tid)
			return &watch->waiting[i];
	}
	return NULL;
}

/* Whether a thread of cuscope's has waited since the last look, and with it all who want to fork.
 * Where thousands of processes get a probe this takes long, but it runs then. */
static bool stands_still(struct watch *watch)
{
	AT_END(process_list_end) DIR *threads = process_list(watch->pid);
	struct waiting now[THREADS_MAX];
	bool still = false;
	size_t n = 0;
	pid_t tid;

	while (n < THREADS_MAX && (tid = process_next(threads))) {
		const struct waiting *old = before(watch, tid);

		now[n].tid = tid;
		if (!waits_for_probe(watch->pid, tid) ||
		    !thread_ran(watch->pid, tid, &now[n].ran_ns))
			continue;
		still |= old && old->ran_ns == now[n].ran_ns;
		n++;
	}
	memcpy(watch->waiting, now, n * sizeof(*now));
	watch->n_waiting = n;
	return still;
}

/* ---- who waits for a file ------------------------------------------------------------------- */

/* For a page, or for FUSE itself: the function that a thread sleeps in, by the names of Linux 5.15
 * to 6.18. Other files of a process tell more, and may wait for an exec that is never over. */
static bool waits_for_file(pid_t pid, pid_t tid)
{
	static const char *const functions[] = { "folio_",      "__folio_", "wait_on_page",
		                                 "__lock_page", "fuse_",    "request_wait_answer" };
	char text[128];

	if (!thread_text(pid, tid, "wchan", text, sizeof(text)))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
		if (!strncmp(text, functions[i], strlen(functions[i])))
			return true;
	return false;
}

/* Root's where a process lets nobody look into it. */
static uid_t user_of(pid_t pid)
{
	struct stat st;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", pid);
	return stat(path, &st) ? 0 : st.st_uid;
}

static void find_waiters_of(struct watch *watch, pid_t pid)
{
	AT_END(process_list_end) DIR *threads = process_list(pid);
	pid_t tid;

	while (watch->n_waiters < WAITERS_MAX && (tid = process_next(threads))) {
		struct waiter *waiter = &watch->waiters[watch->n_waiters];

		if (!waits_for_file(pid, tid) || !thread_ran(pid, tid, &waiter->ran_ns))
			continue;
		waiter->pid = pid;
		waiter->tid = tid;
		waiter->user = user_of(pid);
		watch->n_waiters++;
	}
}

static void find_waiters(struct watch *watch)
{
	AT_END(process_list_end) DIR *processes = process_list(0);
	pid_t pid;

	watch->n_waiters = 0;
	while ((pid = process_next(processes))) {
		if (pid != watch->pid)
			find_waiters_of(watch, pid);
	}
}

/* Those that wait no more, or have run, are none. */
static void keep_waiters(struct watch *watch)
{
	size_t n = 0;

	for (size_t i = 0; i < watch->n_waiters; i++) {
		const struct waiter waiter = watch->waiters[i];
		unsigned long long ran_ns;

		if (waits_for_file(waiter.pid, waiter.tid) &&
		    thread_ran(waiter.pid, waiter.tid, &ran_ns) && ran_ns == waiter.ran_ns)
			watch->waiters[n++] = waiter;
	}
	watch->n_waiters = n;
}

/* ---- whose mappings are locked --------------------------------------------------------------- */

#define LOCKED_NS  300000000
#define STACK_SIZE 65536

struct asked {
	pid_t pid;
	int answer; /* it is closed */
};

/* Nothing is there; to find that out takes the lock that a probe waits for. */
static void *ask(void *data)
{
	struct asked *asked = data;
	char byte;
	struct iovec to = { &byte, 1 }, from = { (void *)1, 1 };

	process_vm_readv(asked->pid, &to, 1, &from, 1, 0);
	close(asked->answer);
	free(asked);
	return NULL;
}

/* By a thread, which is left behind: no process can be made now. What ends when it has an answer,
 * or -1. */
static int ask_aside(pid_t pid)
{
	struct asked *asked = xcalloc(1, sizeof(*asked));
	pthread_attr_t attr;
	pthread_t thread;
	int pair[2], r;

	if (pipe2(pair, O_CLOEXEC)) {
		free(asked);
		return -1;
	}
	*asked = (struct asked){ pid, pair[1] };
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	r = pthread_create(&thread, &attr, ask, asked);
	pthread_attr_destroy(&attr);
	if (r) {
		close(pair[1]);
		free(asked);
	}
	return pair[0];
}

/* Others wait for their files, and nobody waits for them. All are asked at once. */
static void keep_locked(struct watch *watch)
{
	const struct timespec moment = { .tv_nsec = LOCKED_NS };
	struct pollfd answers[WAITERS_MAX];
	size_t n = 0;

	for (size_t i = 0; i < watch->n_waiters; i++)
		answers[i] = (struct pollfd){ .fd = ask_aside(watch->waiters[i].pid) };
	nanosleep(&moment, NULL);
	for (size_t i = 0; i < watch->n_waiters; i++) {
		if (answers[i].fd < 0)
			continue;
		if (!poll(&answers[i], 1, 0))
			watch->waiters[n++] = watch->waiters[i];
		close(answers[i].fd);
	}
	watch->n_waiters = n;
}

static bool user_waits(const struct watch *watch, uid_t user)
{
	for (size_t i = 0; i < watch->n_waiters; i++) {
		if (watch->waiters[i].user == user)
			return true;
	}
	return false;
}

/* ---- connections ---------------------------------------------------------------------------- */

/* Where the kernel lists them, which nobody has mounted on some machines. */
static DIR *connections_open(void)
{
	AT_END(at_end_close) int seen = open("/sys/fs/fuse/connections", O_PATH | O_CLOEXEC);
	AT_END(at_end_close) int hidden = -1;
	struct statfs fs;
	int fd;

	if (seen < 0 || fstatfs(seen, &fs) || fs.f_type != FUSE_CTL_SUPER_MAGIC)
		hidden = hidden_mount("fusectl");
	fd = openat(hidden >= 0 ? hidden : seen, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? NULL : fdopendir(fd);
}

static bool end_connection(int connection)
{
	AT_END(at_end_close) int fd = openat(connection, "abort", O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, "1", 1) == 1;
}

static void tell(const struct watch *watch, const char *number, uid_t user)
{
	char text[384];

	snprintf(text, sizeof(text),
	         "FUSE connection %.16s of user %u was ended: a process waited for its answer with "
	         "its mappings locked, a probe waited for that process, and all who wanted to fork "
	         "on this machine waited for the probe",
	         number, user);
	worker_send_now(watch->news, text, strlen(text), -1);
}

static void end_if_it_waits(const struct watch *watch, int list, const char *number)
{
	AT_END(at_end_close)
	int connection = openat(list, number, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char waiting[32];
	struct stat st;

	if (connection < 0 || fstat(connection, &st) || !st.st_uid ||
	    !read_text(connection, "waiting", waiting, sizeof(waiting)) || atol(waiting) <= 0)
		return;
	if (watch->looks < LOOKS_ALL && !user_waits(watch, st.st_uid))
		return;
	if (end_connection(connection))
		tell(watch, number, st.st_uid);
}

static void end_connections(const struct watch *watch)
{
	DIR *list = connections_open();
	const struct dirent *entry;

	while (list && (entry = readdir(list))) {
		if (entry->d_name[0] != '.')
			end_if_it_waits(watch, dirfd(list), entry->d_name);
	}
	if (list)
		closedir(list);
}

/* ---- the process that looks ------------------------------------------------------------------ */

static void look(void *data, int socket)
{
	struct watch *watch = data;
	struct pollfd end = { .fd = watch->pidfd, .events = POLLIN };

	worker_close_all_but(socket, watch->pidfd);
	watch->news = socket;
	/* an end that waits for a probe to be taken away is none yet */
	while (poll(&end, 1, watch->looks ? AGAIN_MS : LOOK_MS) <= 0) {
		watch->looks = stands_still(watch) ? watch->looks + 1 : 0;
		if (watch->looks == 1)
			find_waiters(watch);
		else if (watch->looks)
			keep_waiters(watch);
		if (watch->looks == LOOKS_USERS)
			keep_locked(watch);
		if (watch->looks >= LOOKS_USERS && watch->n_waiters)
			end_connections(watch);
	}
	_exit(0);
}

int frozen_watch(struct err *err)
{
	struct watch watch = { .pid = getpid() };
	int rc;

	if (owner == watch.pid)
		return 0;
	watch.pidfd = (int)syscall(SYS_pidfd_open, watch.pid, 0);
	if (watch.pidfd < 0)
		return 0; /* before Linux 5.3 there is none */
	rc = worker_fork(true, look, &watch, &socket_of_news);
	close(watch.pidfd);
	if (rc)
		return err_set(err, rc,
		               "cannot make the process that looks for probes that wait: %s",
		               strerror(-rc));
	owner = watch.pid;
	return 0;
}

bool frozen_news(char *text, size_t size)
{
	struct pollfd news = { .fd = socket_of_news, .events = POLLIN };
	ssize_t n;

	if (owner != getpid() || socket_of_news < 0 || poll(&news, 1, 0) <= 0)
		return false;
	n = worker_receive(socket_of_news, text, size - 1, NULL);
	if (n <= 0) { /* somebody has killed it */
		close(socket_of_news);
		socket_of_news = -1;
		return false;
	}
	text[n] = '\0';
	return true;
}
