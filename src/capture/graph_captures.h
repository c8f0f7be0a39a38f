/* SPDX-License-Identifier: MIT */
/*
 * Which streams are recording into a graph at the moment: a launch on one of them does not run.
 * Capture begins on one stream and spreads to others through events. A stream that waits for an
 * event recorded on a capturing stream joins its capture, until the first stream ends it. Source:
 * CUDA programming guide, "Cross-stream Dependencies and Events" of graph capture.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/budget.h"
#include "trace/event.h"

struct graph_captures;

/* What targets capture is of the budget of each (base/budget.h; kept, may be NULL). */
struct graph_captures *graph_captures_new(struct budget *budget);
void graph_captures_free(struct graph_captures *captures);

/* Follows a call that succeeded: capture begin and end, event record and wait. */
void graph_captures_follow(struct graph_captures *captures, uint32_t tgid, uint32_t tid,
                           const struct call *call);

bool graph_captures_stream(const struct graph_captures *captures, uint32_t tgid, uint32_t tid,
                           uint64_t stream);

/* The process has ended; in the time that its own captures take. */
void graph_captures_forget(struct graph_captures *captures, uint32_t tgid);
