/* SPDX-License-Identifier: MIT */
/*
 * How long work waited for the GPU: from the end of the call that asked for it to its begin, as
 * cuda_kern_exec reckons it. What began before its call had returned did not wait. Known for the
 * calls that were seen and not too long ago. Private to src/output.
 */
#ifndef CUSCOPE_OUTPUT_DELAYS_H
#define CUSCOPE_OUTPUT_DELAYS_H

#include "trace/event.h"

struct delays;

/* sink->unjoined is set to how much work there was whose call had to be forgotten for want
 * of room. */
struct sink;
struct delays *delays_new(struct sink *sink);
void delays_free(struct delays *delays);

/* To be told of every event, before delay_of() is asked for it. */
void delays_event(struct delays *delays, const struct event *event);

struct delay {
	bool queued; /* it waited */
	uint64_t queue_ns;
	uint32_t tid; /* of the thread that asked for it; 0: not known */
};

/* Of an EVENT_ACTIVITY; of a wait (EVENT_RANGE) the thread only. */
struct delay delay_of(struct delays *delays, const struct event *event);

#endif
