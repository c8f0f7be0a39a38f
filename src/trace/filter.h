/* SPDX-License-Identifier: MIT */
/*
 * Which events of a trace are asked for by what they are: failed calls, a function, a kernel, the
 * first so many. Calls, and what ran on the GPU, are chosen; processes, threads and their ends come
 * in any case. What an event has not, it cannot be asked for: a copy has no kernel, and what ran on
 * a GPU is no call, so it has no function and did not fail. Neither is a sample one.
 */
#pragma once

#include "trace/event.h"
#include "trace/stack.h"

/* Zeroed: everything. Texts are kept, not copied. */
struct filter_choice {
	bool failed;          /* calls that returned an error */
	const char *function; /* a glob, as name_match_function() takes it */
	const char *kernel;   /* a glob, as name_match_kernel() takes it */
	uint64_t max_calls; /* and what ran on the GPU until the last of them ended; 0: no limit */
};

struct filter;

bool filter_is_any(const struct filter_choice *choice); /* whether anything is left out */

struct filter *filter_new(const struct filter_choice *choice);
void filter_free(struct filter *filter);

/* Of one file only, in its order: ids and the number of calls so far are remembered. */
bool filter_wants(struct filter *filter, const struct event *event);

/* ---- chosen -------------------------------------------------------------------------------- */

/*
 * A consumer in front of another: of the calls it passes on those that are asked for, and says when
 * they are enough. What processes and threads there are is passed on always; what ran on a GPU only
 * where calls are not chosen by how they ended.
 */

struct chosen_options {
	bool failed;              /* only calls that returned an error */
	uint64_t min_duration_ns; /* only what took this long; 0: all */
	uint64_t max_calls;       /* calls that are passed on, and those within them; 0: no limit */
	uint64_t from_ns;         /* only what ended later, and the run begins then; 0: all */
};

/* `next` is not owned: it is freed by the caller, after this. */
struct consumer *chosen_new(struct consumer *next, const struct chosen_options *options);

/* Whether as many calls as were asked for have been passed on. */
bool chosen_enough(const struct consumer *chosen);

/*
 * What of an event lies in a part of a trace, where times are added up: work on a GPU, and
 * stretches in which a thread was blocked. A sum of many stretches has no place in time and is left
 * whole, and so is a sample of a CPU, which is a moment that stands for the time between two.
 */

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
