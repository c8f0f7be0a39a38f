// SPDX-License-Identifier: MIT
/*
 * cuscope-divert: takes orders one by one, and answers each. When its socket ends, it puts back all
 * that it has diverted, and ends.
 */
#include "divert/divert_inside.h"

#ifdef __x86_64__

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/process.h"
#include "base/worker.h"
#include "base/xalloc.h"
#include "divert/divert_queue.h"

#define MS       1000000ull
#define TRIES    6    /* before -EAGAIN is answered */
#define LIMIT_MS 5000 /* for one try */
#define PAUSE_NS (2 * MS)

/* At the end, where all others wait for one. */
#define FIRST_LIMIT_MS 100 /* for the first try with each process */
#define LATER_LIMIT_MS 1000
#define ROUND_PAUSE_NS (20 * MS)
#define ROUNDS_NS      (10000 * MS) /* for all but the first */

#define TARGETS_MAX (SHARE_PLACES + SHARE_CHILDREN)

struct divert_work {
	int socket;
	struct divert_shared *shared;
	struct divert_target *targets[TARGETS_MAX];
	size_t count;
	struct divert_shares shares; /* of lists of entries */
	bool ending;                 /* cuscope is gone, but for orders that it has sent */
};

static void free_list(struct divert_work *work, struct divert_entries *list)
{
	if (--list->uses)
		return;
	shares_put_free(&work->shares, list->owner, list->count);
	free(list);
}

static void free_target(struct divert_work *work, struct divert_target *target)
{
	if (target->list)
		free_list(work, target->list);
	free(target);
}

static void forget(struct divert_work *work, size_t i)
{
	free_target(work, work->targets[i]);
	work->targets[i] = work->targets[--work->count];
}

static void pause_ns(uint64_t ns)
{
	const struct timespec pause = { .tv_nsec = (long)ns };

	nanosleep(&pause, NULL);
}

/* The place of an order that is begun. */
static struct divert_cut *begin(struct divert_work *work, const struct divert_order *order)
{
	struct divert_cut *cut;

	if (order->place >= DIVERT_CUTS)
		return NULL;
	cut = &work->shared->cuts[order->place];
	atomic_store(&cut->state, CUT_NOT_MADE);
	atomic_store(&cut->number, order->number);
	return cut;
}

static void try_some(const struct divert_job *job, int tries, struct divert_reply *reply)
{
	const struct divert_reply empty = *reply;

	for (int i = 0; i < tries; i++) {
		if (i)
			pause_ns(PAUSE_NS);
		*reply = empty;
		divert_try(job, reply);
		if (reply->rc != -EAGAIN)
			return;
	}
}

/* ---- putting back ---------------------------------------------------------------------------- */

static void forget_all(struct divert_work *work, pid_t pid)
{
	for (size_t i = work->count; i-- > 0;)
		if (work->targets[i]->pid == pid)
			forget(work, i);
}

/* All modules of a process, in one stop. */
static void take_back(struct divert_work *work, pid_t pid, int tries, uint32_t limit_ms,
                      struct divert_cut *cut, struct divert_reply *reply)
{
	static struct divert_target *targets[DIVERT_TARGETS_MAX];
	struct divert_job job = { DIVERT_TAKE_BACK, targets, 0, limit_ms, cut, NULL };

	for (size_t i = 0; i < work->count && job.count < DIVERT_TARGETS_MAX; i++)
		if (work->targets[i]->pid == pid)
			targets[job.count++] = work->targets[i];
	if (!job.count)
		return;
	try_some(&job, tries, reply);
	if (!reply->rc || reply->rc == -ESRCH || reply->rc == -EPERM)
		forget_all(work, pid);
}

/* Children that have ended. */
static void sweep(struct divert_work *work)
{
	for (size_t i = work->count; i-- > 0;) {
		const struct divert_target *target = work->targets[i];

		if (target->child &&
		    (!target->start_time || process_start_time(target->pid) != target->start_time))
			forget(work, i);
	}
}

/* Each process once, however many modules it has. */
static size_t list_pids(const struct divert_work *work, bool children, pid_t *pids, size_t first)
{
	size_t count = first;

	for (size_t i = 0; i < work->count; i++) {
		size_t k = first;

		if (work->targets[i]->child != children)
			continue;
		while (k < count && pids[k] != work->targets[i]->pid)
			k++;
		if (k == count)
			pids[count++] = work->targets[i]->pid;
	}
	return count;
}

/*
 * The socket has ended, and so has cuscope. One try for each process in a round: one that will not
 * stop makes others wait for that long. Those whose memory does not answer are given up in the
 * second round.
 */
static void take_all_back(struct divert_work *work)
{
	static pid_t pids[TARGETS_MAX];
	uint64_t until_ns = UINT64_MAX;

	sweep(work);
	for (int round = 0; work->count && stop_now_ns() < until_ns; round++) {
		size_t count = list_pids(work, true, pids, list_pids(work, false, pids, 0));

		for (size_t i = 0; i < count && stop_now_ns() < until_ns; i++) {
			struct divert_reply reply = { 0 };

			take_back(work, pids[i], 1, round ? LATER_LIMIT_MS : FIRST_LIMIT_MS, NULL,
			          &reply);
			if (reply.rc == -ETIMEDOUT && round)
				forget_all(work, pids[i]);
		}
		if (!round)
			until_ns = stop_now_ns() + ROUNDS_NS;
		if (work->count)
			pause_ns(ROUND_PAUSE_NS);
	}
}

/* ---- orders ---------------------------------------------------------------------------------- */

static void answer(struct divert_work *work, const struct divert_reply *reply)
{
	while (send(work->socket, reply, sizeof(*reply), MSG_NOSIGNAL) < 0 && errno == EINTR)
		;
}

