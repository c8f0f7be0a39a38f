/* SPDX-License-Identifier: MIT */
/* Events into the columns of one event chunk at a time. */
#ifndef CUSCOPE_TRACE_ENCODE_H
#define CUSCOPE_TRACE_ENCODE_H

#include "base/buf.h"
#include "trace/chunk.h"
#include "trace/event.h"

struct encoder;

struct encoder *encoder_new(void);
void encoder_free(struct encoder *encoder);

/* The numbers that the file gives what an event points at; `kernel` is one more, 0 for none. */
struct event_ids {
	uint32_t process, function, kernel;
	uint32_t stack; /* one more as well */
};

/* An event that goes into this chunk: a call that ended, an activity, a range, a sample, an
 * exit. */
void encode_event(struct encoder *encoder, const struct event *event, const struct event_ids *ids);

/* The place in time of an event that is in the definitions. */
void encode_announced(struct encoder *encoder, uint64_t time_ns);

size_t encoder_bytes(const struct encoder *encoder); /* of the columns so far */
uint32_t encoder_events(const struct encoder *encoder);

/*
 * What goes into the chunk of names before this one; to be asked for before the chunk is ended.
 * Nothing where no range has a name.
 */
void encoder_take_names(struct encoder *encoder, struct buf *raw);

/* Ends the chunk: what goes into its payload, and its head but for the sizes. Begins the next. */
void encoder_take(struct encoder *encoder, struct chunk_head *head, struct buf *raw);

#endif
