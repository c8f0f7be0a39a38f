/* SPDX-License-Identifier: MIT */
/* The page at /: what is served, for a person. Private to the server. */
#ifndef CUSCOPE_NODE_HTTP_PAGE_H
#define CUSCOPE_NODE_HTTP_PAGE_H

#include "base/buf.h"
#include "node/metrics.h"

/* `metrics` NULL: there are none yet. */
void http_page(const struct metrics *metrics, uint64_t age_ns, struct buf *out);

#endif
