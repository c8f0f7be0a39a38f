/* SPDX-License-Identifier: MIT */
/* Work that nobody waits for. */
#ifndef CUSCOPE_BASE_LATER_H
#define CUSCOPE_BASE_LATER_H

#include <stddef.h>

/*
 * Closes a descriptor on a thread of its own: taking a probe away waits for an RCU grace period,
 * 30 to 250 ms, which need not be part of a start.
 */
void close_later(int fd);

/* Closes them all at once, so that they wait for the same grace period, and returns after that. */
void close_together(const int *fds, size_t count);

#endif
