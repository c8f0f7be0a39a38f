// SPDX-License-Identifier: MIT
#include "probe/helper.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "base/xalloc.h"
#include "probe/helper_inside.h"
#include "probe/person.h"

/* Memory answers in microseconds, or in some milliseconds from a disk; a server far away
 * is slow. */
#define MEMORY_MS 500
#define FILE_MS   2000
#define LOOK_NS   50000000ull    /* until it is looked at how busy the helper is */
#define AGAIN_NS  20000000ull    /* and between looks at one that is late */
#define BUSY_NS   10000000000ull /* for a helper that the machine does not let run */
#define FREE_NS   200000         /* what is shorter is the price of asking */
#define PAGE      4096u          /* a step that never leaves a page, whatever the page size */

static pthread_mutex_t orders = PTHREAD_MUTEX_INITIALIZER; /* those that follow each other */

static struct {
	pthread_mutex_t lock; /* recursive: who a process is may have to be asked, too */
	pid_t owner;          /* process that called helper_begin; 0: none */
	int control;          /* socket of the process that makes helpers */
	int socket;           /* of the helper; -1: there is none */
	pid_t pid;            /* its */
	uint64_t person;      /* for whom the request is */
	struct helper_request request;
	struct helper_answer answer;
} helper = { .lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP, .control = -1, .socket = -1 };

static _Thread_local uint64_t helped_ns; /* that helpers ran for this thread */

void helper_lock(void)
{
	pthread_mutex_lock(&helper.lock);
}

void helper_unlock(void)
{
	pthread_mutex_unlock(&helper.lock);
}

/* A process that was forked since has no helper: the socket is its parent's. What a thread of the
 * parent's may have been changing is not looked at there. */
bool helper_is_there(void)
{
	return helper.owner && helper.owner == getpid();
}

/* ---- beginning and end --------------------------------------------------------------------- */

/* For process_look_by. Of this process and of helpers themselves nothing is held up. */
static ssize_t look(pid_t pid, enum process_look how, const char *name, void *to, size_t bytes)
{
	struct helper_request *request;
	int64_t n;

	if (!helper_is_there() || pid == getpid() || pid == helper.pid || bytes > HELPER_BYTES)
		return process_look_here(pid, how, name, to, bytes);
	helper_lock();
	request = helper_request(HELPER_LOOK, pid, helper_person(pid));
	request->address = how;
	request->bytes = bytes;
	snprintf(request->path, sizeof(request->path), "%s", name);
	n = helper_ask_for(-1, to);
	helper_unlock();
	return n;
}

int helper_open_namespace(pid_t pid, const char *kind, uint64_t person)
{
	struct helper_request *request;
	int64_t rc;
	int fd;

	helper_lock();
	request = helper_request(HELPER_NAMESPACE, pid, person);
	snprintf(request->path, sizeof(request->path), "ns/%s", kind);
	rc = helper_ask(-1, &fd, NULL);
	helper_unlock();
	return fd >= 0 ? fd : rc ? (int)rc : -ESRCH;
}

