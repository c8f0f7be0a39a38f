/* SPDX-License-Identifier: MIT */
/*
 * What of an event lies in a part of a trace, where times are added up: work on a GPU, and
 * stretches in which a thread was blocked. A sum of many stretches has no place in time and is left
 * whole, and so is a sample of a CPU, which is a moment that stands for the time between two.
 */
#ifndef CUSCOPE_TRACE_CUT_H
#define CUSCOPE_TRACE_CUT_H

#include "trace/event.h"
#include "trace/stack.h"

struct cut_event {
	struct event event;
	union {
		struct activity activity;
		struct sample sample;
	};
};

/* When it began; of what has no length, its time. */
uint64_t cut_begin_ns(const struct event *event);

/* What to pass on: the event, or what is made of it in *cut. NULL: nothing of it is in the part. */
const struct event *cut_to_part(const struct event *event, uint64_t from_ns, uint64_t to_ns,
                                struct cut_event *cut);

#endif
