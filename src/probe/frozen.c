// SPDX-License-Identifier: MIT
#include "probe/frozen.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
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
#define THREADS_MAX 64 /* that may stand still at once, and are looked at */
#define USERS_MAX   64
#define STACK_SIZE  65536

#define FUSE_CTL_SUPER_MAGIC 0x65735543

/* A thread of cuscope's that waits in the kernel, and how long it had run by then. */
struct waiting {
	pid_t tid;
	unsigned long long ran_ns;
};

/* Something that a process is asked, by a thread that may never come back. */
struct question {
	pid_t pid;
	atomic_bool answered; /* by the thread, which has left the rest alone since */
	atomic_flag left;     /* by one of two: the other one frees it */
	bool waits;           /* a thread of it, for a file */
	uid_t user;
};

/* A process that may have its mappings locked. */
struct suspect {
	struct suspect *next;
	struct question *memory;  /* not answered */
	struct question *threads; /* NULL: not asked */
};

struct watch {
	pid_t pid; /* of cuscope */
	int pidfd, news;
	struct waiting waiting[THREADS_MAX];
	size_t n_waiting;
	unsigned looks; /* in a row at which it stood still */
	struct suspect *suspects;
	bool unasked;           /* there was no thread for all questions */
	uid_t users[USERS_MAX]; /* of suspects that wait for files */
	size_t n_users;
};

static int socket_of_news = -1;
static pid_t owner;

static void question_drop(struct question *question)
{
	if (question && atomic_flag_test_and_set(&question->left))
		free(question);
}

static void question_answer(struct question *question)
{
	atomic_store(&question->answered, true);
	question_drop(question);
}

static bool is_answered(struct question *question)
{
	return question && atomic_load(&question->answered);
}

static bool user_waits(const struct watch *watch, uid_t user)
{
	for (size_t i = 0; i < watch->n_users; i++) {
		if (watch->users[i] == user)
			return true;
	}
	return false;
}

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

/* ---- whose mappings are locked --------------------------------------------------------------- */

/*
 * Either question may have no answer: the first of who has his mappings locked, both of who is in
 * an exec that is never over. So each is asked by a thread of its own, which is left behind: no
 * process can be made now. Every process is asked, since whoever stops the machine can have any
 * number of others that wait for files, or whose first thread has ended.
 */
static void *ask_memory(void *data)
{
	struct question *question = data;
	AT_END(process_list_end) DIR *threads = NULL;
	pid_t tid = question->pid;
	char byte;
	struct iovec to = { &byte, 1 }, from = { (void *)1, 1 };

	/* nothing is there; to find that out takes the lock that a probe waits for */
	while (tid && process_vm_readv(tid, &to, 1, &from, 1, 0) < 0 && errno == ESRCH) {
		if (!threads)
			threads = process_list(question->pid);
		tid = process_next(threads);
	}
	question_answer(question);
	return NULL;
}

/* For a page, or for FUSE itself: the function that a thread sleeps in, by the names of Linux 5.15
 * to 6.18. */
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

/* Also of one that lets nobody look into it, whose folder is root's. */
static uid_t user_of(pid_t pid)
{
	uid_t user = 0;
	struct stat st;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", pid);
	if (!stat(path, &st))
		user = st.st_uid;
	if (!user)
		process_status(pid, 0, "Uid: %u", &user);
	return user;
}

static void *ask_threads(void *data)
{
	struct question *question = data;
	AT_END(process_list_end) DIR *threads = process_list(question->pid);
	pid_t tid;

	while (!question->waits && (tid = process_next(threads)))
		question->waits = waits_for_file(question->pid, tid);
	question->user = user_of(question->pid);
	question_answer(question);
	return NULL;
}

static struct question *ask_aside(struct watch *watch, void *(*ask)(void *), pid_t pid)
{
	struct question *question = xcalloc(1, sizeof(*question));
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	question->pid = pid;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	r = pthread_create(&thread, &attr, ask, question);
	pthread_attr_destroy(&attr);
	if (!r)
		return question;
	watch->unasked = true;
	free(question);
	return NULL;
}

/* One that has given no answer since some time before is not asked once more. */
static bool is_suspect(const struct watch *watch, pid_t pid)
{
	for (const struct suspect *at = watch->suspects; at; at = at->next) {
		if (at->memory->pid == pid)
			return true;
	}
	return false;
}

static void ask_all(struct watch *watch)
{
	AT_END(process_list_end) DIR *processes = process_list(0);
	struct question *memory;
	struct suspect *suspect;
	pid_t pid;

	watch->unasked = false;
	while ((pid = process_next(processes))) {
		if (pid == watch->pid || is_suspect(watch, pid))
			continue;
		memory = ask_aside(watch, ask_memory, pid);
		if (!memory)
			continue;
		suspect = xcalloc(1, sizeof(*suspect));
		*suspect = (struct suspect){ .next = watch->suspects, .memory = memory };
		watch->suspects = suspect;
	}
}

/* Whose mappings have not been locked all the time is none. */
static void drop_suspects(struct watch *watch)
{
	struct suspect **at = &watch->suspects, *suspect;

	while ((suspect = *at)) {
		if (!is_answered(suspect->memory)) {
			at = &suspect->next;
			continue;
		}
		*at = suspect->next;
		question_drop(suspect->memory);
		question_drop(suspect->threads);
		free(suspect);
	}
}

/* What was answered before is of an earlier time. */
static void ask_suspects(struct watch *watch)
{
	for (struct suspect *at = watch->suspects; at; at = at->next) {
		if (is_answered(at->threads)) {
			question_drop(at->threads);
			at->threads = NULL;
		}
		if (!at->threads)
			at->threads = ask_aside(watch, ask_threads, at->memory->pid);
	}
}

static void find_users(struct watch *watch)
{
	watch->n_users = 0;
	for (const struct suspect *at = watch->suspects; at; at = at->next) {
		if (is_answered(at->threads) && at->threads->waits && watch->n_users < USERS_MAX &&
		    !user_waits(watch, at->threads->user))
			watch->users[watch->n_users++] = at->threads->user;
	}
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
		drop_suspects(watch);
		if (watch->looks == 1)
			ask_all(watch);
		if (watch->looks == LOOKS_USERS - 1)
			ask_suspects(watch);
		if (watch->looks >= LOOKS_USERS)
			find_users(watch);
		if (watch->looks >= LOOKS_USERS &&
		    (watch->n_users || (watch->looks >= LOOKS_ALL && watch->unasked)))
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
