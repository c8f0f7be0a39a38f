/* SPDX-License-Identifier: MIT */
/*
 * Orders to cuscope-divert. A target can make it wait for seconds: its memory may be served by
 * somebody who does not answer. Nobody here waits for it meanwhile: what its socket does not take
 * stays in a queue, in order, and is sent when there is room.
 *
 * The queue is bounded. Orders to divert are refused when there are too many, since their functions
 * keep their probes then. Those to put back are never refused: a process has one at a time.
 */
#ifndef CUSCOPE_DIVERT_DIVERT_QUEUE_H
#define CUSCOPE_DIVERT_DIVERT_QUEUE_H

#include "base/quota.h"
#include "divert/divert_inside.h"

#define QUEUE_PUTS_OF_ONE   4   /* orders to divert that wait, of a process */
#define QUEUE_PUTS          64  /* of all: each has a file of up to 4 MiB */
#define QUEUE_OTHERS_OF_ONE 128 /* of children, and of processes that are gone */
#define QUEUE_OTHERS        1024

struct queued_order {
	struct divert_order order;
	int fd; /* -1: none */
	struct queued_order *next;
};

struct divert_queue {
	struct queued_order *first, **last; /* last: NULL while it is new */
	struct quota puts, others;
};

/*
 * Sends, or keeps for later; the descriptor stays the caller's. -EAGAIN: too many wait. -ECHILD:
 * the other side is gone.
 */
int queue_order(struct divert_queue *queue, int socket, const struct divert_order *order, int fd);

/* What waits, as far as there is room. 0, or -ECHILD. */
int queue_send(struct divert_queue *queue, int socket);

/* The process is gone: what waits to be done in it is not sent. */
void queue_forget(struct divert_queue *queue, pid_t pid);

/* At the end only children are of interest: all else is put back anyway. */
void queue_keep_children(struct divert_queue *queue);

void queue_free(struct divert_queue *queue);

#endif
