/* SPDX-License-Identifier: MIT */
/*
 * How long work waited for the GPU: from the end of the call that asked for it to its begin, as
 * cuda_kern_exec reckons it. What began before its call had returned did not wait. Known where the
 * sink's window knows the call: the format sets sink->joins. Private to src/output.
 */
#ifndef CUSCOPE_OUTPUT_DELAYS_H
#define CUSCOPE_OUTPUT_DELAYS_H

#include "output/format.h"

struct delay {
	bool queued; /* it waited */
	uint64_t queue_ns;
	uint64_t early_ns; /* it seems to have begun before its call: the clocks differ */
	uint32_t tid;      /* of the thread that asked for it; 0: not known */
};

/* Of the EVENT_ACTIVITY that is under way; of a wait (EVENT_RANGE) the thread only. */
struct delay delay_of(const struct sink *sink, const struct event *event);

#endif