/* In a process that was forked: the thread that may have had a lock is not there. */
static void forget_threads(void)
{
	helper.lock = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
	orders = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

int helper_begin(struct err *err)
{
	static bool forks;
	int rc;

	if (helper_is_there())
		return 0;
	if (!forks && (rc = pthread_atfork(NULL, NULL, forget_threads)))
		return err_set(err, -rc, "preparing to fork: %s", strerror(rc));
	forks = true;
	rc = worker_fork(true, helper_process_main, NULL, &helper.control);
	if (rc)
		return err_set(err, rc, "cannot make the process that reads targets' memory: %s",
		               strerror(-rc));
	helper.owner = getpid();
	process_look_by(look);
	return 0;
}

static void drop_helper(void)
{
	if (helper.socket >= 0)
		close(helper.socket);
	helper.socket = -1;
	helper.pid = 0;
}

void helper_end(void)
{
	if (!helper_is_there())
		return;
	names_end();
	helper_lock();
	drop_helper();
	close(helper.control); /* which ends them all */
	helper.control = -1;
	helper.owner = 0;
	files_end();
	waits_end();
	helper_unlock();
}

/* With the lock. */
static int make(enum helper_does what, int *socket, pid_t *pid)
{
	const struct helper_order order = { .does = what };
	int pair[2], none, rc;
	int32_t its = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	pthread_mutex_lock(&orders);
	rc = worker_send(helper.control, &order, sizeof(order), pair[1]);
	pthread_mutex_unlock(&orders);
	close(pair[1]);
	if (!rc && worker_receive(pair[0], &its, sizeof(its), &none) != sizeof(its))
		rc = -EIO; /* the process that makes them was killed, or cannot fork */
	if (rc) {
		close(pair[0]);
		return rc;
	}
	*socket = pair[0];
	*pid = its;
	return 0;
}

static int make_reader(void)
{
	return helper.socket >= 0 ? 0 : make(HELPER_MAKE_READER, &helper.socket, &helper.pid);
}

int helper_make(enum helper_does what, int *socket, pid_t *pid)
{
	int rc = -EPIPE;

	helper_lock();
	if (helper_is_there())
		rc = make(what, socket, pid);
	helper_unlock();
	return rc;
}

/* With the lock. */
static void end_helper(pid_t pid)
{
	const struct helper_order order = { HELPER_KILL, pid };

	worker_send(helper.control, &order, sizeof(order), -1);
}

void helper_kill(pid_t pid)
{
	helper_lock();
	if (helper_is_there())
		end_helper(pid);
	helper_unlock();
}

/* ---- asking -------------------------------------------------------------------------------- */

/* Whether the helper would go on if it had a processor: it is late, and does not wait. */
static bool is_running(pid_t pid)
{
	struct process_stat stat;

	return process_stat_read(pid, 0, &stat) && stat.state == 'R';
}

/* For how long the helper has run so far or waited for a processor; 0: the kernel does not tell. */
static uint64_t busy_ns(pid_t pid)
{
	char text[128] = "", *at = text;
	uint64_t ran;

	if (process_look_here(pid, PROCESS_TEXT, "schedstat", text, sizeof(text) - 1) <= 0)
		return 0;
	ran = strtoull(at, &at, 10);
	return ran + strtoull(at, &at, 10);
}

/*
 * The limit is for what the helper waits for, and not for a processor; most answer before it is
 * looked at. `ms` is that of the limit.
 */
static int wait_for_answer(int ms)
{
	const uint64_t begin = clock_now_ns(), most = (uint64_t)ms * 1000000;
	uint64_t until = begin + LOOK_NS, before = 0, busy, now;
	bool looked = false;
	struct pollfd answer = { .fd = helper.socket, .events = POLLIN };

	for (;;) {
		now = clock_now_ns();
		int n = poll(&answer, 1, now < until ? (int)((until - now) / 1000000) + 1 : 0);

		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		now = clock_now_ns();
		if (now < until)
			continue;
		busy = busy_ns(helper.pid);
		if (!looked)
			before = busy;
		looked = true;
		until = begin + most + (busy > before ? busy - before : 0);
		if (now >= begin + BUSY_NS || (now >= until && !is_running(helper.pid)))
			return poll(&answer, 1, 0) > 0 ? 0 : -ETIMEDOUT;
		if (until < now + AGAIN_NS)
			until = now + AGAIN_NS;
	}
}

static int exchange(int fd, int ms, int *fd_out)
{
	size_t bytes = offsetof(struct helper_request, path) + strlen(helper.request.path) + 1;
	ssize_t n;
	int rc = make_reader();

	if (!rc)
		rc = worker_send(helper.socket, &helper.request, bytes, fd);
	if (!rc)
		rc = wait_for_answer(ms);
	if (rc)
		return rc;
	n = worker_receive(helper.socket, &helper.answer, sizeof(helper.answer), fd_out);
	return n > 0 ? 0 : -EIO;
}

static const char *name_of(enum helper_op op)
{
	switch (op) {
	case HELPER_MEMORY:
	case HELPER_PRIVATE_PAGES:
	case HELPER_CODE_OF:
		return "a page of its memory";
	case HELPER_MAPS:
	case HELPER_MAPS_ON:
		return "/proc/PID/maps";
	case HELPER_COPY:
	case HELPER_SAME:
		return "a descriptor of its";
	case HELPER_LOOK:
	case HELPER_NAMESPACE:
		return "what /proc/PID tells";
	default:
		return "a file of its";
	}
}

static pid_t to_blame(void)
{
	return helper.request.of_gone ? 0 : helper.request.pid;
}

/* The helper is left alone: it ends when what it waits for does, or when it is killed. */
static void give_up(int ms)
{
	end_helper(helper.pid);
	waits_give_up(to_blame(), helper.person, name_of(helper.request.op), ms, helper.socket);
	helper.socket = -1;
	helper.pid = 0;
}

static int ask_helper(int fd, int *fd_out)
{
	bool file = helper.request.op >= HELPER_OPEN_MAPPING;
	int ms = file ? FILE_MS : MEMORY_MS, rc;

	if (waits_refuse(helper.request.pid, helper.person))
		return -ETIMEDOUT;
	rc = exchange(fd, ms, fd_out);
	if (rc && rc != -ETIMEDOUT) { /* somebody killed it: another may do better */
		drop_helper();
		rc = exchange(fd, ms, fd_out);
	}
	if (!rc)
		helped_ns += helper.answer.ran_ns;
	if (rc == -ETIMEDOUT)
		give_up(ms);
	else if (rc)
		drop_helper();
	else if (helper.answer.waited_ns >= FREE_NS)
		waits_charge(to_blame(), helper.person, helper.answer.waited_ns);
	return rc;
}

uint64_t helper_busy_ns(void)
{
	struct timespec ran;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ran);
	return (uint64_t)ran.tv_sec * 1000000000 + (uint64_t)ran.tv_nsec + helped_ns;
}

