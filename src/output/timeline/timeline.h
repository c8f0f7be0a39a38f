/* SPDX-License-Identifier: MIT */
/*
 * When each thread, and each stream of a GPU, was doing what. Each has a lane, with the time in
 * CUDA by category in each of its columns. Beside that: the sums of the whole window, the longest
 * calls, and, if they are few, the calls themselves. Memory depends on the number of columns and
 * lanes only.
 *
 * Calls made inside others are in the list of calls and in nothing else.
 */
#pragma once

#include <stdbool.h>

#include "analysis/category.h"
#include "analysis/slowest.h"
#include "base/buf.h"

#define TIMELINE_LANES 128 /* told apart; all others share one */
#define TIMELINE_LIST  200 /* calls that are kept: of more, none is */

struct timeline_options {
	uint64_t from_ns, to_ns; /* the window; 0: from the first call, to the last */
	size_t columns;
	uint32_t tid;   /* this thread only; 0: all */
	size_t longest; /* calls in the table of the longest */
};

struct timeline_lane {
	enum { LANE_THREAD, LANE_GPU, LANE_OTHERS } kind;
	const struct process *process; /* NULL for LANE_OTHERS */
	uint32_t tid;                  /* LANE_THREAD */
	char comm[16];                 /* its name, empty where it is not known */
	uint32_t device, stream;       /* LANE_GPU: CUPTI's number of the stream */
	uint64_t calls;                /* or activities, that touch the window */
	uint64_t busy_ns;              /* in them, within the window; of several streams of work */
				       /* at once more than the window's length */
	uint64_t first_ns;
	uint64_t process_first_ns; /* of all lanes of its process */
	double *columns;           /* [column * CATEGORY_COUNT + category], ns */
};

struct timeline_sum {
	uint64_t calls;
	uint64_t ns; /* within the window */
	uint64_t longest_ns;
};

/* What to show. Owned by the timeline. */
struct timeline_view {
	uint64_t from_ns, to_ns; /* the same: nothing happened */
	size_t columns;
	const struct timeline_lane
		*lanes; /* by process, threads before GPUs, each in order of use */
	size_t n_lanes;
	struct timeline_sum calls[CATEGORY_COUNT]; /* of all threads */
	struct timeline_sum gpu[CATEGORY_COUNT];
	uint64_t all_calls;  /* with those made inside others */
	uint64_t unfinished; /* drawn as a point, where they began */
	const struct slow_call *longest;
	size_t n_longest;
	const struct slow_call *list; /* by begin, outer calls before inner; as kept */
	size_t n_list;                /* 0 where there were more than TIMELINE_LIST */
	/* Where there were more: a part of the window that has about TIMELINE_LIST calls at most,
	 * around where most happens. */
	uint64_t narrow_from_ns, narrow_to_ns;
};

/*
 * A call belongs to the window if any of it lies there, but comes when it ends: so what comes after
 * the window is looked at as well. An event so long after its end that hardly a call can reach back
 * to it is answered by -ECANCELED, without a sentence.
 */
struct consumer *timeline_new(const struct timeline_options *options);

/* The end of its counting. */
const struct timeline_view *timeline_view(struct consumer *timeline);

/* ---- timeline text -------------------------------------------------------------------------- */

#define TIMELINE_WIDTH_LEAST 40

struct timeline_text_options {
	size_t width; /* of all of it, TIMELINE_WIDTH_LEAST at least */
	bool color;
	bool utf8;        /* block characters; else letters and signs of ASCII only */
	const char *file; /* its name, for the title */
};

/* Columns of the chart at that width: what a timeline has to be made with. */
size_t timeline_text_columns(size_t width);

void timeline_text(const struct timeline_view *view, const struct run_info *run,
                   const struct timeline_text_options *options, struct buf *out);

/* The pieces of a timeline's text. Private to it. */

struct timeline_printer {
	const struct timeline_view *view;
	const struct run_info *run;
	const struct timeline_text_options *options;
	struct buf *out;
};

/* A time since the trace's begin, in ns; the window may be asked for from before it. */
int64_t timeline_since(const struct timeline_printer *p, uint64_t time_ns);

void timeline_style(const struct timeline_printer *p, const char *code); /* NULL: none */
void timeline_category_style(const struct timeline_printer *p, enum category category);
void timeline_style_off(const struct timeline_printer *p);

/* Axis, lanes and legend. */
void timeline_chart(const struct timeline_printer *p);
