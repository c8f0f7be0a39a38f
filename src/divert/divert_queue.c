// SPDX-License-Identifier: MIT
#include "divert/divert_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/process.h"
#include "base/worker.h"
#include "base/xalloc.h"

/* 0; -EAGAIN: there is no room; -ECHILD: nobody is there. */
static int send_now(int socket, const struct divert_order *order, int fd)
{
	int rc = worker_send_now(socket, order, sizeof(*order), fd);

	return rc && rc != -EAGAIN ? -ECHILD : rc;
}

/* ---- what waits ------------------------------------------------------------------------------ */

/* NULL: orders of this kind are never refused. */
static struct quota *quota_of(struct divert_queue *queue, enum divert_kind kind)
{
	switch (kind) {
	case DIVERT_PUT:
		return &queue->puts;
	case DIVERT_TAKE_BACK:
		return NULL;
	default:
		return &queue->others;
	}
}

/* Takes *link out. */
static void drop(struct divert_queue *queue, struct queued_order **link)
{
	struct queued_order *one = *link;
	struct quota *quota = quota_of(queue, one->order.kind);

	*link = one->next;
	if (queue->last == &one->next)
		queue->last = link;
	if (quota)
		quota_give(quota, one->order.owner, (uint32_t)one->order.pid, 1);
	if (one->fd >= 0)
		close(one->fd);
	free(one);
}

static int append(struct divert_queue *queue, const struct divert_order *order, int fd)
{
	struct quota *quota = quota_of(queue, order->kind);
	struct queued_order *one;

	if (!queue->last)
		*queue = (struct divert_queue){ .last = &queue->first,
			                        .puts = { .process = { QUEUE_PUTS_OF_ONE },
			                                  .user = { QUEUE_PUTS_OF_USER },
			                                  .all = { QUEUE_PUTS } },
			                        .others = { .process = { QUEUE_OTHERS_OF_ONE },
			                                    .user = { QUEUE_OTHERS_OF_USER },
			                                    .all = { QUEUE_OTHERS } } };
	if (quota && quota_refuses(quota, order->owner, (uint32_t)order->pid, 1))
		return -EAGAIN;
	if (fd >= 0) {
		fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		if (fd < 0)
			return -EAGAIN;
	}
	if (quota)
		quota_add(quota, order->owner, (uint32_t)order->pid, 1);
	one = xcalloc(1, sizeof(*one));
	one->order = *order;
	one->fd = fd;
	*queue->last = one;
	queue->last = &one->next;
	return 0;
}

int queue_send(struct divert_queue *queue, int socket)
{
	while (queue->first) {
		int rc = send_now(socket, &queue->first->order, queue->first->fd);

		if (rc)
			return rc == -EAGAIN ? 0 : rc;
		drop(queue, &queue->first);
	}
	return 0;
}

int queue_order(struct divert_queue *queue, int socket, const struct divert_order *order, int fd)
{
	int rc = queue_send(queue, socket);

	if (!rc && !queue->first) {
		rc = send_now(socket, order, fd);
		if (rc != -EAGAIN)
			return rc;
		rc = 0;
	}
	return rc ? rc : append(queue, order, fd);
}

void queue_forget(struct divert_queue *queue, pid_t pid)
{
	struct queued_order **link = &queue->first;

	while (*link) {
		const struct divert_order *order = &(*link)->order;
		bool its = order->kind == DIVERT_FORKED ? order->child == pid : order->pid == pid;

		if (its)
			drop(queue, link);
		else
			link = &(*link)->next;
	}
}

void queue_keep_children(struct divert_queue *queue)
{
	struct queued_order **link = &queue->first;

	while (*link) {
		if ((*link)->order.kind != DIVERT_FORKED)
			drop(queue, link);
		else
			link = &(*link)->next;
	}
}

void queue_free(struct divert_queue *queue)
{
	while (queue->first)
		drop(queue, &queue->first);
}

struct divert_child {
	int pid;
	uint64_t start_time, owner;
	size_t places;
	UT_hash_handle hh;
};

struct divert_shares divert_shares_init(void)
{
	static const char of_all[] = "1,024 modules with 524,288 functions are diverted at most",
			  of_user[] = "of one user's processes 256 modules with 65,536 functions "
				      "are diverted at most";

	return (struct divert_shares){
		.places = { .user = { SHARE_USER_PLACES, of_user },
		            .all = { SHARE_PLACES, of_all } },
		.entries = { .user = { SHARE_USER_ENTRIES, of_user },
		             .all = { SHARE_ENTRIES, of_all } },
		.of_children = { .user = { .most = SHARE_USER_CHILDREN },
		                 .all = { .most = SHARE_CHILDREN } },
	};
}

/* ---- modules --------------------------------------------------------------------------------- */

const char *shares_put(struct divert_shares *shares, uint64_t owner, uint32_t entries)
{
	const char *why = quota_take(&shares->places, owner, 0, 1);

	if (why)
		return why;
	why = quota_take(&shares->entries, owner, 0, entries);
	if (why)
		quota_give(&shares->places, owner, 0, 1);
	return why;
}

void shares_put_free(struct divert_shares *shares, uint64_t owner, uint32_t entries)
{
	quota_give(&shares->places, owner, 0, 1);
	quota_give(&shares->entries, owner, 0, entries);
}

/* ---- children -------------------------------------------------------------------------------- */

bool shares_child(struct divert_shares *shares, uint64_t owner, pid_t pid, size_t places)
{
	struct divert_child *child = MAP_FIND(shares->children, &pid);

	if (child || quota_take(&shares->of_children, owner, 0, places))
		return false;
	child = MAP_ADD(shares->children, pid, &pid);
	child->start_time = process_start_time(pid);
	child->owner = owner;
	child->places = places;
	return true;
}

size_t shares_child_has(const struct divert_shares *shares, pid_t pid, uint64_t *owner)
{
	const struct divert_child *child = MAP_FIND(shares->children, &pid);

	if (!child)
		return 0;
	*owner = child->owner;
	return child->places;
}

static void free_child(struct divert_shares *shares, struct divert_child *child)
{
	quota_give(&shares->of_children, child->owner, 0, child->places);
	MAP_DROP(shares->children, child);
}

bool shares_child_free(struct divert_shares *shares, pid_t pid)
{
	struct divert_child *child = MAP_FIND(shares->children, &pid);

	if (child)
		free_child(shares, child);
	return child != NULL;
}

/* That one has ended is told by the kernel, but that record can be lost. */
size_t shares_sweep(struct divert_shares *shares, uint64_t now_ns)
{
	struct divert_child *child, *next;
	size_t gone = 0;

	if (now_ns - shares->swept_ns < SHARE_SWEEP_NS)
		return 0;
	shares->swept_ns = now_ns;
	HASH_ITER (hh, shares->children, child, next) {
		if (process_start_time(child->pid) == child->start_time && child->start_time)
			continue;
		free_child(shares, child);
		gone++;
	}
	return gone;
}

void divert_shares_free(struct divert_shares *shares)
{
	struct divert_child *child, *next;

	HASH_ITER (hh, shares->children, child, next)
		free_child(shares, child);
	quota_free(&shares->places);
	quota_free(&shares->entries);
}
