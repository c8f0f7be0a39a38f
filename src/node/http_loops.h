/* SPDX-License-Identifier: MIT */
/*
 * How long loops have not turned: the agent's own, which makes the figures, and the flight
 * recorder's. The server's thread asks at each request, since a loop that hangs tells nothing of
 * itself. Private to the server.
 */
#ifndef CUSCOPE_NODE_HTTP_LOOPS_H
#define CUSCOPE_NODE_HTTP_LOOPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "node/metrics.h"

enum loop { LOOP_AGENT, LOOP_RECORDER, LOOPS };

struct http_loops {
	uint64_t now_ns, turned_ns[LOOPS]; /* CLOCK_MONOTONIC; 0: there is none, or not yet */
};

/* Appends a line for each that has not turned for 5 s. Whether there is one. */
bool http_loops_hang(const struct http_loops *loops, struct buf *out);

/* Appends a gauge for each, which other families may follow. */
void http_loops_write(const struct http_loops *loops, enum metrics_format format, struct buf *out);

#endif
