/* SPDX-License-Identifier: MIT */
/* The one-function programs of MECHANISM_STUB: see stub.c. */
#ifndef CUSCOPE_PROBE_STUB_H
#define CUSCOPE_PROBE_STUB_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Loads a stub that stores `cookie` in the first word of per-CPU map `scratch_fd` and tail-calls
 * slot 0 of program array `exit_fd`, whose programs are of the same type. Returns a descriptor that
 * the caller closes, or -errno.
 */
int stub_load(bool tracepoint, int scratch_fd, int exit_fd, uint64_t cookie);

#endif
