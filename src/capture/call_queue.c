// SPDX-License-Identifier: MIT
#include "capture/call_queue.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/heap.h"
#include "base/map.h"
#include "base/quota.h"
#include "base/vec.h"
#include "base/words.h"
#include "base/xalloc.h"
#include "cuda/error.h"
#include "probe/helper.h"
#include "probe/person.h"

/* What a ring of 32 MiB holds, which grows by half on its way, and 28 ms of the fastest program. */
#define QUEUE_MAX      ((size_t)80 << 20)
#define QUEUES_USER    ((size_t)120 << 20) /* of a user but root */
#define QUEUES_MAX     ((size_t)160 << 20)
#define QUEUES_UNKNOWN (QUEUES_MAX / 8) /* processes of whom nobody knows whose they were */
#define BLOCK_BYTES    ((size_t)64 << 10)
#define STEPS_MOST                                                                                 \
	16 /* that a record goes back to its place; threads overtake each other by few             \
	    */

/*
 * Memory of records of one process, one after the other and each behind a pointer to its block. It
 * is used anew when all of them were released.
 */
struct block {
	struct process_queue *process;
	struct block *next; /* of those that nobody uses */
	size_t used, live;  /* bytes; records */
	_Alignas(8) char bytes[];
};
#define BLOCK_ROOM (BLOCK_BYTES - offsetof(struct block, bytes))

struct waiting {
	uint64_t time_ns, number; /* of arrival: those of one time keep their order */
	struct wire_head *record;
};

struct process_queue {
	uint32_t pid;
	uint64_t person;     /* probe/person.h */
	struct block *block; /* that is written to; NULL: none yet */
	size_t bytes;        /* of its blocks, of `waiting` and of `heap` */
	/*
	 * Nearly all records come in order, or few places before the last: they are in a circle,
	 * the oldest at `first`, `count` of them, sorted. The others go into a heap, so that no
	 * order of arrival, not even one that a target chose, costs more than a logarithm.
	 */
	struct waiting *waiting, *heap;
	size_t first, count, capacity, n_heap, heap_room;
	size_t live; /* records that were not released */
	size_t at;   /* in `fronts` */
	bool over;   /* its process ended: it goes when it is empty */
	LIST_ENTRY(process_queue) idle;
	UT_hash_handle hh;
};

/* No later than its first record; exact where it is the first of all. */
struct front {
	uint64_t time_ns; /* FRONT_NONE: it has none */
	struct process_queue *process;
};
#define FRONT_NONE UINT64_MAX

struct call_queue {
	struct process_queue *processes;
	struct front *fronts; /* of all of them, a heap */
	size_t n_fronts;
	struct process_queue *recent;    /* that was added to last */
	LIST_HEAD(, process_queue) idle; /* that have room, and nothing in it */
	struct block *unused;
	size_t n_unused, n_blocks, n_blocks_most; /* in use; and since all were released last */
	size_t live;
	struct quota room;
	uint64_t numbers, refused;
};

struct call_queue *call_queue_new(void)
{
	struct call_queue *queue = xcalloc(1, sizeof(*queue));

	queue->room =
		(struct quota){ .user = { .most = QUEUES_USER }, .all = { .most = QUEUES_MAX } };
	return queue;
}

/* ---- memory -------------------------------------------------------------------------------- */

static void trim_unused(struct call_queue *queue, size_t most)
{
	while (queue->n_unused > most) {
		struct block *block = queue->unused;

		queue->unused = block->next;
		queue->n_unused--;
		free(block);
	}
}

static void count_bytes(struct call_queue *queue, struct process_queue *process, size_t more,
                        size_t less)
{
	process->bytes += more - less;
	quota_add(&queue->room, process->person, 0, more);
	quota_give(&queue->room, process->person, 0, less);
}

static void block_drop(struct call_queue *queue, struct block *block)
{
	count_bytes(queue, block->process, 0, BLOCK_BYTES);
	block->next = queue->unused;
	queue->unused = block;
	queue->n_unused++;
	queue->n_blocks--;
}

