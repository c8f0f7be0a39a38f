/* SPDX-License-Identifier: MIT */
/* The pieces of a timeline's text. Private to it. */
#ifndef CUSCOPE_OUTPUT_TIMELINE_TIMELINE_CHART_H
#define CUSCOPE_OUTPUT_TIMELINE_TIMELINE_CHART_H

#include "output/timeline/timeline_text.h"

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

#endif
