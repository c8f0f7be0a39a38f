// SPDX-License-Identifier: MIT
#include "capture/order.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "base/vec.h"
#include "base/xalloc.h"

/* a thread may be preempted for a time slice between taking the time and sending */
#define WINDOW_NS  8000000
#define SLOT_BYTES 448   /* a call with the longest plan; names are larger and rare */
#define FEW_BYTES  192   /* most calls */
#define SLOTS_MAX  2048  /* 0.9 MiB */
#define FEWS_MAX   24576 /* 4.5 MiB: what a window of the fastest program needs */

struct order_item {
	uint64_t time_ns;
	uint64_t number;          /* of arrival: those of one time keep their order */
	struct wire_head *record; /* a copy */
	size_t bytes;
};

struct order {
	order_record_fn each;
	void *data;
	/*
	 * Nearly all records come in order and are put at the end of a circle: the oldest at
	 * `first`, `count` of them, sorted. The others go into a heap, so that no order of arrival,
	 * not even one that a target chose, costs more than a logarithm.
	 */
	struct order_item *items;
	size_t first, count, capacity;
	struct order_item *heap;
	size_t n_heap;
	uint64_t arrivals;
	void *slots[SLOTS_MAX], *fews[FEWS_MAX]; /* free copies of SLOT_BYTES, and of FEW_BYTES */
	size_t n_slots, n_fews;
	uint64_t last_ns, late;
	uint64_t passed_ns; /* all before that were */
	uint64_t most_ns;   /* of a read; 0: no limit */
	uint64_t limit_ns;  /* when this one has taken that */
	uint64_t n_passed;  /* by the last read */
	bool limited;
	struct order_source source; /* besides the rings; peek is NULL where there is none */
};

struct order *order_new(order_record_fn each, void *data)
{
	struct order *order = xcalloc(1, sizeof(*order));

	order->each = each;
	order->data = data;
	order->capacity = 1024;
	order->items = xcalloc(order->capacity, sizeof(*order->items));
	return order;
}

static struct order_item *item_at(struct order *order, size_t index)
{
	return &order->items[(order->first + index) & (order->capacity - 1)];
}

void order_free(struct order *order)
{
	if (!order)
		return;
	for (size_t i = 0; i < order->count; i++)
		free(item_at(order, i)->record);
	for (size_t i = 0; i < order->n_heap; i++)
		free(order->heap[i].record);
	for (size_t i = 0; i < order->n_slots; i++)
		free(order->slots[i]);
	for (size_t i = 0; i < order->n_fews; i++)
		free(order->fews[i]);
	free(order->items);
	free(order->heap);
	free(order);
}

/* Doubles the circle and straightens it. */
static void grow(struct order *order)
{
	struct order_item *items = xcalloc(2 * order->capacity, sizeof(*items));

	for (size_t i = 0; i < order->count; i++)
		items[i] = *item_at(order, i);
	free(order->items);
	order->items = items;
	order->first = 0;
	order->capacity *= 2;
}

static void *copy_of(struct order *order, const void *record, size_t bytes)
{
	void *copy;

	if (bytes > SLOT_BYTES)
		copy = xmalloc(bytes);
	else if (bytes > FEW_BYTES)
		copy = order->n_slots ? order->slots[--order->n_slots] : xmalloc(SLOT_BYTES);
	else
		copy = order->n_fews ? order->fews[--order->n_fews] : xmalloc(FEW_BYTES);
	return memcpy(copy, record, bytes);
}

static void release(struct order *order, const struct order_item *item)
{
	if (item->bytes <= FEW_BYTES && order->n_fews < FEWS_MAX)
		order->fews[order->n_fews++] = item->record;
	else if (item->bytes > FEW_BYTES && item->bytes <= SLOT_BYTES && order->n_slots < SLOTS_MAX)
		order->slots[order->n_slots++] = item->record;
	else
		free(item->record);
}

/* ---- the heap ------------------------------------------------------------------------------ */

static bool is_before(const struct order_item *a, const struct order_item *b)
{
	return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->number < b->number;
}

HEAP_OF(heap, struct order_item, is_before)

static void add_late(struct order *order, struct order_item item)
{
	order->heap = vec_room(order->heap, order->n_heap, sizeof(*order->heap));
	heap_add(order->heap, order->n_heap++, item);
}

/* ---- in and out ---------------------------------------------------------------------------- */

void order_add(struct order *order, const struct wire_head *record, size_t bytes)
{
	struct order_item item = { .time_ns = record->time_ns,
		                   .number = order->arrivals++,
		                   .bytes = bytes };

	item.record = copy_of(order, record, bytes);
	if (order->count && item_at(order, order->count - 1)->time_ns > item.time_ns) {
		add_late(order, item);
		return;
	}
	if (order->count == order->capacity)
		grow(order);
	*item_at(order, order->count++) = item;
}

