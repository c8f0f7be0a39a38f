// SPDX-License-Identifier: MIT
/* Live allocations added up by place: by process, kind of memory, function and stack. */
#include "capture/watch/watch_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int by_place(const void *left, const void *right)
{
	const struct watch_allocation *a = left, *b = right;
	int order = compare(a->process->id, b->process->id);

	if (!order)
		order = compare(a->kind, b->kind);
	if (!order)
		order = compare((uintptr_t)a->function, (uintptr_t)b->function);
	if (!order)
		order = compare((uintptr_t)a->stack, (uintptr_t)b->stack);
	return order;
}

static int most_bytes(const void *left, const void *right)
{
	const struct watch_place *a = left, *b = right;
	int order = compare(b->bytes, a->bytes);

	if (!order)
		order = compare(b->count, a->count);
	return order ? order : compare(a->oldest_ns, b->oldest_ns);
}

static void add_to_place(struct watch_place *place, const struct watch_allocation *a, bool older)
{
	place->process = a->process;
	place->kind = a->kind;
	place->function = a->function;
	place->stack = a->stack;
	place->count++;
	place->bytes += a->bytes;
	place->older_count += older;
	place->older_bytes += older ? a->bytes : 0;
	if (!place->oldest_ns || a->time_ns < place->oldest_ns)
		place->oldest_ns = a->time_ns;
	if (a->time_ns > place->newest_ns)
		place->newest_ns = a->time_ns;
}

struct watch_place *watch_places_of(const struct watch_allocation *allocations, size_t n,
                                    uint64_t older_ns, uint64_t now_ns, size_t *n_places)
{
	struct watch_allocation *list = xcalloc(n + 1, sizeof(*list));
	struct watch_place *places = xcalloc(n + 1, sizeof(*places));
	size_t count = 0;

	if (n)
		memcpy(list, allocations, n * sizeof(*list));
	qsort(list, n, sizeof(*list), by_place);
	for (size_t i = 0; i < n; i++) {
		count += !i || by_place(&list[i], &list[i - 1]);
		add_to_place(&places[count - 1], &list[i], list[i].time_ns + older_ns <= now_ns);
	}
	free(list);
	qsort(places, count, sizeof(*places), most_bytes);
	*n_places = count;
	return places;
}
