/* SPDX-License-Identifier: MIT */
/*
 * Signals that end a run, on a thread of its own: it passes them on to the loop, and where that
 * does not end within a second of the second one, it ends the process by that signal. What the loop
 * hangs in does not matter: a computation, a lock, a file that takes no more. The kernel takes the
 * hooks away when the process has ended, so that nobody waits for that; who has diverted functions
 * sees that cuscope is gone, and a command that is held runs on.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>

#include "base/err.h"

/*
 * Of the signals in `all`, which the caller has blocked, those in `ends` end a run. One that has
 * begun before is over by that. 0, or a negative errno.
 *
 * It begins before anything is attached to, and is there until the process ends: outputs are
 * written to their end after a run, and probes taken away.
 */
int last_resort_begin(const sigset_t *all, const sigset_t *ends, struct err *err);

/* Readable when there are signals, each a struct signalfd_siginfo; it does not block. */
int last_resort_fd(void);

/* Whether one of those that end has come since. */
bool last_resort_asked(void);

/* From here on the first signal is a command's, and not yet the end (end_is_near, base/later.h). */
void last_resort_in_steps(void);

/* Signals are the caller's again, with those that nobody has read. */
void last_resort_end(void);
