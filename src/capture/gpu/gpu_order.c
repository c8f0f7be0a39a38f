// SPDX-License-Identifier: MIT
#include "capture/gpu/gpu_order.h"

#include <stdlib.h>

#include "base/heap.h"
#include "base/map.h"
#include "base/quota.h"
#include "base/xalloc.h"

/*
 * A stream's work ends in order, so items of one stream are a chain, of which the heap has the
 * first alone: few elements instead of all that wait, 100,000 of a program that launches 400,000
 * times a second. What comes out of its chain's order is in the heap by itself.
 */
#define CHAINS 256 /* a power of two; streams beyond share them */
#define NONE   UINT32_MAX

struct gpu_order_link {
	uint32_t next; /* the slot after it in its chain; NONE: none */
	uint32_t chain;
	uint32_t of_next, of_before; /* of the same process; NONE: none */
	uint32_t looks;              /* at it, see gpu_order_last_of() */
};

/* The items of a process, so that its end looks at no others. */
struct gpu_order_of {
	const struct process *process;
	uint32_t first; /* a slot */
	UT_hash_handle hh;
};

/* What a user has here. */
struct gpu_order_user {
	uint64_t person;
	size_t count, text_bytes;
	UT_hash_handle hh;
};

/* What is moved about in the heap is small; the items stay where they are. */
struct gpu_order_key {
	uint64_t end_ns;
	uint64_t number; /* of arrival: those that end together keep their order */
	uint32_t slot;
};

/* An item by its slot, which another may have by now. */
struct arrival {
	uint64_t number;
	uint32_t slot;
};

struct gpu_order {
	struct gpu_order_key *heap;
	size_t n_heap;
	struct gpu_item *items;
	struct gpu_order_link *links; /* by slot */
	uint32_t *unused;             /* slots; the first `capacity - count` of them */
	size_t count, capacity, text_bytes;
	uint32_t last[CHAINS];            /* slots; NONE: the chain is empty */
	struct gpu_order_of *of, *recent; /* of those that have items; the second: asked for last */
	struct gpu_order_user *users, *recent_user; /* the same */
	uint64_t arrivals, last_ns;
	struct arrival *fresh; /* a circle: those from `first_fresh` to `arrivals` */
	uint64_t first_fresh;
};

struct gpu_order *gpu_order_new(void)
{
	struct gpu_order *order = xcalloc(1, sizeof(*order));

	order->fresh = xcalloc(GPU_ORDER_MAX, sizeof(*order->fresh));
	for (size_t i = 0; i < CHAINS; i++)
		order->last[i] = NONE;
	return order;
}

/* Calls `each` for all items, in no order. */
static void each_item(const struct gpu_order *order,
                      void (*each)(void *data, struct gpu_item *item), void *data)
{
	for (size_t i = 0; i < order->n_heap; i++) {
		for (uint32_t slot = order->heap[i].slot; slot != NONE;
		     slot = order->links[slot].next)
			each(data, &order->items[slot]);
	}
}

static void free_item(void *unused, struct gpu_item *item)
{
	gpu_item_free(item);
}

void gpu_order_free(struct gpu_order *order)
{
	if (!order)
		return;
	each_item(order, free_item, NULL);
	MAP_FREE(order->of, free);
	MAP_FREE(order->users, free);
	free(order->heap);
	free(order->items);
	free(order->links);
	free(order->unused);
	free(order->fresh);
	free(order);
}

static void grow(struct gpu_order *order)
{
	size_t capacity = order->capacity ? 2 * order->capacity : 256;

	order->heap = xrealloc(order->heap, capacity * sizeof(*order->heap));
	order->items = xrealloc(order->items, capacity * sizeof(*order->items));
	order->links = xrealloc(order->links, capacity * sizeof(*order->links));
	order->unused = xrealloc(order->unused, capacity * sizeof(*order->unused));
	for (size_t i = 0; i < capacity - order->capacity; i++)
		order->unused[i] = (uint32_t)(capacity - 1 - i);
	order->capacity = capacity;
}

static bool before(const struct gpu_order_key *a, const struct gpu_order_key *b)
{
	return a->end_ns != b->end_ns ? a->end_ns < b->end_ns : a->number < b->number;
}

HEAP_OF(heap, struct gpu_order_key, before)

static uint32_t chain_of(const struct gpu_item *item)
{
	uint32_t hash = item->pid * 2654435761u + item->stream * 2246822519u + item->context;

	return (hash ^ hash >> 16) & (CHAINS - 1);
}

