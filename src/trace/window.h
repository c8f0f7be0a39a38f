/* SPDX-License-Identifier: MIT */
/*
 * The last part of a trace, kept in memory as packed chunks. Event chunks that are older, or too
 * many, are dropped. Definitions stay, so that what is left can be read.
 */
#ifndef CUSCOPE_TRACE_WINDOW_H
#define CUSCOPE_TRACE_WINDOW_H

#include "trace/file_out.h"

struct window;

/* 0 is no limit. The last event chunk is kept in any case. */
struct window *window_new(uint64_t last_ns, uint64_t last_bytes);
void window_free(struct window *window);

/* Takes a copy of one chunk, as packer_add() made it. */
void window_add(struct window *window, const struct chunk_head *head, const struct buf *chunk);

/* From now on it is no longer than that. */
void window_shorten(struct window *window, uint64_t last_ns);

/* Drops what is older than the window at that time. */
void window_until(struct window *window, uint64_t now_ns);

uint64_t window_begin_ns(const struct window *window); /* of what is kept; 0: nothing is */
uint64_t window_events(const struct window *window);
uint64_t window_bytes(const struct window *window); /* of event chunks with their names */
uint64_t window_held_bytes(const struct window *window); /* of all: definitions never go */

/* All that is kept, in its order. */
int window_write(const struct window *window, struct file_out *out, struct err *err);

#endif
