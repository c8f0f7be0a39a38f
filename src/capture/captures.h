/* SPDX-License-Identifier: MIT */
/*
 * Which streams are recording into a graph at the moment: a launch on one of them does not run.
 * Capture begins on one stream and spreads to others through events: a stream that waits for an
 * event recorded on a capturing stream joins its capture, until the first stream ends it.
 * Source: CUDA programming guide, "Cross-stream Dependencies and Events" of graph capture.
 */
#ifndef CUSCOPE_CAPTURE_CAPTURES_H
#define CUSCOPE_CAPTURE_CAPTURES_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/event.h"

struct captures;

struct captures *captures_new(void);
void captures_free(struct captures *captures);

/* Follows a call that succeeded: capture begin and end, event record and wait. */
void captures_follow(struct captures *captures, uint32_t tgid, uint32_t tid,
                     const struct call *call);

bool captures_stream(const struct captures *captures, uint32_t tgid, uint32_t tid, uint64_t stream);

void captures_forget(struct captures *captures, uint32_t tgid);

#endif
