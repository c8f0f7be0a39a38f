/* SPDX-License-Identifier: MIT */
/*
 * One GET by HTTPS, done by curl(1): the static program needs no library for it, and what speaks
 * with the network is a process without rights. Its token comes by its standard input, which nobody
 * else can read.
 */
#ifndef CUSCOPE_NODE_PROCESS_CURL_H
#define CUSCOPE_NODE_PROCESS_CURL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define PROCESS_CURL_MS   8000
#define PROCESS_CURL_MOST (16u << 20) /* bytes of an answer */

/* What came of it: words for a metric. */
#define PROCESS_CURL_OUTCOMES(X)                                                                   \
	X(READ, "read")                                                                            \
	X(NO_CURL, "no_curl")                                                                      \
	X(NO_FILES, "no_files")                                                                    \
	X(UNREACHABLE, "unreachable")                                                              \
	X(UNTRUSTED, "untrusted")                                                                  \
	X(DENIED, "denied")                                                                        \
	X(TOO_LONG, "too_long")                                                                    \
	X(NOT_UNDERSTOOD, "not_understood")                                                        \
	X(FAILED, "failed")

enum process_curl_outcome {
#define X(name, word) PROCESS_CURL_##name,
	PROCESS_CURL_OUTCOMES(X)
#undef X
		PROCESS_CURL_COUNT
};

const char *process_curl_word(enum process_curl_outcome outcome);

/*
 * Appends the answer. `authority`: certificates in PEM that the server's has to be signed by, or
 * be. *stop is looked at meanwhile.
 */
enum process_curl_outcome process_curl(const char *url, const char *token,
                                       const struct buf *authority, struct buf *answer,
                                       const bool *stop);

/* Whether a text can be a URL of HTTPS, and a token: they stand in a configuration of curl's. */
bool process_curl_is_url(const char *text);
bool process_curl_is_token(const char *text);

#endif
