// SPDX-License-Identifier: MIT
#include "profile/estimate.h"

#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "base/xalloc.h"

struct queue_key { /* no padding: it is hashed whole */
	const struct process *process;
	uint64_t stream;
};

/* A stream with launches that nobody has waited for, in the order of their ends. */
struct queue {
	struct queue_key key;
	struct estimate_launch *at;
	size_t n, cap;
	UT_hash_handle hh;
};

struct estimate {
	struct queue *queues;
	size_t waiting;
};

struct estimate *estimate_new(void)
{
	return xcalloc(1, sizeof(struct estimate));
}

static void drop(struct estimate *estimate, struct queue *queue)
{
	HASH_DEL(estimate->queues, queue);
	free(queue->at);
	free(queue);
}

void estimate_free(struct estimate *estimate)
{
	struct queue *queue, *next;

	if (!estimate)
		return;
	HASH_ITER (hh, estimate->queues, queue, next)
		drop(estimate, queue);
	free(estimate);
}

static struct queue *queue_of(struct estimate *estimate, const struct queue_key *key)
{
	struct queue *queue;

	HASH_FIND(hh, estimate->queues, key, sizeof(*key), queue);
	if (queue || HASH_COUNT(estimate->queues) >= ESTIMATE_STREAMS_MAX)
		return queue;
	queue = xcalloc(1, sizeof(*queue));
	queue->key = *key;
	HASH_ADD(hh, estimate->queues, key, sizeof(queue->key), queue);
	return queue;
}

bool estimate_add(struct estimate *estimate, uint64_t stream, const struct estimate_launch *launch)
{
	const struct queue_key key = { launch->process, stream };
	struct queue *queue;

	if (estimate->waiting >= ESTIMATE_WAITING_MAX)
		return false;
	queue = queue_of(estimate, &key);
	if (!queue)
		return false;
	if (queue->n == queue->cap) {
		queue->cap = queue->cap ? 2 * queue->cap : 16;
		queue->at = xrealloc(queue->at, queue->cap * sizeof(*queue->at));
	}
	queue->at[queue->n++] = *launch;
	estimate->waiting++;
	return true;
}

/* Another thread may have launched since the wait began: that is for the next one. */
static void end_queue(struct estimate *estimate, struct queue *queue,
                      const struct estimate_wait *wait, estimate_fn each, void *data)
{
	uint64_t first_ns = UINT64_MAX, last_ns = 0, ns;
	size_t n = 0, left = 0;

	for (size_t i = 0; i < queue->n; i++) {
		if (queue->at[i].begin_ns > wait->begin_ns)
			continue;
		if (queue->at[i].begin_ns < first_ns)
			first_ns = queue->at[i].begin_ns;
		if (queue->at[i].end_ns > last_ns)
			last_ns = queue->at[i].end_ns;
		n++;
	}
	if (last_ns > wait->end_ns || wait->end_ns >= wait->begin_ns + ESTIMATE_WAIT_NS)
		last_ns = wait->end_ns;
	ns = n && last_ns > first_ns ? (last_ns - first_ns) / n : 0;
	for (size_t i = 0; i < queue->n; i++) {
		if (queue->at[i].begin_ns > wait->begin_ns)
			queue->at[left++] = queue->at[i];
		else
			each(data, &queue->at[i], ns);
	}
	queue->n = left;
	estimate->waiting -= n;
	if (!left)
		drop(estimate, queue);
}

void estimate_waited(struct estimate *estimate, const struct estimate_wait *wait, estimate_fn each,
                     void *data)
{
	const struct queue_key key = { wait->process, wait->stream };
	struct queue *queue, *next;

	if (!wait->all) {
		HASH_FIND(hh, estimate->queues, &key, sizeof(key), queue);
		if (queue)
			end_queue(estimate, queue, wait, each, data);
		return;
	}
	HASH_ITER (hh, estimate->queues, queue, next) {
		if (queue->key.process == wait->process)
			end_queue(estimate, queue, wait, each, data);
	}
}

size_t estimate_waiting(const struct estimate *estimate)
{
	return estimate->waiting;
}