static void give_room_back(struct call_queue *queue, struct process_queue *process)
{
	if (process->block)
		block_drop(queue, process->block);
	count_bytes(queue, process, 0, process->bytes);
	free(process->waiting);
	free(process->heap);
	process->block = NULL;
	process->waiting = process->heap = NULL;
	process->first = process->capacity = process->heap_room = 0;
}

static void not_idle(struct process_queue *process)
{
	if (process->idle.le_prev)
		LIST_REMOVE(process, idle);
	process->idle.le_prev = NULL;
}

/* Of others, that have nothing in it. */
static void take_idle_room(struct call_queue *queue)
{
	struct process_queue *at;

	while ((at = LIST_FIRST(&queue->idle))) {
		not_idle(at);
		give_room_back(queue, at);
	}
}

static bool refuses(const struct call_queue *queue, const struct process_queue *process,
                    size_t bytes)
{
	uint64_t person = process->person;

	return quota_refuses(&queue->room, person, 0, bytes) ||
	       (person == PERSON_UNKNOWN &&
	        quota_of_user(&queue->room, person) + bytes > QUEUES_UNKNOWN);
}

static bool has_room(struct call_queue *queue, const struct process_queue *process, size_t bytes)
{
	if (queue->room.taken + queue->n_unused * BLOCK_BYTES + bytes > QUEUES_MAX)
		trim_unused(queue, 0);
	if (process->bytes + bytes > QUEUE_MAX)
		return false;
	if (refuses(queue, process, bytes))
		take_idle_room(queue);
	return !refuses(queue, process, bytes);
}

static bool block_add(struct call_queue *queue, struct process_queue *process)
{
	struct block *block = queue->unused;

	if (!has_room(queue, process, BLOCK_BYTES))
		return false;
	if (block) {
		queue->unused = block->next;
		queue->n_unused--;
	} else {
		block = xmalloc(BLOCK_BYTES);
	}
	block->process = process;
	block->used = block->live = 0;
	process->block = block;
	count_bytes(queue, process, BLOCK_BYTES, 0);
	if (++queue->n_blocks > queue->n_blocks_most)
		queue->n_blocks_most = queue->n_blocks;
	return true;
}

/* Room for a record with the pointer before it; NULL: there is none. */
static struct block **block_room(struct call_queue *queue, struct process_queue *process,
                                 size_t need)
{
	struct block *block = process->block;

	if (block && !block->live)
		block->used = 0;
	if (!block || block->used + need > BLOCK_ROOM) {
		if (block && !block->live)
			block_drop(queue, block);
		process->block = NULL;
		if (!block_add(queue, process))
			return NULL;
		block = process->block;
	}
	return (struct block **)(block->bytes + block->used);
}

/* ---- the order of time --------------------------------------------------------------------- */

static bool is_before(const struct waiting *a, const struct waiting *b)
{
	return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->number < b->number;
}

static struct waiting *waiting_at(const struct process_queue *process, size_t index)
{
	return &process->waiting[(process->first + index) & (process->capacity - 1)];
}

/* Doubles the circle and straightens it. */
static bool grow(struct call_queue *queue, struct process_queue *process)
{
	size_t capacity = process->capacity ? 2 * process->capacity : 256;
	size_t more = (capacity - process->capacity) * sizeof(*process->waiting);
	struct waiting *waiting;

	if (!has_room(queue, process, more))
		return false;
	waiting = xmalloc(capacity * sizeof(*waiting));
	for (size_t i = 0; i < process->count; i++)
		waiting[i] = *waiting_at(process, i);
	free(process->waiting);
	process->waiting = waiting;
	process->first = 0;
	process->capacity = capacity;
	count_bytes(queue, process, more, 0);
	return true;
}