int64_t helper_ask(int fd, int *fd_out, const struct helper_answer **answer)
{
	int rc = 0, none;

	fd_out = fd_out ? fd_out : &none;
	*fd_out = -1;
	if (helper_is_there())
		rc = ask_helper(fd, fd_out);
	else
		helper_do(&helper.request, fd, false, &helper.answer, fd_out);
	if (rc) {
		helper.answer.by_map = -EIO;
		waits_unanswered();
	}
	if (answer)
		*answer = &helper.answer;
	return rc ? rc : helper.answer.result;
}

int64_t helper_ask_for(int fd, void *to)
{
	int64_t n = helper_ask(fd, NULL, NULL);

	if (n > 0)
		memcpy(to, helper.answer.data, (size_t)n);
	return n;
}

struct helper_request *helper_request(enum helper_op op, pid_t pid, uint64_t person)
{
	helper.request.op = op;
	helper.request.pid = pid;
	helper.request.address = helper.request.bytes = 0;
	helper.request.is_roots = helper.request.of_gone = false;
	helper.request.path[0] = '\0';
	helper.person = person;
	return &helper.request;
}

uint64_t helper_person(pid_t pid)
{
	return helper_is_there() ? waits_person(pid) : PERSON_UNKNOWN;
}

uint64_t helper_person_of(pid_t pid)
{
	uint64_t person;

	helper_lock();
	person = helper_person(pid);
	helper_unlock();
	return person;
}

uint64_t helper_person_of_owner(uint32_t pid)
{
	uint64_t person = helper_person_of((pid_t)pid);

	return person == PERSON_UNKNOWN ? person_of_process((pid_t)pid) : person;
}

/* Has all of `bytes` answered, or false. */
static bool ask_for_bytes(enum helper_op op, pid_t pid, uint64_t address, void *to, size_t bytes)
{
	const struct helper_answer *answer;
	struct helper_request *request;
	bool all;

	if (bytes > HELPER_BYTES)
		return false;
	helper_lock();
	request = helper_request(op, pid, helper_person(pid));
	request->address = address;
	request->bytes = bytes;
	all = helper_ask(-1, NULL, &answer) == (int64_t)bytes;
	if (all)
		memcpy(to, answer->data, bytes);
	helper_unlock();
	return all;
}

bool helper_memory(pid_t pid, uint64_t address, void *to, size_t bytes)
{
	return ask_for_bytes(HELPER_MEMORY, pid, address, to, bytes);
}

bool helper_string(pid_t pid, uint64_t address, char *to, size_t size)
{
	size_t have = 0;

	while (have < size) {
		size_t step = PAGE - (address + have) % PAGE;

		if (step > size - have)
			step = size - have;
		if (!helper_memory(pid, address + have, to + have, step))
			return false;
		if (memchr(to + have, '\0', step))
			return true;
		have += step;
	}
	return false;
}

