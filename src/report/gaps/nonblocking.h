/* SPDX-License-Identifier: MIT */
/*
 * Streams that were created so that they do not wait for the legacy default stream, nor it for
 * them (cudaStreamNonBlocking). One that was created before the trace began is not known as such.
 */
#ifndef CUSCOPE_REPORT_GAPS_NONBLOCKING_H
#define CUSCOPE_REPORT_GAPS_NONBLOCKING_H

#include "trace/event.h"

#define NONBLOCKING_MOST 65536 /* of all processes; further ones are not known */

struct nonblocking;

struct nonblocking *nonblocking_new(void);
void nonblocking_free(struct nonblocking *streams);
void nonblocking_event(struct nonblocking *streams, const struct event *event);

/* Whether a process's stream is one, by its handle. */
bool nonblocking_has(const struct nonblocking *streams, uint32_t process, uint64_t stream);

#endif