static bool grow_heap(struct call_queue *queue, struct process_queue *process)
{
	size_t room = process->heap_room ? 2 * process->heap_room : 64;
	size_t more = (room - process->heap_room) * sizeof(*process->heap);

	if (!has_room(queue, process, more))
		return false;
	process->heap = xrealloc(process->heap, room * sizeof(*process->heap));
	process->heap_room = room;
	count_bytes(queue, process, more, 0);
	return true;
}

HEAP_OF(heap, struct waiting, is_before)

/* Its place among the last of the circle; more than `count` where that lies further back. */
static size_t place_of(const struct process_queue *process, uint64_t time_ns)
{
	size_t at = process->count;

	while (at && waiting_at(process, at - 1)->time_ns > time_ns) {
		if (process->count - --at == STEPS_MOST)
			return process->count + 1;
	}
	return at;
}

static bool insert_between(struct call_queue *queue, struct process_queue *process,
                           struct waiting one)
{
	size_t at = place_of(process, one.time_ns);

	if (at > process->count) {
		if (process->n_heap == process->heap_room && !grow_heap(queue, process))
			return false;
		heap_add(process->heap, process->n_heap++, one);
		return true;
	}
	if (process->count == process->capacity && !grow(queue, process))
		return false;
	for (size_t i = process->count++; i > at; i--)
		*waiting_at(process, i) = *waiting_at(process, i - 1);
	*waiting_at(process, at) = one;
	return true;
}

static inline bool insert(struct call_queue *queue, struct process_queue *process,
                          struct waiting one)
{
	size_t count = process->count;

	if (!count || count == process->capacity ||
	    waiting_at(process, count - 1)->time_ns > one.time_ns)
		return insert_between(queue, process, one);
	*waiting_at(process, process->count++) = one;
	return true;
}

/* The oldest of a process; NULL: it has none. */
static inline const struct waiting *first_of(const struct process_queue *process)
{
	const struct waiting *first = process->count ? waiting_at(process, 0) : NULL;

	if (process->n_heap && (!first || is_before(process->heap, first)))
		return process->heap;
	return first;
}

static inline uint64_t front_time(const struct waiting *first)
{
	return !first ? FRONT_NONE : first->time_ns < FRONT_NONE ? first->time_ns : FRONT_NONE - 1;
}

static inline bool is_earlier(const struct front *a, const struct front *b)
{
	return a->time_ns < b->time_ns;
}

static inline void front_placed(const struct front *front, size_t at)
{
	front->process->at = at;
}

HEAP_PLACED(fronts, struct front, is_earlier, front_placed)

/* ---- processes ----------------------------------------------------------------------------- */

static void drop(struct call_queue *queue, struct process_queue *process)
{
	struct front last = queue->fronts[--queue->n_fronts];

	if (last.process != process && is_earlier(&last, &queue->fronts[process->at]))
		fronts_up(queue->fronts, process->at, last);
	else if (last.process != process)
		fronts_down(queue->fronts, queue->n_fronts, process->at, last);
	queue->recent = NULL;
	not_idle(process);
	give_room_back(queue, process);
	MAP_DROP(queue->processes, process);
}

/* Of one that has ended, who it was when its agent came (agent/agent.c), for a minute. */
static uint64_t person_of(uint32_t pid)
{
	uint64_t person = helper_person_of((pid_t)pid);

	return person == PERSON_UNKNOWN ? person_of_process((pid_t)pid) : person;
}

/* Another process may have the number now. */
static void ask_anew(struct call_queue *queue, struct process_queue *process)
{
	size_t bytes = process->bytes;

	count_bytes(queue, process, 0, bytes);
	process->person = person_of(process->pid);
	count_bytes(queue, process, bytes, 0);
	process->over = false;
}

static struct process_queue *process_get(struct call_queue *queue, uint32_t pid)
{
	struct process_queue *process = queue->recent;

