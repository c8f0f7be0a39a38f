/* SPDX-License-Identifier: MIT */
/*
 * Whether a request to a loopback address means this machine. A page in somebody's browser can have
 * its own name point to 127.0.0.1 (DNS rebinding), and would then read what is served here. Its
 * requests say that name as their Host.
 */
#ifndef CUSCOPE_NODE_HTTP_HOST_H
#define CUSCOPE_NODE_HTTP_HOST_H

#include <stdbool.h>

/* `host`: the header, NULL where there is none, as browsers always send one. */
bool http_host_is_loopback(const char *host);

#endif
