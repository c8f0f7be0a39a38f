/* SPDX-License-Identifier: MIT */
/*
 * A timeline as text:
 *
 *                      0.0 ms       5.0 ms       10.0 ms
 *                      |            |            |
 *   train (pid 4242)
 *     4242             IIIIIMM....TTTkkkkSSSSSSSSSSSSSS    61.2 %
 *
 * then what each stage took, the longest calls, and all calls with bars where they are few.
 */
#ifndef CUSCOPE_OUTPUT_TIMELINE_TIMELINE_TEXT_H
#define CUSCOPE_OUTPUT_TIMELINE_TIMELINE_TEXT_H

#include <stdbool.h>

#include "output/timeline/timeline.h"
#include "base/buf.h"

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

#endif