	if (!process || process->pid != pid)
		process = MAP_FIND(queue->processes, &pid);
	if (process) {
		queue->recent = process;
		if (process->over)
			ask_anew(queue, process);
		return process;
	}
	process = MAP_ADD(queue->processes, pid, &pid);
	process->person = person_of(pid);
	queue->fronts = vec_room(queue->fronts, queue->n_fronts, sizeof(*queue->fronts));
	fronts_up(queue->fronts, queue->n_fronts++, (struct front){ FRONT_NONE, process });
	return process;
}

void call_queue_forget(struct call_queue *queue, uint32_t pid)
{
	struct process_queue *process = MAP_FIND(queue->processes, &pid);

	if (process && !process->live)
		drop(queue, process);
	else if (process)
		process->over = true;
}

void call_queue_free(struct call_queue *queue)
{
	struct process_queue *process, *next;
	const struct wire_head *record;

	if (!queue)
		return;
	while ((record = call_queue_take(queue, UINT64_MAX)))
		call_queue_release(queue, record);
	HASH_ITER (hh, queue->processes, process, next) {
		drop(queue, process);
	}
	trim_unused(queue, 0);
	free(queue->fronts);
	quota_free(&queue->room);
	free(queue);
}

/* ---- in and out ---------------------------------------------------------------------------- */

bool call_queue_add(struct call_queue *queue, const struct wire_head *record, size_t bytes)
{
	struct process_queue *process = process_get(queue, record->tgid);
	size_t need = sizeof(struct block *) + ((bytes + 7) & ~(size_t)7);
	struct waiting one = { record->time_ns, queue->numbers++, NULL };
	struct front front = { front_time(&one), process };
	struct block **room;

	not_idle(process);
	room = block_room(queue, process, need);
	if (room)
		one.record = (struct wire_head *)(room + 1);
	if (!room || !insert(queue, process, one)) {
		queue->refused++;
		if (!process->live)
			LIST_INSERT_HEAD(&queue->idle, process, idle);
		return false;
	}
	*room = process->block;
	words_copy(room + 1, record, bytes);
	process->block->used += need;
	process->block->live++;
	process->live++;
	queue->live++;
	if (is_earlier(&front, &queue->fronts[process->at]))
		fronts_up(queue->fronts, process->at, front);
	return true;
}

/* NULL: there is none. Its process is the first of `fronts` then. */
static inline const struct waiting *oldest(struct call_queue *queue)
{
	while (queue->n_fronts) {
		struct process_queue *process = queue->fronts->process;
		const struct waiting *first = first_of(process);

		if (front_time(first) == queue->fronts->time_ns)
			return first;
		fronts_down(queue->fronts, queue->n_fronts, 0,
		            (struct front){ front_time(first), process });
	}
	return NULL;
}

const struct wire_head *call_queue_take(void *data, uint64_t until_ns)
{
	struct call_queue *queue = data;
	const struct waiting *first = oldest(queue);
	struct process_queue *process;
	const struct wire_head *record;

	if (!first || first->time_ns > until_ns)
		return NULL;
	process = queue->fronts->process;
	if (first == process->heap)
		return heap_take(process->heap, process->n_heap--).record;
	record = first->record;
	process->first = (process->first + 1) & (process->capacity - 1);
	process->count--;
	return record;
}

void call_queue_release(void *data, const struct wire_head *record)
{
	struct call_queue *queue = data;
	struct block *block = ((struct block *const *)record)[-1];
	struct process_queue *process = block->process;

	process->live--;
	if (!--block->live && block != process->block)
		block_drop(queue, block);
	if (!process->live)
		LIST_INSERT_HEAD(&queue->idle, process, idle);
	if (!process->live && process->over)
		drop(queue, process);
	if (--queue->live)
		return;
	trim_unused(queue, queue->n_blocks_most);
	queue->n_blocks_most = queue->n_blocks;
}

uint64_t call_queue_refused(const struct call_queue *queue)
{
	return queue->refused;
}

