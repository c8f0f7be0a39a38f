/* SPDX-License-Identifier: MIT */
/*
 * Whose socket is at the other end of a TCP connection within this network namespace: SO_PEERCRED
 * is not for TCP, but the kernel tells by sock_diag(7).
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* A socket to ask by, or a negative errno. */
int peer_open(void);

/*
 * 0; -ENOENT: nobody is known to have it; or another negative errno. Waits for nobody. A socket is
 * somebody's from when a process has made or accepted it until that has closed it. Before and
 * after, kernels up to 6.16 say that it is root's, and nobody is believed to.
 */
int peer_user(int diag, int fd, uid_t *user);

/* The same of who would get a connection to this port of 127.0.0.1, before there is one. */
int peer_listener(int diag, uint16_t port, uid_t *user);
