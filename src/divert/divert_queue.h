/* SPDX-License-Identifier: MIT */
/*
 * Orders to cuscope-divert. A target can make it wait for seconds: its memory may be served by
 * somebody who does not answer. Nobody here waits for it meanwhile: what its socket does not take
 * stays in a queue, in order, and is sent when there is room.
 *
 * The queue is bounded. Orders to divert are refused when there are too many, since their functions
 * keep their probes then. Those to put back are never refused: a process has one at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/quota.h"
#include "divert/divert_inside.h"

#define QUEUE_PUTS_OF_ONE    4   /* orders to divert that wait, of a process */
#define QUEUE_PUTS_OF_USER   24  /* of a user but root */
#define QUEUE_PUTS           64  /* of all: each has a file of up to 4 MiB */
#define QUEUE_OTHERS_OF_ONE  128 /* of children, and of processes that are gone */
#define QUEUE_OTHERS_OF_USER 384
#define QUEUE_OTHERS         1024

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
 * Sends, or keeps for later, as its owner's; the descriptor stays the caller's. -EAGAIN: too many
 * wait. -ECHILD: the other side is gone.
 */
int queue_order(struct divert_queue *queue, int socket, const struct divert_order *order, int fd);

/* What waits, as far as there is room. 0, or -ECHILD. */
int queue_send(struct divert_queue *queue, int socket);

/* The process is gone: what waits to be done in it is not sent. */
void queue_forget(struct divert_queue *queue, pid_t pid);

/* At the end only children are of interest: all else is put back anyway. */
void queue_keep_children(struct divert_queue *queue);

void queue_free(struct divert_queue *queue);

/*
 * What of cuscope-divert's memory and time each user (probe/person.h) can have: modules whose
 * functions are diverted, and children of such processes. A child of fork has the jumps of its
 * parent, and is put back as well; a user who forks without end takes that from nobody else.
 *
 * A place is one module of one process.
 */

#define SHARE_PLACES        1024      /* of all, without children's */
#define SHARE_USER_PLACES   256       /* of a user but root */
#define SHARE_ENTRIES       (1 << 19) /* functions, some 1 KiB each */
#define SHARE_USER_ENTRIES  (1 << 16)
#define SHARE_CHILDREN      16384 /* their places */
#define SHARE_USER_CHILDREN 4096
#define SHARE_SWEEP_NS      100000000u /* from one search for children that are gone to the next */

struct divert_child;

struct divert_shares {
	struct divert_child *children;
	struct quota places, entries;
	struct quota of_children; /* their places; refused: of children there was no room for */
	uint64_t swept_ns;
};

struct divert_shares divert_shares_init(void);

/* One more module with so many functions: NULL, or why not (static). */
const char *shares_put(struct divert_shares *shares, uint64_t owner, uint32_t entries);
void shares_put_free(struct divert_shares *shares, uint64_t owner, uint32_t entries);

/*
 * A child with as many modules as its parent has; its owner is the parent's. False: there is no
 * room, or it is there already.
 */
bool shares_child(struct divert_shares *shares, uint64_t owner, pid_t pid, size_t places);

/* How many modules a child has that is not gone, and whose it is. 0: it is none. */
size_t shares_child_has(const struct divert_shares *shares, pid_t pid, uint64_t *owner);

/* False: it was none. */
bool shares_child_free(struct divert_shares *shares, pid_t pid);

/* Forgets children that have ended, unless that was done a moment ago. How many. */
size_t shares_sweep(struct divert_shares *shares, uint64_t now_ns);

void divert_shares_free(struct divert_shares *shares);