bool helper_private_pages(pid_t pid, uint64_t address, uint8_t *pages, size_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t done = 0, part; done < n; done += part) {
		part = n - done < HELPER_BYTES ? n - done : HELPER_BYTES;
		if (!ask_for_bytes(HELPER_PRIVATE_PAGES, pid, address + done * page, pages + done,
		                   part))
			return false;
	}
	return true;
}

int helper_code_of(pid_t pid, uint64_t inode, struct mapping *mappings, size_t most)
{
	const struct helper_answer *answer;
	int64_t bytes;
	size_t n = 0;

	helper_lock();
	helper_request(HELPER_CODE_OF, pid, helper_person(pid))->address = inode;
	bytes = helper_ask(-1, NULL, &answer);
	if (bytes > 0)
		n = (size_t)bytes / sizeof(*mappings);
	n = n < most ? n : most;
	memcpy(mappings, answer->data, n * sizeof(*mappings));
	for (size_t i = 0; i < n; i++)
		mappings[i].path = "";
	helper_unlock();
	return bytes < 0 ? (int)bytes : (int)n;
}

/* ---- descriptors --------------------------------------------------------------------------- */

static int ask_of_descriptor(enum helper_op op, pid_t pid, int number, dev_t device, int fd,
                             int *fd_out)
{
	struct helper_request *request;
	int result;

	helper_lock();
	request = helper_request(op, pid, helper_person(pid));
	request->address = (uint64_t)number;
	request->bytes = device;
	result = (int)helper_ask(fd, fd_out, NULL);
	helper_unlock();
	return result;
}

int helper_copy_device(pid_t pid, int number, dev_t device)
{
	int fd = -1, rc = ask_of_descriptor(HELPER_COPY, pid, number, device, -1, &fd);

	if (!rc && fd < 0)
		rc = -EMFILE;
	return rc ? rc : fd;
}

int helper_same_file(pid_t tid, int number, int fd)
{
	return ask_of_descriptor(HELPER_SAME, tid, number, 0, fd, NULL);
}

/*
 * Ours is closed while theirs is there: it is never the last. Where the process that makes helpers
 * was killed it stays open, since nobody is left who may wait.
 */
void helper_let_go(int fd)
{
	const struct helper_order take = { .does = HELPER_TAKE }, drop = { .does = HELPER_DROP };

	if (fd < 0)
		return;
	if (!helper_is_there()) {
		close(fd);
		return;
	}
	LOCKED(&orders);
	if (!worker_send(helper.control, &take, sizeof(take), fd)) {
		close(fd);
		worker_send(helper.control, &drop, sizeof(drop), -1);
	}
}

/* ---- maps ---------------------------------------------------------------------------------- */

/* The next piece into `text`; *fd is asked on, and closed when that was the last. */
static int64_t next_of_maps(pid_t pid, int *fd, bool first, char *text)
{
	const struct helper_answer *answer;
	int64_t n;
	int opened;

	helper_lock();
	helper_request(first ? HELPER_MAPS : HELPER_MAPS_ON, pid, helper_person(pid));
	n = helper_ask(*fd, &opened, &answer);
	if (first && n == HELPER_BYTES && opened < 0)
		n = -EMFILE; /* there is more, and no room for the descriptor of it */
	if (n > 0)
		memcpy(text, answer->data, (size_t)n);
	helper_unlock();
	if (first)
		*fd = opened;
	if (n < HELPER_BYTES && *fd >= 0) {
		close(*fd);
		*fd = -1;
	}
	return n;
}

int helper_maps(pid_t pid, int (*each)(const char *text, size_t len, void *data), void *data)
{
	AT_END(at_end_free) char *text = xmalloc(HELPER_BYTES);
	uint64_t person = helper_person_of(pid);
	bool limited = person != PERSON_ROOT && person != PERSON_UNKNOWN;
	uint64_t bytes = 0;
	int fd = -1, rc = 0;

	do {
		int64_t n = next_of_maps(pid, &fd, !bytes, text);

		rc = n < 0 ? (int)n : n ? each(text, (size_t)n, data) : 0;
		bytes += n > 0 ? (uint64_t)n : 0;
		if (!rc && fd >= 0 && bytes >= HELPER_MAPS_BYTES && limited)
			rc = -E2BIG;
	} while (!rc && fd >= 0);
	if (fd >= 0)
		close(fd);
	return rc;
}

pid_t helper_now(void)
{
	return helper.pid;
}