/* All of it, from a file that cuscope made. */
static bool read_all(int fd, void *to, size_t bytes)
{
	size_t at = 0;

	while (at < bytes) {
		ssize_t n = pread(fd, (uint8_t *)to + at, bytes - at, (off_t)at);

		if (n <= 0)
			return false;
		at += (size_t)n;
	}
	return true;
}

/* Where its user has the share that there is: NULL, as where it cannot be read. */
static struct divert_entries *
read_entries(struct divert_work *work, const struct divert_order *order, int fd, struct err *err)
{
	size_t bytes = order->count * sizeof(struct divert_entry);
	struct divert_entries *list;
	const char *why;

	if (fd < 0 || order->count > DIVERT_FUNCTIONS_MAX) {
		err_set(err, EIO, "the order to divert was not read");
		return NULL;
	}
	why = shares_put(&work->shares, order->owner, order->count);
	if (why) {
		err_set(err, ENOSPC, "%s", why);
		return NULL;
	}
	list = xmalloc(sizeof(*list) + bytes);
	list->uses = 1;
	list->count = order->count;
	list->owner = order->owner;
	if (read_all(fd, list->all, bytes))
		return list;
	free_list(work, list);
	err_set(err, EIO, "the order to divert was not read");
	return NULL;
}

static void on_put(struct divert_work *work, const struct divert_order *order, int fd)
{
	struct divert_reply reply = { .kind = DIVERT_PUT,
		                      .pid = order->pid,
		                      .number = order->number };
	struct divert_target *target = xcalloc(1, sizeof(*target));
	struct divert_job job = { DIVERT_PUT,
		                  &target,
		                  1,
		                  LIMIT_MS,
		                  begin(work, order),
		                  work->shared->refusals[order->place] };
	struct err err = { 0 };

	*target = (struct divert_target){ .pid = order->pid,
		                          .start_time = order->start_time,
		                          .person = order->person,
		                          .dev = order->dev,
		                          .inode = order->inode,
		                          .number = order->number,
		                          .area = order->area,
		                          .area_bytes = order->area_bytes,
		                          .count = order->count,
		                          .memory = -1 };
	target->list = read_entries(work, order, fd, &err);
	target->entries = target->list ? target->list->all : NULL;
	reply.rc = err.code;
	if (!reply.rc && work->count == TARGETS_MAX)
		reply.rc = err_set(&err, ENOSPC, "more than %d modules are diverted", TARGETS_MAX);
	snprintf(reply.why, sizeof(reply.why), "%s", err.text);
	if (!reply.rc)
		try_some(&job, TRIES, &reply);
	/* what may have been written is to be put back at the end */
	if (!reply.rc || reply.rc == -ETIMEDOUT)
		work->targets[work->count++] = target;
	answer(work, &reply);
	if (reply.rc && reply.rc != -ETIMEDOUT)
		free_target(work, target);
}

static void on_take_back(struct divert_work *work, const struct divert_order *order)
{
	struct divert_reply reply = { .kind = DIVERT_TAKE_BACK,
		                      .pid = order->pid,
		                      .number = order->number };

	take_back(work, order->pid, TRIES, LIMIT_MS, begin(work, order), &reply);
	answer(work, &reply);
}

/* The child has what its parent had when it was forked. */
static void on_forked(struct divert_work *work, const struct divert_order *order)
{
	size_t before = work->count;

	for (size_t i = 0; i < before && work->count < TARGETS_MAX; i++) {
		const struct divert_target *parent = work->targets[i];
		struct divert_target *child;

		if (parent->pid != order->pid)
			continue;
		child = xmalloc(sizeof(*child));
		*child = *parent;
		child->pid = order->child;
		child->start_time = order->start_time;
		child->child = true;
		child->list->uses++;
		work->targets[work->count++] = child;
	}
}

/* At the end nobody waits for answers: nothing more is diverted, and all is put back anyway. */
static void obey(struct divert_work *work, const struct divert_order *order, int fd)
{
	if (work->ending && (order->kind == DIVERT_PUT || order->kind == DIVERT_TAKE_BACK))
		return;
	switch (order->kind) {
	case DIVERT_PUT:
		on_put(work, order, fd);
		break;
	case DIVERT_TAKE_BACK:
		on_take_back(work, order);
		break;
	case DIVERT_GONE:
		if (order->pid)
			forget_all(work, order->pid);
		else
			sweep(work);
		break;
	case DIVERT_FORKED:
		on_forked(work, order);
	}
}

/* False: cuscope is gone. */
static bool next_order(struct divert_work *work)
{
	struct divert_order order;
	int fd;
	ssize_t n = worker_receive(work->socket, &order, sizeof(order), &fd);

	if (n == sizeof(order))
		obey(work, &order, fd);
	if (fd >= 0)
		close(fd);
	return n == sizeof(order);
}

void divert_process(int socket, struct divert_shared *shared)
{
	static struct divert_work work;
	struct pollfd orders = { .fd = socket, .events = POLLIN | POLLRDHUP };
	sigset_t child;

	work.socket = socket;
	work.shared = shared;
	work.shares = divert_shares_init();
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_SETMASK, &child, NULL);
	setpriority(PRIO_PROCESS, 0, -20); /* others wait while it works */
	for (;;) {
		int ready = poll(&orders, 1, -1);

		work.ending |= ready > 0 && orders.revents & (POLLRDHUP | POLLHUP);
		if (ready > 0 && !next_order(&work))
			break;
		while (waitpid(-1, NULL, WNOHANG) > 0) /* of those given up */
			;
	}
	take_all_back(&work);
}

#else

void divert_process(int socket, struct divert_shared *shared)
{
}

#endif