/* Results of either layer with which the end of a capture fails, and ends it all the same. */
#define CAPTURE_INVALIDATED 901
#define CAPTURE_UNJOINED    904

static bool is_out_valid(const struct wire_call *record)
{
	return record->head.type == WIRE_CALL && record->result == 0 &&
	       !(record->head.flags & (WIRE_NO_RETURN | WIRE_UNFINISHED));
}

static bool is_unreadable(const struct wire_call *record)
{
	return record->head.flags & WIRE_UNREADABLE;
}

/* Of those that the arguments are made of. */
static size_t bytes_of(const struct capture_plan *plan)
{
	size_t words = plan->blob != PLAN_NO_ARG ? WIRE_AT_BLOB + plan->blob_words
	               : plan->stack             ? WIRE_AT_STACK + plan->stack
	                                         : WIRE_AT_REG + plan->regs;

	return words * sizeof(uint64_t);
}

bool call_words_same(const struct call_words *words, const struct wire_call *record,
                     const struct capture_plan *plan)
{
	return words->kept && words->out_valid == is_out_valid(record) &&
	       words->unreadable == is_unreadable(record) &&
	       !memcmp(words->word, record->word, bytes_of(plan));
}

void call_words_keep(struct call_words *words, const struct wire_call *record,
                     const struct capture_plan *plan)
{
	words->kept = true;
	words->out_valid = is_out_valid(record);
	words->unreadable = is_unreadable(record);
	words_copy(words->word, record->word, bytes_of(plan));
}

void call_words_forget(struct call_words *words)
{
	words->kept = false;
}

void call_words_raw(struct api_raw *raw, const struct wire_call *record,
                    const struct capture_plan *plan)
{
	const uint64_t *word = (const uint64_t *)record->word;

	words_clear(raw, sizeof(*raw));
	memcpy(raw->out, word, sizeof(raw->out));
	words_copy(raw->reg, word + WIRE_AT_REG, plan->regs * sizeof(*word));
	if (plan->stack)
		words_copy(raw->stack, word + WIRE_AT_STACK, plan->stack * sizeof(*word));
	raw->out_valid = is_out_valid(record);
	raw->blob_valid = plan->blob != PLAN_NO_ARG && !is_unreadable(record) &&
	                  (!plan->blob_on_return || raw->out_valid);
	if (raw->blob_valid)
		words_copy(raw->blob, word + WIRE_AT_BLOB, plan->blob_words * sizeof(*word));
}

void call_words_result(struct call *call, const struct wire_call *record, bool returns_status)
{
	uint8_t flags = record->head.flags;

	call->flags = (flags & WIRE_NESTED ? CALL_NESTED : 0) |
	              (flags & WIRE_NO_RETURN ? CALL_NO_RETURN : 0) |
	              (flags & WIRE_UNFINISHED ? CALL_UNFINISHED : 0);
	call->begin_ns = record->begin_ns;
	call->end_ns = call->overhead_ns = call->correlation = 0;
	call->depth = record->head.depth;
	call->result = 0;
	call->kernel = NULL;
	call->stack = NULL;
	call->text = NULL;
	if (!call_has_end(call) || record->head.type == WIRE_BEGIN)
		return;
	call->end_ns = record->head.time_ns;
	if (!returns_status)
		return;
	call->result = record->result;
	if (call->result && !cuda_error_is_status(call->function->layer, call->result))
		call->flags |= CALL_FAILED;
}

bool call_took_effect(const struct call *call)
{
	if (call->flags & CALL_UNFINISHED)
		return false;
	/* success is assumed, but for a nested call: the one around it tells */
	if (call->flags & CALL_NO_RETURN)
		return !(call->flags & CALL_NESTED);
	/* the end of a capture that was broken (CUDA programming guide, "Invalidation") */
	return !(call->flags & CALL_FAILED) ||
	       (call->op == OP_CAPTURE_END &&
	        (call->result == CAPTURE_INVALIDATED || call->result == CAPTURE_UNJOINED));
}
