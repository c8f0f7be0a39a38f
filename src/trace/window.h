/* SPDX-License-Identifier: MIT */
/*
 * The last part of a trace, in memory as packed chunks: what is older, or beyond its bytes, goes.
 * Definitions stay, so that what is left can be read. Private to src/trace.
 *
 * Where it is shared, users have it in equal parts, and what others leave of theirs: who has most
 * of the bytes gives his oldest events, also from between those of others. So what is held of each
 * is all since some moment, and nobody's is pushed out by another's. A chunk is made anew when a
 * quarter of it was given up, and no sooner: so what comes in never waits for many of them.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "trace/chunk.h"
#include "trace/writer.h"

struct window;

/* 0 is no limit. The last event chunk is kept in any case. */
struct window *window_new(uint64_t last_ns, uint64_t last_bytes, bool shared);
void window_free(struct window *window);

/*
 * Of a shared one: an event of so many bytes, in the chunk that is being made, is of the process
 * that has that number in the file. Of an announced one the definitions have what there is to know.
 * True: the events are of so many users that the chunk is to end.
 */
bool window_count(struct window *window, uint32_t process, const struct event *event, size_t bytes);

/* Takes a copy of one chunk, as packer_add() made it. */
void window_add(struct window *window, const struct chunk_head *head, const struct buf *chunk);

/* Drops what is older than the window at that time. */
void window_until(struct window *window, uint64_t now_ns);

/* From now on it is no longer than that. */
void window_shorten(struct window *window, uint64_t last_ns);

/* All that is kept, in its order. */
int window_write(struct window *window, struct file_out *out, struct err *err);

/* When the first of what is kept began; 0: nothing is. */
uint64_t window_begin_ns(const struct window *window);

struct window_figures {
	uint64_t events;
	uint64_t event_bytes;  /* of event chunks, with their names */
	uint64_t held_bytes;   /* of all: definitions never go */
	uint64_t dropped_ns;   /* the latest time of what went from the begin; 0: none */
	uint64_t events_given; /* ever, by users that had most */
};

const struct window_figures *window_figures(const struct window *window);

/* As writer_left_out(). */
size_t window_left_out(const struct window *window, struct writer_left_out *left, size_t most);
