/* SPDX-License-Identifier: MIT */
/*
 * The sockets between cuscope and its agents: SOCK_SEQPACKET, so that a message is whole, and its
 * end tells of the other's end. Nothing here waits.
 *
 * The listener has a name in the abstract namespace: no file to leave behind, no folder that
 * another user must be able to enter. The name is random, but no secret (/proc/net/unix shows it):
 * who connects is told by the kernel, and whether it is welcome is asked. Such names belong to a
 * network namespace: a command that enters another one is not heard.
 */
#ifndef CUSCOPE_AGENT_AGENT_CHANNEL_H
#define CUSCOPE_AGENT_AGENT_CHANNEL_H

#include <sys/types.h>

#include "agent/wire.h"
#include "base/err.h"

#define CHANNEL_NAME 64

/* Returns a listening socket that the caller closes and its name, or a negative errno. */
int channel_listen(char name[CHANNEL_NAME], struct err *err);

/* The next that connected, and its process as our pid namespace counts; -EAGAIN: there is none. */
int channel_accept(int listener, pid_t *pid);

/* With up to two descriptors. 0, or a negative errno; -EAGAIN: the other side has not read yet. */
int channel_send(int socket, const struct agent_message *message, const int *fds, int n_fds);

/* 1: a message; -EAGAIN: none; -EPIPE: the other side is gone; -EBADMSG: not of its length.
 * Descriptors that come along are thrown away by the kernel. */
int channel_receive(int socket, struct agent_message *message);

#endif
