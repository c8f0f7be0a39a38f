/* SPDX-License-Identifier: MIT */
/*
 * Signals that end a run, on a thread of its own: it passes them on to the loop, and where that
 * does not end within a second of the second one, it ends the process by that signal. What the loop
 * hangs in does not matter: a computation, a lock, a file that takes no more. The kernel takes the
 * hooks away, who has diverted functions sees that cuscope is gone, and a command that is held runs
 * on.
 */
#ifndef CUSCOPE_CAPTURE_LAST_RESORT_H
#define CUSCOPE_CAPTURE_LAST_RESORT_H

#include <signal.h>

#include "base/err.h"

struct last_resort;

/*
 * Of the signals in `all`, which the caller has blocked, those in `ends` end a run. `before`: what
 * is to be done before the process ends; it must not wait for locks. 0, or a negative errno.
 */
int last_resort_new(const sigset_t *all, const sigset_t *ends, void (*before)(void *data),
                    void *data, struct last_resort **out, struct err *err);

/* Readable when there are signals, each a struct signalfd_siginfo; it does not block. */
int last_resort_fd(const struct last_resort *resort);

/* Ends the thread. */
void last_resort_free(struct last_resort *resort);

#endif
