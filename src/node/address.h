/* SPDX-License-Identifier: MIT */
/* An address to listen on: "127.0.0.1:9407", "[::1]:9407". Names are not looked up. */
#ifndef CUSCOPE_NODE_ADDRESS_H
#define CUSCOPE_NODE_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

#include "base/err.h"

struct address {
	struct sockaddr_storage at;
	socklen_t bytes;
};

bool address_parse(const char *text, struct address *address);

/* Whether only programs of this machine can reach it. */
bool address_is_loopback(const struct address *address);

/* A socket that listens there, or a negative errno with a sentence. `text` is for that. */
int address_listen(const struct address *address, const char *text, struct err *err);

/*
 * Whether a request to a loopback address means this machine. A page in somebody's browser can have
 * its own name point to 127.0.0.1 (DNS rebinding), and would then read what is served here. Its
 * requests say that name as their Host. `host`: the header, NULL where there is none, as browsers
 * always send one.
 */
bool http_host_is_loopback(const char *host);

#endif
