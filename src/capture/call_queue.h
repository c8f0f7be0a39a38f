/* SPDX-License-Identifier: MIT */
/*
 * Records that did not come through the programs' rings, and wait for their place in time: what
 * agents tell of calls. One queue for each process, in about the order of time.
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

/* The first record of all, NULL for none, and on to the next: for order_add_source. */
const struct wire_head *call_queue_peek(void *queue, size_t *bytes);
void call_queue_advance(void *queue);

/* A process ended: what waits of it is still handed out. */
void call_queue_forget(struct call_queue *queue, uint32_t pid);

uint64_t call_queue_refused(const struct call_queue *queue); /* records */

#endif
