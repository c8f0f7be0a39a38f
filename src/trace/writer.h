/* SPDX-License-Identifier: MIT */
/*
 * The consumer that writes trace files (docs/trace-format.md).
 *
 * What is whole on disk stays readable whatever happens: chunks are written one after the other,
 * at least one a second, and one that could not be written to its end is cut off again.
 * EVENT_CALL_BEGIN is not kept: the call itself comes later and says the same.
 */
#ifndef CUSCOPE_TRACE_WRITER_H
#define CUSCOPE_TRACE_WRITER_H

#include "trace/event.h"

/*
 * Writes to `fd`, a regular file that is empty, which stays the caller's; `name` is for sentences
 * and is kept, not copied.
 */
struct consumer *writer_new(int fd, const char *name);

struct writer_stats {
	uint64_t events, calls; /* taken so far */
	uint64_t bytes;         /* written so far */
};

void writer_stats(const struct consumer *writer, struct writer_stats *stats);

#endif
