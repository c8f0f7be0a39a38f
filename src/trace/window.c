// SPDX-License-Identifier: MIT
#include "trace/window.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

struct kept_chunk {
	struct kept_chunk *next;
	struct chunk_head head;
	size_t bytes;
	char data[];
};

struct window {
	uint64_t last_ns, last_bytes;
	struct kept_chunk *first, **end;
	size_t n_event_chunks;
	uint64_t event_bytes, events;
	uint64_t held_bytes; /* of all chunks */
};

struct window *window_new(uint64_t last_ns, uint64_t last_bytes)
{
	struct window *window = xcalloc(1, sizeof(*window));

	window->last_ns = last_ns ? last_ns : UINT64_MAX;
	window->last_bytes = last_bytes ? last_bytes : UINT64_MAX;
	window->end = &window->first;
	return window;
}

void window_free(struct window *window)
{
	struct kept_chunk *next;

	if (!window)
		return;
	for (struct kept_chunk *chunk = window->first; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	free(window);
}

/* Takes it out. */
static void drop(struct window *window, struct kept_chunk **at)
{
	struct kept_chunk *chunk = *at;

	*at = chunk->next;
	if (window->end == &chunk->next)
		window->end = at;
	if (chunk->head.type != CHUNK_NAMES)
		window->n_event_chunks--;
	window->event_bytes -= chunk->bytes;
	window->held_bytes -= chunk->bytes;
	window->events -= chunk->head.events;
	free(chunk);
}

/* The first event chunk with its names; the definitions before it stay where they are. */
static void drop_oldest(struct window *window)
{
	struct kept_chunk **at = &window->first;

	while ((*at)->head.type != CHUNK_EVENTS && (*at)->head.type != CHUNK_NAMES)
		at = &(*at)->next;
	if ((*at)->head.type == CHUNK_NAMES)
		drop(window, at);
	drop(window, at);
}

static const struct kept_chunk *oldest(const struct window *window)
{
	const struct kept_chunk *chunk = window->first;

	while (chunk && chunk->head.type != CHUNK_EVENTS)
		chunk = chunk->next;
	return chunk;
}

void window_until(struct window *window, uint64_t now_ns)
{
	uint64_t from_ns = now_ns > window->last_ns ? now_ns - window->last_ns : 0;

	while (window->n_event_chunks > 1 &&
	       (window->event_bytes > window->last_bytes || oldest(window)->head.last_ns < from_ns))
		drop_oldest(window);
}

void window_add(struct window *window, const struct chunk_head *head, const struct buf *chunk)
{
	struct kept_chunk *kept = xmalloc(sizeof(*kept) + chunk->len);

	kept->next = NULL;
	kept->head = *head;
	kept->bytes = chunk->len;
	memcpy(kept->data, chunk->data, chunk->len);
	*window->end = kept;
	window->end = &kept->next;
	window->held_bytes += kept->bytes;
	if (head->type == CHUNK_EVENTS || head->type == CHUNK_NAMES)
		window->event_bytes += kept->bytes;
	if (head->type != CHUNK_EVENTS)
		return;
	window->n_event_chunks++;
	window->events += head->events;
	window_until(window, head->last_ns);
}

uint64_t window_begin_ns(const struct window *window)
{
	uint64_t begin_ns = UINT64_MAX;

	for (const struct kept_chunk *chunk = window->first; chunk; chunk = chunk->next) {
		if (chunk->head.type == CHUNK_EVENTS && chunk->head.begin_ns < begin_ns)
			begin_ns = chunk->head.begin_ns;
	}
	return window->n_event_chunks ? begin_ns : 0;
}

uint64_t window_events(const struct window *window)
{
	return window->events;
}

uint64_t window_held_bytes(const struct window *window)
{
	return window->held_bytes;
}

void window_shorten(struct window *window, uint64_t last_ns)
{
	if (last_ns < window->last_ns)
		window->last_ns = last_ns;
}

uint64_t window_bytes(const struct window *window)
{
	return window->event_bytes;
}

int window_write(const struct window *window, struct file_out *out, struct err *err)
{
	int r = 0;

	for (const struct kept_chunk *chunk = window->first; chunk && !r; chunk = chunk->next)
		r = file_out_chunk(out, chunk->data, chunk->bytes, err);
	return r;
}
