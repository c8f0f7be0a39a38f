/* SPDX-License-Identifier: MIT */
/*
 * Records that did not come through the programs' rings, and wait for their place in time: what
 * agents tell of calls. One queue for each process, and all of them together are one in order of
 * time. A record stays where it was put until it is released, so nobody needs a copy of it.
 *
 * A queue holds what an agent's ring did, and what agents say of time is not believed: so there is
 * a limit for each process, its user, and all. What is beyond is refused, and counted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/wire.h"
#include "trace/event.h"

struct call_queue;

struct call_queue *call_queue_new(void);
void call_queue_free(struct call_queue *queue);

/* Adds a copy of a record to its process's queue; false: it was refused. */
bool call_queue_add(struct call_queue *queue, const struct wire_head *record, size_t bytes);

/* For order_add_source: takes the oldest record of all out of the order of time, which may be
 * changed meanwhile; NULL: there is none, or a later one. And given back, its memory is another's.
 */
const struct wire_head *call_queue_take(void *queue, uint64_t until_ns);
void call_queue_release(void *queue, const struct wire_head *record);

/* A process ended: what waits of it is still handed out. */
void call_queue_forget(struct call_queue *queue, uint32_t pid);

uint64_t call_queue_refused(const struct call_queue *queue); /* records */

/* One record of a call, without what went before it: its words, and how it ended. */

/* The words, at the places that api_decode wants them at. */
void call_words_raw(struct api_raw *raw, const struct wire_call *record,
                    const struct capture_plan *plan);

/* What the arguments of a call were decoded from: that of another that has the same need not be. */
struct call_words {
	bool kept, out_valid, unreadable;
	uint64_t word[WIRE_WORDS];
};

/* Of calls of one function, whose plan it is. */
bool call_words_same(const struct call_words *words, const struct wire_call *record,
                     const struct capture_plan *plan);
void call_words_keep(struct call_words *words, const struct wire_call *record,
                     const struct capture_plan *plan);
void call_words_forget(struct call_words *words);

/* Flags, times, depth and result of a call whose function is set. All but its arguments is as if it
 * had been empty. */
void call_words_result(struct call *call, const struct wire_call *record, bool returns_status);

/* Whether the call has done what it is for. */
bool call_took_effect(const struct call *call);
