/* SPDX-License-Identifier: MIT */
/*
 * A probe that waits for a process, while the whole machine waits for the probe.
 *
 * The kernel puts a probe into one process after the other that has the file mapped, and nobody can
 * fork meanwhile. It needs the lock of each one's mappings for that. munmap() of pages of a FUSE
 * file that were written to has this lock until the file's server has taken them, and any user can
 * be that server. Until it answers there is no new process on the machine, so none by which root
 * could end that. It is the same where probes are taken away, at the end of a killed cuscope, too.
 *
 * So a process looks once a second whether a thread of this one stands still there. Then it asks
 * every process for its memory, which waits for the lock. Five seconds later, where some have not
 * answered since, and a thread of theirs waits for a file, it ends the connections of FUSE on which
 * an answer is waited for: those of these processes' users, and, where that was not all, after ten
 * those of all users but root. It is in the way of none of this that others wait, however many, or
 * are in an exec that is never over, which is not told either. Who served them has to mount them
 * anew: that is why it is not sooner.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Begins to look, until this process has ended. To be called before there is much in memory, or
 * open; does nothing where somebody looks already. 0, or a negative errno with a sentence. */
int frozen_watch(struct err *err);

/* A sentence on a connection that was ended, once each; false: there is none. */
bool frozen_news(char *text, size_t size);
