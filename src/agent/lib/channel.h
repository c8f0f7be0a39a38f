/* SPDX-License-Identifier: MIT */
/* The socket to cuscope, and the messages on it (agent/wire.h). */
#pragma once

#include "agent/wire.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- own fd -------------------------------------------------------------------------------- */

/*
 * Descriptors of ours in a process that may close all that it does not know, as daemons do, and
 * open its own under the same numbers. So ours have high numbers; and before one is used or closed
 * it is looked at whether it is what it was.
 */

struct own_fd {
	uint64_t device, inode;
};

/* The same under a high number, if there is one; `fd` is then closed. */
int own_fd_move(int fd);

/* Makes room for that among the numbers of the process, which can take the kernel a grace period of
 * RCU: 11 to 130 ms were seen. */
void own_fd_room(void);

struct own_fd own_fd_of(int fd);
bool own_fd_is(int fd, struct own_fd own);

/* If it is what it was. *fd is -1 afterwards. */
void own_fd_close(int *fd, struct own_fd own);

/* ---- channel ------------------------------------------------------------------------------- */

/* By AGENT_ENV's value, "ABI:NAME". A descriptor, and what it is; or a negative errno. */
int channel_connect(const char *address, struct own_fd *is);

#define CHANNEL_FDS 3 /* with hello: the memfd, the bell, libcupti */

/*
 * The next message: 1; 0: none within `timeout_ms` (-1: waits); negative: the other side is gone,
 * or speaks another language, or the socket is no longer what it was. Descriptors that come with it
 * are put into fds, -1 where there is none.
 */
int channel_receive(int socket, struct own_fd is, int timeout_ms, struct agent_message *message,
                    int fds[CHANNEL_FDS]);

/* That something in struct agent_shared changed. */
void channel_ring(int bell);

/* ---- wake ---------------------------------------------------------------------------------- */

/*
 * Wakes the agent's thread, which waits in poll. A pair of sockets and no eventfd: all of these
 * show as one file, so that one of the program's under the number of ours would pass for it. And
 * none that a program has closed is written to.
 */

bool wake_open(void);
void wake_close(void); /* what is still ours */

/* From any thread, and while it is closed. Where it is not woken it looks by itself, a little
 * later. */
void wake_up(void);
void wake_forked(void); /* threads that were about to are not here */

/* For the thread itself: what to poll, or -1 where the program has closed it; and that it is awake.
 */
int wake_fd(void);
void wake_done(void);
