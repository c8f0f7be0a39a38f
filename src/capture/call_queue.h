/* SPDX-License-Identifier: MIT */
/*
 * Records that did not come through the programs' rings, and wait for their place in time: what
 * agents tell of calls. One queue for each process, and all of them together are one in order of
 * time. A record stays where it was put until it is released, so nobody needs a copy of it.
 *
 * A queue holds what an agent's ring did, and what agents say of time is not believed: so there is
 * a limit for each process and one for all. What is beyond is refused, and counted.
 */
#ifndef CUSCOPE_CAPTURE_CALL_QUEUE_H
#define CUSCOPE_CAPTURE_CALL_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/wire.h"

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

#endif
