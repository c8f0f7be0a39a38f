/* SPDX-License-Identifier: MIT */
/*
 * The writer's side of definitions. What events point at gets a number when it is first met, and a
 * record that goes before the event chunk that uses it.
 */
#pragma once

#include "base/buf.h"
#include "trace/codec.h"
#include "trace/event.h"

struct definer;

struct definer *definer_new(void);
void definer_free(struct definer *definer);

/* The numbers of what the event points at. Adds records for what is new, or has a new name. */
void define_objects(struct definer *definer, const struct event *event, struct event_ids *ids);

/*
 * Adds what became known since of frames that are defined (stack.h), until there are as many bytes
 * of records. Whether there is more of it.
 */
bool define_parts(struct definer *definer, size_t bytes);

/* An EVENT_PROCESS or EVENT_THREAD: they are told also to who reads only a part of the file. */
void define_event(struct definer *definer, const struct event *event, const struct event_ids *ids);

size_t definer_bytes(const struct definer *definer); /* of records that wait to be taken */

/* Moves the records that wait to `raw`. Returns how many. */
uint32_t definer_take(struct definer *definer, struct buf *raw);

/* ---- records ------------------------------------------------------------------------------- */

/* Of definitions and runs alike: a tag, the length of the body, the body. */
void record_add(struct buf *out, uint32_t tag, const struct buf *body);
void record_varint(struct buf *body, uint64_t value);
void record_text(struct buf *body, const char *text); /* its length, its bytes; NULL: as "" */