static struct gpu_order_of *of_find(struct gpu_order *order, const struct process *process)
{
	if (!order->recent || order->recent->process != process)
		order->recent = MAP_FIND(order->of, &process);
	return order->recent;
}

static struct gpu_order_user *user_find(struct gpu_order *order, uint64_t person)
{
	if (!order->recent_user || order->recent_user->person != person)
		order->recent_user = MAP_FIND(order->users, &person);
	return order->recent_user;
}

static size_t text_bytes(const struct gpu_item *item)
{
	return item->is_range ? item->range.text_bytes : 0;
}

static void user_add(struct gpu_order *order, const struct gpu_item *item)
{
	struct gpu_order_user *user = user_find(order, item->person);

	if (!user)
		user = order->recent_user = MAP_ADD(order->users, person, &item->person);
	user->count++;
	user->text_bytes += text_bytes(item);
	order->text_bytes += text_bytes(item);
}

static void user_remove(struct gpu_order *order, const struct gpu_item *item)
{
	struct gpu_order_user *user = user_find(order, item->person);

	order->text_bytes -= text_bytes(item);
	user->text_bytes -= text_bytes(item);
	if (--user->count)
		return;
	order->recent_user = NULL;
	MAP_DROP(order->users, user);
}

static void of_add(struct gpu_order *order, uint32_t slot)
{
	const struct process *process = order->items[slot].process;
	struct gpu_order_of *of = of_find(order, process);

	if (!of) {
		of = order->recent = MAP_ADD(order->of, process, &process);
		of->first = NONE;
	}
	order->links[slot].of_before = NONE;
	order->links[slot].of_next = of->first;
	if (of->first != NONE)
		order->links[of->first].of_before = slot;
	of->first = slot;
}

static void of_remove(struct gpu_order *order, uint32_t slot)
{
	const struct gpu_order_link *link = &order->links[slot];
	struct gpu_order_of *of;

	if (link->of_next != NONE)
		order->links[link->of_next].of_before = link->of_before;
	if (link->of_before != NONE) {
		order->links[link->of_before].of_next = link->of_next;
		return;
	}
	of = of_find(order, order->items[slot].process);
	of->first = link->of_next;
	if (of->first == NONE) {
		order->recent = NULL;
		MAP_DROP(order->of, of);
	}
}

/* Whether it became the last of its chain, and so is not in the heap yet. */
static bool chain_add(struct gpu_order *order, uint32_t slot)
{
	uint32_t chain = chain_of(&order->items[slot]), before = order->last[chain];

	order->links[slot].next = NONE;
	order->links[slot].chain = chain;
	order->links[slot].looks = 0;
	if (before != NONE && order->items[slot].end_ns < order->items[before].end_ns)
		return false;
	order->last[chain] = slot;
	if (before != NONE)
		order->links[before].next = slot;
	return before != NONE;
}

void gpu_order_add(struct gpu_order *order, const struct gpu_item *item)
{
	struct gpu_order_key key = { .end_ns = item->end_ns, .number = order->arrivals };

	if (order->count == order->capacity)
		grow(order);
	key.slot = order->unused[order->capacity - order->count - 1];
	order->items[key.slot] = *item;
	order->items[key.slot].arrival = key.number;
	user_add(order, item);
	if (order->arrivals - order->first_fresh == GPU_ORDER_MAX)
		order->first_fresh++;
	order->fresh[order->arrivals++ % GPU_ORDER_MAX] = (struct arrival){ key.number, key.slot };
	order->count++;
	of_add(order, key.slot);
	if (!chain_add(order, key.slot))
		heap_add(order->heap, order->n_heap++, key);
}

void gpu_order_each_new(struct gpu_order *order, uint64_t until_ns,
                        void (*each)(void *data, struct gpu_item *item), void *data)
{
	for (; order->first_fresh < order->arrivals; order->first_fresh++) {
		struct arrival *arrival = &order->fresh[order->first_fresh % GPU_ORDER_MAX];
		struct gpu_item *item = &order->items[arrival->slot];

		if (item->arrival != arrival->number) /* it went on already */
			continue;
		if (item->arrived_ns > until_ns)
			return;
		each(data, item);
	}
}

struct gpu_item *gpu_order_first(const struct gpu_order *order)
{
	return order->count ? &order->items[order->heap[0].slot] : NULL;
}

