/* SPDX-License-Identifier: MIT */
/* The page at /: what is served, for a person. Private to the server. */
#ifndef CUSCOPE_NODE_HTTP_PAGE_H
#define CUSCOPE_NODE_HTTP_PAGE_H

#include <stdbool.h>

#include "base/buf.h"
#include "node/metrics.h"

/* `metrics` NULL: there are none yet. */
void http_page(const struct metrics *metrics, uint64_t age_ns, struct buf *out);

/* ---- http record --------------------------------------------------------------------------- */

/*
 * Recordings by request: POST /record?last=30s asks for one, GET /record?request=N tells what came
 * of it. Both want the token, also on loopback: every user of the machine can connect there, a
 * recording may push an older one out of the spool, and a page in a browser can send a POST to a
 * loopback address, but no Authorization header that it does not know.
 */

struct recorder;

/*
 * The status of the answer, whose text is added to `out`. `last`, `request`: what stands in the
 * query; NULL: nothing. `recorder` NULL: there is none. The token was looked at before.
 */
unsigned http_record_ask(struct recorder *recorder, const char *last, struct buf *out);
unsigned http_record_tell(struct recorder *recorder, const char *request, struct buf *out);

/* ---- http host ----------------------------------------------------------------------------- */

/*
 * Whether a request to a loopback address means this machine. A page in somebody's browser can have
 * its own name point to 127.0.0.1 (DNS rebinding), and would then read what is served here. Its
 * requests say that name as their Host.
 */

/* `host`: the header, NULL where there is none, as browsers always send one. */
bool http_host_is_loopback(const char *host);

#endif
