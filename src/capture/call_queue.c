// SPDX-License-Identifier: MIT
#include "capture/call_queue.h"

#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "base/xalloc.h"

#define QUEUE_MAX  ((size_t)32 << 20)
#define QUEUES_MAX ((size_t)64 << 20)
#define QUEUE_FEW  ((size_t)256 << 10) /* more room than this is given back when it is empty */

/* Records of one process: each behind its length. */
struct process_queue {
	uint32_t pid;
	char *bytes;
	size_t begin, end, capacity;
	bool over; /* its process ended: it goes when it is empty */
	UT_hash_handle hh;
};

struct call_queue {
	struct process_queue *processes;
	struct process_queue *front; /* whose first record is the oldest; NULL: to be found */
	size_t room;                 /* of all processes */
	uint64_t refused;
};

struct call_queue *call_queue_new(void)
{
	return xcalloc(1, sizeof(struct call_queue));
}

static void drop(struct call_queue *queue, struct process_queue *process)
{
	queue->front = NULL;
	queue->room -= process->capacity;
	HASH_DEL(queue->processes, process);
	free(process->bytes);
	free(process);
}

void call_queue_free(struct call_queue *queue)
{
	struct process_queue *process, *next;

	if (!queue)
		return;
	HASH_ITER (hh, queue->processes, process, next) {
		drop(queue, process);
	}
	free(queue);
}

static struct process_queue *process_get(struct call_queue *queue, uint32_t pid)
{
	struct process_queue *process;

	HASH_FIND_INT(queue->processes, &pid, process);
	if (process) {
		process->over = false;
		return process;
	}
	process = xcalloc(1, sizeof(*process));
	process->pid = pid;
	HASH_ADD_INT(queue->processes, pid, process);
	return process;
}

static void give_room_back(struct call_queue *queue, struct process_queue *process)
{
	queue->room -= process->capacity;
	free(process->bytes);
	process->bytes = NULL;
	process->begin = process->end = process->capacity = 0;
}

static bool make_room(struct call_queue *queue, struct process_queue *process, size_t need)
{
	size_t capacity = process->capacity;

	if (process->end + need > process->capacity && process->begin > process->capacity / 2) {
		memmove(process->bytes, process->bytes + process->begin,
		        process->end - process->begin);
		process->end -= process->begin;
		process->begin = 0;
	}
	while (process->end + need > capacity)
		capacity = capacity ? 2 * capacity : 65536;
	if (capacity == process->capacity)
		return true;
	if (capacity > QUEUE_MAX || queue->room - process->capacity + capacity > QUEUES_MAX)
		return false;
	process->bytes = xrealloc(process->bytes, capacity);
	queue->room += capacity - process->capacity;
	process->capacity = capacity;
	return true;
}

bool call_queue_add(struct call_queue *queue, const struct wire_head *record, size_t bytes)
{
	struct process_queue *process = process_get(queue, record->tgid);
	uint64_t length = bytes;
	size_t need = sizeof(length) + ((bytes + 7) & ~(size_t)7);

	if (process->begin == process->end) {
		process->begin = process->end = 0;
		queue->front = NULL;
	}
	if (!make_room(queue, process, need)) {
		queue->refused++;
		return false;
	}
	memcpy(process->bytes + process->end, &length, sizeof(length));
	memcpy(process->bytes + process->end + sizeof(length), record, bytes);
	process->end += need;
	return true;
}

static const struct wire_head *first_of(const struct process_queue *process)
{
	if (process->begin == process->end)
		return NULL;
	return (const void *)(process->bytes + process->begin + sizeof(uint64_t));
}

static void find_front(struct call_queue *queue)
{
	const struct wire_head *oldest = NULL;

	queue->front = NULL;
	for (struct process_queue *at = queue->processes; at; at = at->hh.next) {
		const struct wire_head *first = first_of(at);

		if (first && (!oldest || first->time_ns < oldest->time_ns)) {
			oldest = first;
			queue->front = at;
		}
	}
}

const struct wire_head *call_queue_peek(void *data, size_t *bytes)
{
	struct call_queue *queue = data;
	uint64_t length;

	if (!queue->front)
		find_front(queue);
	if (!queue->front)
		return NULL;
	memcpy(&length, queue->front->bytes + queue->front->begin, sizeof(length));
	*bytes = length;
	return first_of(queue->front);
}

void call_queue_advance(void *data)
{
	struct call_queue *queue = data;
	struct process_queue *process = queue->front;
	uint64_t length;

	memcpy(&length, process->bytes + process->begin, sizeof(length));
	process->begin += sizeof(length) + ((length + 7) & ~(uint64_t)7);
	queue->front = NULL;
	if (process->begin < process->end)
		return;
	if (process->over)
		drop(queue, process);
	else if (process->capacity > QUEUE_FEW)
		give_room_back(queue, process);
}

void call_queue_forget(struct call_queue *queue, uint32_t pid)
{
	struct process_queue *process;

	HASH_FIND_INT(queue->processes, &pid, process);
	if (process && process->begin == process->end)
		drop(queue, process);
	else if (process)
		process->over = true;
}

uint64_t call_queue_refused(const struct call_queue *queue)
{
	return queue->refused;
}