size_t gpu_order_count(const struct gpu_order *order)
{
	return order->count;
}

static bool has_his_share(struct gpu_order *order, uint64_t person)
{
	const struct gpu_order_user *user;

	if (person == QUOTA_ROOT || (order->count < GPU_ORDER_SHARE(GPU_ORDER_MAX) &&
	                             order->text_bytes < GPU_ORDER_SHARE(GPU_ORDER_TEXTS_MAX)))
		return false;
	user = user_find(order, person);
	return user && user->count < order->count &&
	       (user->count >= GPU_ORDER_SHARE(GPU_ORDER_MAX) ||
	        user->text_bytes >= GPU_ORDER_SHARE(GPU_ORDER_TEXTS_MAX));
}

/*
 * An agent can tell of any number of items, which end when it likes. Of who has his share the first
 * goes on for the next, and if that is another's, he has to wait; else others' would go on before
 * their calls have come. One that is still to end would put all that comes later out of order.
 */
enum gpu_order_room gpu_order_room(struct gpu_order *order, uint64_t person, uint64_t now_ns)
{
	bool is_full = order->count >= GPU_ORDER_MAX || order->text_bytes >= GPU_ORDER_TEXTS_MAX;
	bool has_share = has_his_share(order, person);
	const struct gpu_item *first;

	if (!is_full && !has_share)
		return GPU_ORDER_ROOM;
	first = gpu_order_first(order);
	if (first->person == person ? first->end_ns > now_ns : has_share)
		return GPU_ORDER_REFUSED;
	return GPU_ORDER_FULL;
}

bool gpu_order_take(struct gpu_order *order, struct gpu_item *item)
{
	struct gpu_order_key first = heap_take(order->heap, order->n_heap--);
	struct gpu_order_link link = order->links[first.slot];
	bool late = first.end_ns < order->last_ns;

	of_remove(order, first.slot);
	*item = order->items[first.slot];
	if (order->last[link.chain] == first.slot)
		order->last[link.chain] = NONE;
	if (link.next != NONE)
		heap_add(order->heap, order->n_heap++,
		         (struct gpu_order_key){ order->items[link.next].end_ns,
		                                 order->items[link.next].arrival, link.next });
	user_remove(order, item);
	order->items[first.slot].arrival = UINT64_MAX;
	order->unused[order->capacity - order->count--] = first.slot;
	if (!late)
		order->last_ns = item->end_ns;
	return late;
}

/* Items of a process: the first, and the one after. */
static uint32_t of_first(struct gpu_order *order, const struct process *process)
{
	const struct gpu_order_of *of = of_find(order, process);

	return of ? of->first : NONE;
}

static void hand_over_one(struct gpu_order *order, uint32_t slot, const struct process *to)
{
	of_remove(order, slot);
	order->items[slot].process = to;
	of_add(order, slot);
}

uint64_t gpu_order_last_of(struct gpu_order *order, const struct process *process,
                           uint64_t until_ns)
{
	uint32_t slot = of_first(order, process), next;
	uint64_t last_ns = 0;

	for (; slot != NONE; slot = next) {
		const struct gpu_item *item = &order->items[slot];

		next = order->links[slot].of_next;
		if (process && ++order->links[slot].looks > GPU_ORDER_LOOKS)
			hand_over_one(order, slot, NULL);
		else if (item->begin_ns < until_ns && item->end_ns > last_ns)
			last_ns = item->end_ns;
	}
	return last_ns;
}

/* Those that begin in a stretch of time are of another process, or nobody's. */
static void hand_over(struct gpu_order *order, const struct process *from, uint64_t since_ns,
                      uint64_t until_ns, const struct process *to)
{
	uint32_t slot = of_first(order, from), next;

	for (; slot != NONE && from != to; slot = next) {
		const struct gpu_item *item = &order->items[slot];

		next = order->links[slot].of_next;
		if (item->begin_ns >= since_ns && item->begin_ns < until_ns)
			hand_over_one(order, slot, to);
	}
}

/* What is left of it says that it ends behind its process's end. */
void gpu_order_orphan(struct gpu_order *order, const struct process *process, uint64_t until_ns)
{
	hand_over(order, process, 0, until_ns, NULL);
}

void gpu_order_move(struct gpu_order *order, const struct process *from, uint64_t since_ns,
                    const struct process *to)
{
	hand_over(order, from, since_ns, UINT64_MAX, to);
}
