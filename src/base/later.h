/* SPDX-License-Identifier: MIT */
/* Work that nobody waits for. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Closes a descriptor on a thread of its own. Taking a probe away waits for an RCU grace period, 30
 * to 250 ms, which need not be part of a start. The end of the program waits for those threads.
 */
void close_later(int fd);

/* Closes them all at once, so that they wait for the same grace period, and returns after that. */
void close_together(const int *fds, size_t count);

/*
 * For the end of a program that holds hundreds of perf events, which the kernel takes away one
 * after the other: 80 s for 1000 of them on Linux 6.18; or of one with probes in 1,500 processes,
 * each of which takes it 20 ms. A child keeps them until this process has ended, and ends then, so
 * that nobody waits. Of the files only they stay open in it, and deleted ones, which may have been
 * a target's: to free them can take a minute.
 */
void close_events_at_leisure(void);

/*
 * The same for some events, which are closed here. Nothing they tell may be waited for any more.
 * This process may go on, as it does for a command that outlives its trace: after 3 s the child
 * ends all the same, since until then whoever runs into the events pays for them.
 */
void close_at_leisure(const int *fds, size_t count);

/*
 * Whether this process is to end at once: what takes long asks between its parts, and leaves the
 * rest. A signal says so (last_resort.h). On any thread.
 */
bool end_is_near(void);
void end_set_near(bool near);
