// SPDX-License-Identifier: MIT
/* Keeps the slices of a row nested, as Perfetto wants them. */
#include <string.h>

#include "output/perfetto/perfetto.h"

/* More than this is written as it is: the call around it may never return. */
#define HELD_MOST (64 * 1024)

void nest_flush(struct nest *nest, struct buf *out)
{
	if (nest->held.len)
		buf_add(out, nest->held.data, nest->held.len);
	buf_reset(&nest->held);
	nest->n = 0;
}

void nest_free(struct nest *nest)
{
	buf_free(&nest->held);
}

/* Where those begin that are inside of this one. */
static size_t inner_parts(struct nest *nest, uint64_t begin_ns, uint32_t depth)
{
	size_t at = nest->held.len;

	while (nest->n) {
		const struct nest_part *last = &nest->parts[nest->n - 1];

		if (last->depth <= depth || last->begin_ns < begin_ns)
			break;
		at = last->at;
		nest->n--;
	}
	return at;
}

static void insert(struct buf *into, size_t at, const char *data, size_t len)
{
	buf_reserve(into, len);
	memmove(into->data + at + len, into->data + at, into->len - at);
	memcpy(into->data + at, data, len);
	into->len += len;
}

void nest_add(struct nest *nest, uint64_t begin_ns, uint32_t depth, const struct buf *packets,
              size_t begin_len, struct buf *out)
{
	size_t at;

	if (!depth && !nest->n) { /* nearly all */
		buf_add(out, packets->data, packets->len);
		return;
	}
	at = inner_parts(nest, begin_ns, depth);
	insert(&nest->held, at, packets->data, begin_len);
	buf_add(&nest->held, packets->data + begin_len, packets->len - begin_len);
	nest->parts[nest->n++] = (struct nest_part){ at, begin_ns, depth };
	if (!depth || nest->n == NEST_PARTS || nest->held.len > HELD_MOST)
		nest_flush(nest, out);
}
