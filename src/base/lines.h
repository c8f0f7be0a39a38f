/* SPDX-License-Identifier: MIT */
/*
 * A stream of whole lines, or of whole packets of another kind. They are gathered and written in
 * large pieces; whatever goes wrong, a full disk included, what is in a file afterwards ends with a
 * whole line or packet.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"

struct gzip;

struct lines {
	FILE *out;          /* NULL: whoever appends writes elsewhere, only failures pass */
	const char *what;   /* for sentences: "the trace" */
	bool binary;        /* not lines: packets, which pending always ends with */
	struct buf pending; /* append whole lines here, then call lines_added() */
	struct err failure; /* the first one; after it nothing more is written */
	struct gzip *gzip;  /* NULL: not compressed */
	struct buf packed;  /* with gzip: what is to be written */
	size_t unwritten;   /* of the last write that failed */
	uint64_t written;   /* before they were compressed */
	uint64_t elsewhere; /* in other files, to be copied in the end: lines_full() counts them */
	bool ends_itself;   /* asks lines_full(), and has an end to write after that */
};

/*
 * The stream is not closed later. Its descriptor is written to directly, so nothing else may be
 * left in its buffer between two calls. `what` is kept, not copied.
 */
void lines_init(struct lines *lines, FILE *out, const char *what);

/* From here on gzip's format is written. Call before anything is written. */
void lines_compress(struct lines *lines);

void lines_free(struct lines *lines); /* does not write what is pending */

/* Writes what is pending where that is much; lines_flush() in any case. 0 or a negative errno. */
int lines_added(struct lines *lines, struct err *err);
int lines_flush(struct lines *lines, struct err *err);

/*
 * The program was told to end (SIGTERM): from here on a reader that takes nothing for five seconds
 * is given up, in all streams. A SIGTERM that is blocked and pending says the same. Without either
 * a pager that is not scrolled is waited for.
 */
void lines_hurry(void);

/*
 * From here on a stream of this process fails with -EOVERFLOW where it would become longer than
 * `most` bytes; 0: none does. Who writes what a file tells is told to write anything: a few KiB can
 * stand for terabytes. `why` ends the sentence, and stays.
 */
void lines_bound(uint64_t most, const char *why);
uint64_t lines_most(void); /* UINT64_MAX: there is no bound */

/* Whether the bound was reached; and the sentence on that, with -EOVERFLOW. */
bool lines_full(const struct lines *lines);
int lines_say_full(const struct lines *lines, struct err *err);

/* The last flush. Without it a compressed file is cut short: readable as far as it goes. */
int lines_end(struct lines *lines, struct err *err);
