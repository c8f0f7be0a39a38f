/* SPDX-License-Identifier: MIT */
/*
 * A consumer in front of another: of the calls it passes on those that are asked for, and says when
 * they are enough. What processes and threads there are is passed on always; what ran on a GPU only
 * where calls are not chosen by how they ended.
 */
#ifndef CUSCOPE_TRACE_CHOSEN_H
#define CUSCOPE_TRACE_CHOSEN_H

#include "trace/event.h"

struct chosen_options {
	bool failed;              /* only calls that returned an error */
	uint64_t min_duration_ns; /* only what took this long; 0: all */
	uint64_t max_calls;       /* calls that are passed on, and those within them; 0: no limit */
};

/* `next` is not owned: it is freed by the caller, after this. */
struct consumer *chosen_new(struct consumer *next, const struct chosen_options *options);

/* Whether as many calls as were asked for have been passed on. */
bool chosen_enough(const struct consumer *chosen);

#endif
