/* SPDX-License-Identifier: MIT */
/*
 * The names of the ranges of one event chunk, each once, numbered from 1; 0 is none. They go into a
 * chunk of their own before it, and are forgotten after it. A program can have any number of them
 * ("step 41", "step 42"), and what is thrown away with its events takes no room.
 */
#ifndef CUSCOPE_TRACE_NAMES_H
#define CUSCOPE_TRACE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct names;

struct names *names_new(void);
void names_free(struct names *names);

/* The number of a text, which is given one if it is new. NULL is 0. */
uint32_t names_number(struct names *names, const char *text);

size_t names_bytes(const struct names *names);

/* Their payload, and begins anew. */
void names_take(struct names *names, struct buf *raw);

/* ---- reading ------------------------------------------------------------------------------- */

/* Takes a payload in place of the names before; none with 0 bytes. False where it is damaged. */
bool names_read(struct names *names, const uint8_t *raw, size_t bytes);

/* Valid until the next names_read(). NULL for 0 and for numbers that are not there. */
const char *names_text(const struct names *names, uint64_t number);

#endif
