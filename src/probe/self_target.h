/* SPDX-License-Identifier: MIT */
/*
 * A function of cuscope itself to try probes on: features of the kernel are found, and the cost of
 * a hit is measured, by hooking it.
 */
#ifndef CUSCOPE_PROBE_SELF_TARGET_H
#define CUSCOPE_PROBE_SELF_TARGET_H

#include <stdint.h>

#include "base/err.h"

/* Does nothing. Its first instruction is one that kernels emulate (push on x86-64). */
long self_target(long a, long b);

/* Its offset in /proc/self/exe, 0 if the program headers do not tell. */
uint64_t self_target_offset(void);

#endif
