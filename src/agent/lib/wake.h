/* SPDX-License-Identifier: MIT */
/*
 * Wakes the agent's thread, which waits in poll. A pair of sockets and no eventfd: all of these
 * show as one file, so that one of the program's under the number of ours would pass for it. And
 * none that a program has closed is written to.
 */
#ifndef CUSCOPE_AGENT_LIB_WAKE_H
#define CUSCOPE_AGENT_LIB_WAKE_H

#include <stdbool.h>

bool wake_open(void);
void wake_close(void); /* what is still ours */

/* From any thread, and while it is closed. Where it is not woken it looks by itself, a little
 * later. */
void wake_up(void);

/* For the thread itself: what to poll, or -1 where the program has closed it; and that it is awake.
 */
int wake_fd(void);
void wake_done(void);

#endif
