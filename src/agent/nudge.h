/* SPDX-License-Identifier: MIT */
/*
 * Threads that have waited since before anybody looked have no stack that is known: one is taken
 * where a thread stops running. A nudge has a thread do that: it is stopped by ptrace for a moment,
 * in a process of its own, and goes on with its wait. Only waits are nudged that the kernel takes
 * up again where they were (agent/inject_thread.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define NUDGE_MOST 256 /* threads at a time */

struct nudged { /* a process, unless another one has its number by now */
	pid_t pid;
	uint64_t start_time;
	bool done;
};

/* First threads of these processes; waits until that is done, a second at most. Sets `done` and
 * returns how many were nudged: not who is under another tracer, also a moment only. */
size_t nudge_processes(struct nudged *processes, size_t n);
