/* SPDX-License-Identifier: MIT */
/*
 * What waits for events wait for: which record of the event, and on which stream that was. A wait
 * is a range that names its call (RANGE_SYNC), the call names the event, and the last record of it
 * before the call names a stream by its handle. What a GPU ran tells CUPTI's number of that.
 *
 * All is as far as it is known: there is a bound, and a handle that stands for streams of several
 * contexts (0, the default stream) has no number then.
 */
#pragma once

#include "trace/event.h"

struct event_waits;

struct event_waits *event_waits_new(void);
void event_waits_free(struct event_waits *waits);

/* All events, in their order. */
void event_waits_event(struct event_waits *waits, const struct event *event);

/*
 * The same events come again from the first one on. What is known of streams then is known of all,
 * and waits that were told of before their call are found.
 */
void event_waits_rewind(struct event_waits *waits);

struct event_wait {
	uint64_t event;  /* its number, from 1 in the order in which they came: CUDA has handles */
	uint64_t record; /* correlation of the call that recorded it; 0: not known */
	uint32_t stream; /* CUPTI's number of the one that it was recorded on; 0: not known */
};

/* What the call waits for. False where that is not known. */
bool event_waits_find(const struct event_waits *waits, const struct process *process,
                      uint64_t correlation, struct event_wait *found);
