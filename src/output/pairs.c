// SPDX-License-Identifier: MIT
#include "output/pairs.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

/*
 * Correlations count up, and every call has one: one in a place each, they stay until so many calls
 * of the process were made. What ran on the GPU may come seconds after its call, in which a busy
 * process makes some hundred thousand calls.
 */
#define PLACES      (1u << 16)
#define PLACES_MOST (1u << 18)

struct pairs {
	char *places;
	size_t n, most;
	size_t bytes; /* of one */
	void (*leave)(void *data, const struct half *half);
	void *data;
};

struct pairs *pairs_new(size_t bytes, void (*leave)(void *data, const struct half *half),
                        void *data)
{
	struct pairs *pairs = xcalloc(1, sizeof(*pairs));

	pairs->n = pairs->most = PLACES;
	pairs->places = xcalloc(pairs->n, bytes);
	pairs->bytes = bytes;
	pairs->leave = leave;
	pairs->data = data;
	return pairs;
}

void pairs_free(struct pairs *pairs)
{
	free(pairs->places);
	free(pairs);
}

/* Processes begin at different places, so that those of a node's ranks seldom meet. */
static struct half *place(const struct pairs *pairs, uint32_t process, uint64_t correlation)
{
	uint64_t index = (correlation + process * 0x9e3779b1ull) % pairs->n;

	return (struct half *)(pairs->places + index * pairs->bytes);
}

/* Two that were apart stay so: the index has one more bit, and its lower bits stay. */
static void grow(struct pairs *pairs)
{
	char *old = pairs->places;
	size_t n = pairs->n;

	pairs->n *= 2;
	pairs->places = xcalloc(pairs->n, pairs->bytes);
	for (size_t i = 0; i < n; i++) {
		const struct half *half = (const struct half *)(old + i * pairs->bytes);

		if (half->correlation)
			memcpy(place(pairs, half->process, half->correlation), half, pairs->bytes);
	}
	free(old);
}

void pairs_expect_late(struct pairs *pairs)
{
	pairs->most = PLACES_MOST;
}

void *pairs_find(struct pairs *pairs, uint32_t process, uint64_t correlation)
{
	struct half *half = place(pairs, process, correlation);

	return half->correlation == correlation && half->process == process ? half : NULL;
}

static void tell(struct pairs *pairs, const struct half *half)
{
	if (half->correlation && !half->met && pairs->leave)
		pairs->leave(pairs->data, half);
}

void *pairs_add(struct pairs *pairs, uint32_t process, uint64_t correlation, bool call)
{
	struct half *half = place(pairs, process, correlation);

	while (half->correlation && !half->met && pairs->n < pairs->most) {
		grow(pairs);
		half = place(pairs, process, correlation);
	}
	tell(pairs, half);
	memset(half, 0, pairs->bytes);
	half->correlation = correlation;
	half->process = process;
	half->call = call;
	return half;
}

void pairs_remove(void *half)
{
	((struct half *)half)->correlation = 0;
}

void pairs_end(struct pairs *pairs)
{
	for (size_t i = 0; i < pairs->n; i++) {
		struct half *half = (struct half *)(pairs->places + i * pairs->bytes);

		tell(pairs, half);
		half->correlation = 0;
	}
}

bool call_asks_for_work(const struct call *call)
{
	switch (call->op) {
	case OP_LAUNCH:
	case OP_GRAPH_LAUNCH:
	case OP_COPY:
	case OP_SET:
		return call->correlation && !(call->flags & (CALL_NESTED | CALL_FAILED |
		                                             CALL_CAPTURED | CALL_UNFINISHED));
	default:
		return false;
	}
}
