/* SPDX-License-Identifier: MIT */
/* The socket to cuscope, and the messages on it (agent/wire.h). */
#ifndef CUSCOPE_AGENT_LIB_CHANNEL_H
#define CUSCOPE_AGENT_LIB_CHANNEL_H

#include "agent/wire.h"

/* By AGENT_ENV's value, "ABI:NAME". A descriptor, or a negative errno. */
int channel_connect(const char *address);

#define CHANNEL_FDS 3 /* with hello: the memfd, the bell, libcupti */

/*
 * The next message: 1; 0: none within `timeout_ms` (-1: waits); negative: the other side is gone,
 * or speaks another language. Descriptors that come with it are put into fds, -1 where there is
 * none.
 */
int channel_receive(int socket, int timeout_ms, struct agent_message *message,
                    int fds[CHANNEL_FDS]);

/* That something in struct agent_shared changed. */
void channel_ring(int bell);

#endif
