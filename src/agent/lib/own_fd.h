/* SPDX-License-Identifier: MIT */
/*
 * Descriptors of ours in a process that may close all that it does not know, as daemons do, and
 * open its own under the same numbers. So ours have high numbers; and before one is used or closed
 * it is looked at whether it is what it was.
 */
#ifndef CUSCOPE_AGENT_LIB_OWN_FD_H
#define CUSCOPE_AGENT_LIB_OWN_FD_H

#include <stdbool.h>
#include <stdint.h>

struct own_fd {
	uint64_t device, inode;
};

/* The same under a high number, if there is one; `fd` is then closed. */
int own_fd_move(int fd);

struct own_fd own_fd_of(int fd);
bool own_fd_is(int fd, struct own_fd own);

/* If it is what it was. *fd is -1 afterwards. */
void own_fd_close(int *fd, struct own_fd own);

#endif
