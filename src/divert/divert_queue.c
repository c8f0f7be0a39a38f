// SPDX-License-Identifier: MIT
#include "divert/divert_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
		quota_give(quota, QUOTA_ROOT, (uint32_t)one->order.pid, 1);
	if (one->fd >= 0)
		close(one->fd);
	free(one);
}

static int append(struct divert_queue *queue, const struct divert_order *order, int fd)
{
	struct quota *quota = quota_of(queue, order->kind);
	struct queued_order *one;

	if (!queue->last)
		*queue = (struct divert_queue){
			.last = &queue->first,
			.puts = { .process = { QUEUE_PUTS_OF_ONE }, .all = { QUEUE_PUTS } },
			.others = { .process = { QUEUE_OTHERS_OF_ONE }, .all = { QUEUE_OTHERS } }
		};
	if (quota && quota_refuses(quota, QUOTA_ROOT, (uint32_t)order->pid, 1))
		return -EAGAIN;
	if (fd >= 0) {
		fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		if (fd < 0)
			return -EAGAIN;
	}
	if (quota)
		quota_add(quota, QUOTA_ROOT, (uint32_t)order->pid, 1);
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
