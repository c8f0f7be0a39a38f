/* SPDX-License-Identifier: MIT */
/*
 * The sockets between cuscope and its agents: SOCK_SEQPACKET, so that a message is whole, and its
 * end tells of the other's end. Nothing here waits, and nothing is received (agent/wire.h). Where
 * somebody could have sent something all the same, it lies in a socket until that is closed: so
 * such sockets are closed by helper_let_go.
 *
 * The listener has a name in the abstract namespace: no file to leave behind, no folder that
 * another user must be able to enter. The name is random, but no secret (/proc/net/unix shows it):
 * who connects is told by the kernel, and whether it is welcome is asked. Descriptors are refused
 * to who sends them, where the kernel can do that. Such names belong to a network namespace: a
 * command that enters another one is not heard.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "agent/wire.h"
#include "base/err.h"

#define CHANNEL_NAME 64

/* Returns a listening socket that the caller closes and its name, or a negative errno. */
int channel_listen(char name[CHANNEL_NAME], struct err *err);

/* The next that connected, and its process as our pid namespace counts, 0 where that has ended;
 * -EAGAIN: there is none. */
int channel_accept(int listener, pid_t *pid);

/* With up to three descriptors. 0, or a negative errno; -EAGAIN: the other side has not read yet.
 */
int channel_send(int socket, const struct agent_message *message, const int *fds, int n_fds);

/* Whether the other side is gone, or has said that it sends no more. */
bool channel_is_over(int socket);

/*
 * A bell: pair[0] is ours, and nothing can be sent to it; pair[1] goes to the agent. Ours is to be
 * waited for with EPOLLOUT | EPOLLET, and made ready each time that it rings, before what the agent
 * has to tell is looked at. 0, or a negative errno.
 */
int channel_bell(int pair[2]);
void channel_hear_bell(int bell);
