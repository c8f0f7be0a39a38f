/* SPDX-License-Identifier: MIT */
/* The events of one event chunk after the other. */
#ifndef CUSCOPE_TRACE_DECODE_H
#define CUSCOPE_TRACE_DECODE_H

#include "trace/chunk.h"
#include "trace/event.h"
#include "trace/objects.h"

struct decoder;

struct decoder *decoder_new(struct objects *objects);
void decoder_free(struct decoder *decoder);

/* The names that the next chunk refers to; none with 0 bytes. False where they are damaged. */
bool decoder_names(struct decoder *decoder, const uint8_t *raw, size_t bytes);

/* The names that the next chunk refers to are damaged: ranges that have one are lost. */
void decoder_lose_names(struct decoder *decoder);

/*
 * Begins a chunk. `raw` is its payload with UNPACK_SPARE readable bytes behind it, and stays until
 * the next. False where it is damaged.
 */
bool decoder_begin(struct decoder *decoder, const struct chunk_head *head, const uint8_t *raw);

enum decoded { DECODED_EVENT, DECODED_NOTHING, DECODED_LOST, DECODED_END, DECODED_DAMAGE };

/*
 * The next event; what it points at is valid until the next call. DECODED_NOTHING: one of a kind
 * that this program does not know. DECODED_LOST: one that refers to what a damaged chunk defined.
 */
enum decoded decoder_next(struct decoder *decoder, struct event *event);

#endif
