// SPDX-License-Identifier: MIT
#include "capture/gpu/gpu_order.h"

#include <stdlib.h>

#include "base/heap.h"
#include "base/xalloc.h"

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
	struct gpu_item *items;
	uint32_t *unused; /* slots; the first `capacity - count` of them */
	size_t count, capacity, text_bytes;
	uint64_t arrivals, last_ns;
	struct arrival *fresh; /* a circle: those from `first_fresh` to `arrivals` */
	uint64_t first_fresh;
};

struct gpu_order *gpu_order_new(void)
{
	struct gpu_order *order = xcalloc(1, sizeof(*order));

	order->fresh = xcalloc(GPU_ORDER_MAX, sizeof(*order->fresh));
	return order;
}

void gpu_order_free(struct gpu_order *order)
{
	if (!order)
		return;
	for (size_t i = 0; i < order->count; i++)
		gpu_item_free(&order->items[order->heap[i].slot]);
	free(order->heap);
	free(order->items);
	free(order->unused);
	free(order->fresh);
	free(order);
}

static void grow(struct gpu_order *order)
{
	size_t capacity = order->capacity ? 2 * order->capacity : 256;

	order->heap = xrealloc(order->heap, capacity * sizeof(*order->heap));
	order->items = xrealloc(order->items, capacity * sizeof(*order->items));
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

void gpu_order_add(struct gpu_order *order, const struct gpu_item *item)
{
	struct gpu_order_key key = { .end_ns = item->end_ns, .number = order->arrivals };

	if (order->count == order->capacity)
		grow(order);
	key.slot = order->unused[order->capacity - order->count - 1];
	order->items[key.slot] = *item;
	order->items[key.slot].arrival = key.number;
	order->text_bytes += item->is_range ? item->range.text_bytes : 0;
	if (order->arrivals - order->first_fresh == GPU_ORDER_MAX)
		order->first_fresh++;
	order->fresh[order->arrivals++ % GPU_ORDER_MAX] = (struct arrival){ key.number, key.slot };
	heap_add(order->heap, order->count++, key);
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

bool gpu_order_is_full(const struct gpu_order *order)
{
	return order->count >= GPU_ORDER_MAX || order->text_bytes >= GPU_ORDER_TEXTS_MAX;
}

bool gpu_order_take(struct gpu_order *order, struct gpu_item *item)
{
	struct gpu_order_key first = heap_take(order->heap, order->count);
	bool late = first.end_ns < order->last_ns;

	*item = order->items[first.slot];
	order->text_bytes -= item->is_range ? item->range.text_bytes : 0;
	order->items[first.slot].arrival = UINT64_MAX;
	order->unused[order->capacity - order->count--] = first.slot;
	if (!late)
		order->last_ns = item->end_ns;
	return late;
}

uint64_t gpu_order_last_of(const struct gpu_order *order, const struct process *process,
                           uint64_t until_ns)
{
	uint64_t last = 0;

	for (size_t i = 0; i < order->count; i++) {
		const struct gpu_item *item = &order->items[order->heap[i].slot];

		if (item->process == process && item->begin_ns < until_ns && item->end_ns > last)
			last = item->end_ns;
	}
	return last;
}

void gpu_order_move(struct gpu_order *order, const struct process *from, uint64_t since_ns,
                    const struct process *to)
{
	for (size_t i = 0; i < order->count; i++) {
		struct gpu_item *item = &order->items[order->heap[i].slot];

		if (item->process == from && item->begin_ns >= since_ns)
			item->process = to;
	}
}