/* The oldest of both, taken out if it is older than that. */
static bool take_first(struct order *order, uint64_t until_ns, struct order_item *item)
{
	const struct order_item *first = order->count ? item_at(order, 0) : NULL;
	bool heap = order->n_heap && (!first || is_before(&order->heap[0], first));

	if (heap)
		first = &order->heap[0];
	if (!first || first->time_ns > until_ns)
		return false;
	if (heap) {
		*item = heap_take(order->heap, order->n_heap--);
		return true;
	}
	*item = *first;
	order->first = (order->first + 1) & (order->capacity - 1);
	order->count--;
	return true;
}

void order_limit(struct order *order, uint64_t most_ns)
{
	order->most_ns = most_ns;
}

bool order_was_limited(const struct order *order)
{
	return order->limited;
}

/* Looked up at the first record of a read, and each sixteenth: the clock costs a tenth of one. */
static bool is_time_up(struct order *order)
{
	if (!order->most_ns || order->n_passed++ % 16)
		return false;
	return clock_now_ns() >= order->limit_ns;
}

static int pass_one(struct order *order, const struct wire_head *record)
{
	int r;

	if (record->time_ns < order->last_ns)
		order->late++;
	else
		order->last_ns = record->time_ns;
	r = order->each(order->data, record);
	order->limited = is_time_up(order);
	return r;
}

/* Those of the source that are not later than that. */
static int pass_source(struct order *order, uint64_t until_ns)
{
	const struct order_source *source = &order->source;
	const struct wire_head *record;
	int r = 0;

	while (source->take && !r && !order->limited) {
		record = source->take(source->data, until_ns);
		if (!record)
			break;
		r = pass_one(order, record);
		source->release(source->data, record);
	}
	return r;
}

/* When the oldest of the window is due. */
static uint64_t first_ns(struct order *order)
{
	uint64_t ns = order->count ? item_at(order, 0)->time_ns : UINT64_MAX;

	return order->n_heap && order->heap[0].time_ns < ns ? order->heap[0].time_ns : ns;
}

static int pass_on(struct order *order, uint64_t until_ns)
{
	struct order_item item;
	uint64_t next_ns;
	int r = 0;

	while (!r && !order->limited) {
		next_ns = first_ns(order);
		r = pass_source(order, next_ns < until_ns ? next_ns : until_ns);
		if (r || order->limited || !take_first(order, until_ns, &item))
			break;
		r = pass_one(order, item.record);
		release(order, &item);
	}
	return r;
}

void order_add_source(struct order *order, const struct order_source *source)
{
	order->source = *source;
}

/* The oldest record of all rings, and its ring: NULL where there is none. */
static struct ring *oldest_ring(const struct rings *rings, const struct wire_head **record,
                                size_t *bytes)
{
	struct ring *oldest = NULL;

	*record = NULL;
	for (size_t i = 0; i < rings_count(rings); i++) {
		struct ring *ring = rings_at(rings, i);
		size_t len;
		const struct wire_head *head = ring_peek(ring, &len);

		if (head && (!*record || head->time_ns < (*record)->time_ns)) {
			oldest = ring;
			*record = head;
			*bytes = len;
		}
	}
	return oldest;
}

/* Takes records into the window until it has to pass some on. Whether there may be more. */
static bool order_gather(struct order *order, struct rings *rings, uint64_t until_ns,
                         uint64_t *front_ns)
{
	const struct wire_head *record;
	size_t bytes, n = 0;
	struct ring *ring;

	while ((ring = oldest_ring(rings, &record, &bytes))) {
		*front_ns = record->time_ns;
		/*
		 * Else a busy target would keep us here for good. Behind what is too new may be
		 * what is not: threads of several CPUs overtake each other on their way to a ring.
		 */
		if (*front_ns > WINDOW_NS && *front_ns - WINDOW_NS > until_ns)
			return false;
		order_add(order, record, bytes);
		ring_advance(ring);
		if (++n % 64 == 0 && *front_ns > WINDOW_NS)
			return true;
	}
	return false;
}

int order_read(struct order *order, struct rings *rings, uint64_t until_ns)
{
	bool more = true;
	int r = 0;

	order->limited = false;
	order->n_passed = 0;
	order->limit_ns = order->most_ns ? clock_now_ns() + order->most_ns : 0;
	while (more) {
		uint64_t front_ns = 0;

		rings_enter(rings);
		more = order_gather(order, rings, until_ns, &front_ns);
		rings_leave(rings);
		if (more)
			r = pass_on(order, front_ns - WINDOW_NS);
		if (r || order->limited)
			return r;
	}
	r = pass_on(order, until_ns);
	if (!order->limited)
		order->passed_ns = until_ns;
	return r;
}

uint64_t order_passed_ns(const struct order *order)
{
	return order->passed_ns > order->last_ns ? order->passed_ns : order->last_ns;
}

int order_finish(struct order *order)
{
	order->limited = false;
	order->most_ns = 0;
	return pass_on(order, UINT64_MAX);
}

uint64_t order_late(const struct order *order)
{
	return order->late;
}
