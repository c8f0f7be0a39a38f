// SPDX-License-Identifier: MIT
#include "output/pairs.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

/*
 * Correlations count up, and every call has one: one in a place each, they stay until so many calls
 * of the process were made. A stream holds about a thousand launches before it blocks.
 */
#define PLACES (1u << 16)

struct pairs {
	char *places;
	size_t bytes; /* of one */
	void (*leave)(void *data, const struct half *half);
	void *data;
};

struct pairs *pairs_new(size_t bytes, void (*leave)(void *data, const struct half *half),
                        void *data)
{
	struct pairs *pairs = xcalloc(1, sizeof(*pairs));

	pairs->places = xcalloc(PLACES, bytes);
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
	uint64_t index = (correlation + process * 0x9e3779b1ull) % PLACES;

	return (struct half *)(pairs->places + index * pairs->bytes);
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
	for (size_t i = 0; i < PLACES; i++) {
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
