/* SPDX-License-Identifier: MIT */
/*
 * Output formats: consumers that write events as text to a stream. One row of a table each, so
 * that --format, the ending of -o FILE and --help come from the same place.
 */
#ifndef CUSCOPE_OUTPUT_SINK_H
#define CUSCOPE_OUTPUT_SINK_H

#include <stdbool.h>
#include <stdio.h>

#include "trace/event.h"

struct sink_options {
	FILE *out;                /* not closed by the sink; its write errors end the trace */
	bool color;               /* ANSI colours */
	bool verbose;             /* table: nested calls too */
	bool begin_end;           /* jsonl: B and E lines instead of one X */
	bool failed_only;         /* --failed */
	uint64_t min_duration_ns; /* --min-duration; calls without an end are left out when > 0 */
	uint64_t max_events;      /* --max-events; 0: no limit. After it sink_done() is true. */
	size_t width;             /* columns of the terminal, 0: do not cut lines */
};

struct sink_format {
	const char *name;   /* "table" */
	const char *ending; /* ".jsonl"; NULL: none */
	const char *help;   /* half a line */
	struct consumer *(*create)(const struct sink_options *options);
};

extern const struct sink_format sink_formats[]; /* ends with a NULL name */

const struct sink_format *sink_format_by_name(const char *name);
const struct sink_format *sink_format_by_ending(const char *path);

/* Whether --max-events calls were written. Only for consumers made by a sink_format. */
bool sink_done(const struct consumer *sink);

/*
 * What a call did, in words, as the table's DETAILS column shows it:
 * "size=1.00 MiB -> 0x7f12c0000000", "H2D 4.00 KiB async stream=0x55d0",
 * "size=1.00 TiB = cudaErrorMemoryAllocation (2)".
 */
struct buf;
void describe_call(const struct call *call, struct buf *out);

#endif
