/* SPDX-License-Identifier: MIT */
/*
 * Streams: queues of tasks, run in order by a thread of the stream that is started with its first
 * task. Each task takes its simulated time; times follow one another as on a device, however late
 * the thread is woken.
 *
 * Every task gets a ticket; `completed` counts those that ended. The legacy default stream waits
 * for all blocking streams of its context and they wait for it, through marks. While a stream
 * captures, tasks become nodes of a graph instead.
 */
#ifndef SIMCUDA_DRIVER_STREAM_H
#define SIMCUDA_DRIVER_STREAM_H

#include "context.h"
#include "task.h"

enum stream_role { STREAM_PLAIN, STREAM_LEGACY, STREAM_THREAD };

struct item;
struct capture;

struct node_list {
	CUgraphNode *node;
	size_t n;
};

bool node_list_copy(struct node_list *to, const CUgraphNode *node, size_t n);
bool node_list_add(struct node_list *list, CUgraphNode node); /* unless it is there */
void node_list_clear(struct node_list *list);

struct CUstream_st {
	struct handle handle; /* the last reference frees it: see stream_put */
	CUcontext ctx;
	enum stream_role role;
	unsigned int flags;
	int priority;
	unsigned long long id;
	uint32_t number; /* in its context, as CUPTI counts: the default stream is 7 */
	uint64_t thread; /* STREAM_THREAD: whose it is */
	struct item *head, **tail;
	uint64_t submitted, completed;
	uint64_t free_ns; /* when the last task ended, in simulated time */
	bool busy, closing, has_thread;
	unsigned int waiters;
	pthread_cond_t work, done;
	struct capture *capture;
	struct node_list last; /* while capturing: what the next node comes after */
	CUstream next;         /* in ctx->streams */
};

CUstream stream_new(CUcontext ctx, enum stream_role role, unsigned int flags, int priority);

/* The stream that a program's handle means, null and the special handles included. */
CUresult stream_find(CUstream handle, enum null_stream null, CUstream *stream);

enum submit {
	SUBMIT_ASYNC,
	SUBMIT_STAGED, /* returns when it has run, except in a capture: copies of pageable memory */
	SUBMIT_SYNC,   /* returns when it has run; not allowed in a capture */
};

/* Hands `task` to the stream; takes over the references in it, even when it fails. */
CUresult stream_submit(CUstream stream, const struct task *task, enum submit how);

/* The same by a program's handle. */
CUresult stream_submit_to(CUstream handle, enum null_stream null, const struct task *task,
                          enum submit how);

/* Waits for all work of a context; streams_drain does it without a word on errors. */
CUresult streams_wait_all(CUcontext ctx);
void streams_drain(CUcontext ctx);

/* The rest is called with sim_lock held. */
CUstream stream_get(CUstream stream); /* one more reference */
void stream_put(CUstream stream);
bool mark_reached(const struct mark *mark);
void mark_wait(const struct mark *mark);
CUresult stream_enqueue(CUstream stream, const struct task *task, uint64_t *ticket);

/* event.c: a stream came to a TASK_EVENT. */
void event_stamp(const struct task *task, uint64_t ns);
void event_get(CUevent event);
void event_put(CUevent event);

#endif
