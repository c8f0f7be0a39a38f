/* SPDX-License-Identifier: MIT */
/*
 * What cuscope changes in its own process and a command inherits by fork and exec: limits, the
 * signal mask, the fate of SIGPIPE, SIGCHLD and SIGXFSZ. Saved before anything is changed and
 * restored in the child, so that the command finds what it would find without cuscope (nohup's
 * ignored SIGHUP, too).
 */
#ifndef CUSCOPE_PROBE_ORIGIN_H
#define CUSCOPE_PROBE_ORIGIN_H

#include <signal.h>
#include <sys/resource.h>

struct origin {
	struct rlimit files, locked_memory;
	struct sigaction pipe, child, file_size;
	sigset_t mask;
};

void origin_save(struct origin *origin);

/* In the child, between fork and exec; async-signal-safe. */
void origin_restore(const struct origin *origin);

#endif
