/* SPDX-License-Identifier: MIT */
/*
 * Recordings by request: POST /record?last=30s asks for one, GET /record?request=N tells what came
 * of it. Both want the token, also on loopback: every user of the machine can connect there, a
 * recording may push an older one out of the spool, and a page in a browser can send a POST to a
 * loopback address, but no bearer token that it does not know. Private to the server.
 */
#ifndef CUSCOPE_NODE_HTTP_RECORD_H
#define CUSCOPE_NODE_HTTP_RECORD_H

#include "base/buf.h"

struct recorder;

/*
 * The status of the answer, whose text is added to `out`. `last`, `request`: what stands in the
 * query; NULL: nothing. `recorder` NULL: there is none. The token was looked at before.
 */
unsigned http_record_ask(struct recorder *recorder, const char *last, struct buf *out);
unsigned http_record_tell(struct recorder *recorder, const char *request, struct buf *out);

#endif
