/* SPDX-License-Identifier: MIT */
/* Work that nobody waits for. */
#ifndef CUSCOPE_BASE_LATER_H
#define CUSCOPE_BASE_LATER_H

/*
 * Closes a descriptor on a thread of its own: taking a probe away waits for an RCU grace period,
 * 30 to 250 ms, which need not be part of a start.
 */
void close_later(int fd);

/*
 * For the end of a program that holds hundreds of perf events, which the kernel takes away one
 * after the other, minutes in all (4.5 for 1200 of them on Linux 6.18): a child keeps them until
 * this process has ended, and ends then, so that nobody waits. Of the files only they stay open in
 * it.
 */
void close_events_at_leisure(void);

#endif
