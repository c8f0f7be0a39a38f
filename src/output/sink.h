/* SPDX-License-Identifier: MIT */
/*
 * Output formats: consumers that write events to a stream or a file. One row of a table each, so
 * that --format, the ending of -o FILE, --help, `trace` and `export` know the same ones.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#include "trace/event.h"

struct new_tree;
struct page_pair;

struct sink_options {
	FILE *out;              /* not closed by the sink; its write errors end the trace */
	struct new_tree *tree;  /* of a format of many files, instead of that; the caller's, who */
				/* keeps or drops what was added */
	const char *trace;      /* html: the file that is read, as the user gave it; kept */
	struct page_pair *pair; /* html: it is one of two recordings of a page, see page/page.h; */
				/* NULL: the page is of it alone */
	bool apart; /* html: whoever forks in begin() is given all events in both processes */
	/* html: not 0 once nobody waits for the file any more; NULL: somebody does */
	const volatile sig_atomic_t *stopped;
	uint64_t from_ns, to_ns; /* html: what is read, after the begin; to 0: to the end */
	bool part;               /* html: that, or only some processes; */
	bool chosen;             /* or only some calls */
	const char *path;        /* as the user gave it; kept, not copied; NULL: a stream. A text */
				 /* format compresses where it ends in .gz */
	unsigned rank;       /* chrome, parquet: which of the processes of a distributed program */
	unsigned world_size; /* this is, of how many; 0: not known */
	bool has_rank;       /* the rank is known */
	bool color;          /* ANSI colours */
	bool verbose;        /* table: nested calls too */
	bool begin_end;      /* jsonl: B and E lines instead of one X */
	bool failed_only;    /* --failed */
	uint64_t min_duration_ns; /* --min-duration; calls without an end are left out when > 0 */
	uint64_t max_events;      /* --max-events; 0: no limit. After it sink_done() is true. */
	bool by_name;             /* functions were chosen by name: see event_is_counted() */
	size_t width;             /* columns of the terminal, 0: do not cut lines */
	struct work *work; /* which calls asked for what ran, fed before the sink; NULL: none is */
};

struct sink_format {
	const char *name;       /* "table" */
	const char *endings[3]; /* ".jsonl"; a NULL ends them, the first may be it */
	const char *help;       /* half a line */
	bool binary;            /* no text: not for a terminal */
	bool whole_file; /* not written from front to back: options->out is a regular file, */
			 /* new and readable, and of use only when it has ended */
	bool many_files; /* below options->tree: only of a trace file */
	/* Does not fail: what cannot be opened is told by the consumer's begin(). */
	struct consumer *(*create)(const struct sink_options *options);
};

extern const struct sink_format sink_formats[]; /* ends with a NULL name */

const struct sink_format *sink_format_by_name(const char *name);
const struct sink_format *sink_format_by_ending(const char *path);

struct buf;

/* For sentences: "table, jsonl or log", ".jsonl, .log". */
void sink_format_names(struct buf *out);
void sink_format_endings(struct buf *out);

/*
 * For a format that has to know which calls have work on a GPU before it writes them. That is known
 * only seconds later in the trace. So this consumer is fed with the whole trace first, and then the
 * sink itself, which now knows. NULL for other formats. The sink's; without it, joined is what is
 * still in memory.
 */
struct consumer *sink_scout(struct consumer *sink);

/* After the end: calls and work of a GPU that belong together and were written without saying so,
 * since there was no room to remember so many. */
uint64_t sink_unjoined(const struct consumer *sink);

/* Whether --max-events calls were written. Only for consumers made by a sink_format. */
bool sink_done(const struct consumer *sink);

/* Whether it was written to its end. Only for consumers made by a sink_format. */
bool sink_ended(const struct consumer *sink);

/*
 * What a call did, in words, as the table's DETAILS column shows it:
 * "size=1.00 MiB -> 0x7f12c0000000", "H2D 4.00 KiB async stream=0x55d0",
 * "size=1.00 TiB = cudaErrorMemoryAllocation (2)".
 */
void describe_call(const struct call *call, struct buf *out);
