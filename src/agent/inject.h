/* SPDX-License-Identifier: MIT */
/*
 * Into a process that runs: loads a library there and calls a function of it, once, on one of the
 * process's own threads that was waiting in a system call.
 *
 * The work is done by a process of its own, so that cuscope's end, by kill -9 as well, leaves no
 * target half changed, and so that its use of ptrace does not meet the one in src/probe/hold.c.
 */
#ifndef CUSCOPE_AGENT_INJECT_H
#define CUSCOPE_AGENT_INJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct inject;

struct inject_options {
	pid_t pid;
	const void *library; /* a shared object's bytes: they go into a memfd of the target */
	size_t bytes;
	const char *name; /* of the memfd: the same name and bytes there already are used again */
	const char *function; /* int function(int socket): 0, or a negative errno */
	uint64_t limit_ns;    /* for all of it */
};

struct inject_result {
	int socket; /* our end of a SOCK_SEQPACKET pair whose other end the function was given */
	uint64_t stopped_ns; /* the longest time that a thread was stopped, or did our work */
};

/* Begins. Only fails where no process can be made. */
int inject_begin(const struct inject_options *options, struct inject **inject, struct err *err);

int inject_fd(const struct inject *inject); /* readable when it is over */

/*
 * The outcome, to be asked for when inject_fd is readable: 0 and a result whose socket the caller
 * closes, or a negative errno with a sentence: no permission, a static program, no safe point ...
 */
int inject_result(struct inject *inject, struct inject_result *result, struct err *err);

void inject_free(struct inject *inject);

#endif
