// SPDX-License-Identifier: MIT
#include "divert/divert_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/xalloc.h"

/* 0; -EAGAIN: there is no room; -ECHILD: nobody is there. */
static int send_now(int socket, const struct divert_order *order, int fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec data = { (void *)order, sizeof(*order) };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1 };
	ssize_t n;

	if (fd >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		control.head.cmsg_len = CMSG_LEN(sizeof(int));
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(int));
	}
	do
		n = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)sizeof(*order))
		return 0;
	return n < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM ||
	                 errno == ETOOMANYREFS)
	               ? -EAGAIN
	               : -ECHILD;
}

/* ---- what waits ------------------------------------------------------------------------------ */

static size_t *counter_of(struct divert_queue *queue, enum divert_kind kind)
{
	static size_t any;

	switch (kind) {
	case DIVERT_PUT:
		return &queue->puts;
	case DIVERT_TAKE_BACK:
		return &any;
	default:
		return &queue->others;
	}
}

/* Takes *link out. */
static void drop(struct divert_queue *queue, struct queued_order **link)
{
	struct queued_order *one = *link;

	*link = one->next;
	if (queue->last == &one->next)
		queue->last = link;
	--*counter_of(queue, one->order.kind);
	if (one->fd >= 0)
		close(one->fd);
	free(one);
}

static size_t count_of(const struct divert_queue *queue, pid_t pid, bool puts)
{
	size_t count = 0;

	for (const struct queued_order *one = queue->first; one; one = one->next)
		count += one->order.pid == pid && one->order.kind != DIVERT_TAKE_BACK &&
		         (one->order.kind == DIVERT_PUT) == puts;
	return count;
}

static bool has_room(const struct divert_queue *queue, const struct divert_order *order)
{
	switch (order->kind) {
	case DIVERT_TAKE_BACK:
		return true;
	case DIVERT_PUT:
		return queue->puts < QUEUE_PUTS &&
		       count_of(queue, order->pid, true) < QUEUE_PUTS_OF_ONE;
	default:
		return queue->others < QUEUE_OTHERS &&
		       count_of(queue, order->pid, false) < QUEUE_OTHERS_OF_ONE;
	}
}

static int append(struct divert_queue *queue, const struct divert_order *order, int fd)
{
	struct queued_order *one;

	if (!has_room(queue, order))
		return -EAGAIN;
	if (fd >= 0) {
		fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		if (fd < 0)
			return -EAGAIN;
	}
	one = xcalloc(1, sizeof(*one));
	one->order = *order;
	one->fd = fd;
	if (!queue->last)
		queue->last = &queue->first;
	*queue->last = one;
	queue->last = &one->next;
	++*counter_of(queue, order->kind);
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
