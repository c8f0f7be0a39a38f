/* SPDX-License-Identifier: MIT */
/*
 * Processes that have written over a function of a file in their own memory: a jump to code of
 * theirs at its entry, as interposers do. The kernel puts a probe's breakpoint over that as over
 * anything else. At the trap it runs the file's instruction, and goes on behind it: in the middle
 * of what was written. Such a process ends by that. A probe is in the file, for all who have it
 * mapped, targets or not. So they are looked for before it is put there.
 *
 * So are those by which probes are not to be had: that have guard pages there, into which the
 * kernel can put no breakpoint, and then puts the probe into no process at all; and those of a user
 * who has the file mapped a thousand times. Each of these takes the kernel some 5 us for each probe, in
 * which nobody on the machine can fork, and a copy of each page with one. Any process can do both.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum patch_kind {
	PATCH_CODE,  /* other code */
	PATCH_GUARD, /* a guard page (MADV_GUARD_INSTALL) */
	PATCH_CROWD, /* too many mappings of the file, wherever the point is */
};

struct patch_point {
	uint64_t entry;       /* of a function, in the file */
	uint32_t probe;       /* bytes from there to the probed instruction */
	uint32_t bytes;       /* and to behind it; PATCH_BYTES at most are looked at */
	pid_t pid;            /* out: a process that forbids a probe there; 0: nobody does */
	enum patch_kind kind; /* out: how it does */
};

#define PATCH_BYTES 96

/*
 * Looks at all processes that have the file mapped, or at those that `wants` says (may be NULL).
 * Those whose maps or memory cannot be read are left out, and so is what a user's processes have
 * mapped of it beyond a bound: 256 MiB of each are looked at, and 64 GiB more of all of them. A
 * breakpoint is no other code, since other probes and debuggers put them there; nor is a jump of
 * five bytes, with nops behind it, that ends before the probe. False: it was `until_ns` of
 * CLOCK_MONOTONIC (0: never) before all were looked at.
 */
bool patched_find(int fd, struct patch_point *points, size_t n,
                  bool (*wants)(void *data, pid_t pid), void *data, uint64_t until_ns);

/*
 * The same of one process, for such jumps alone: calls go their way, and do not come to the probe.
 */
void patched_jumps(int fd, struct patch_point *points, size_t n, pid_t pid);

/* Why calls of such a function are seen in no process: what is said behind the one that has it. */
const char *patch_why(enum patch_kind kind);

#define PATCH_WHY_MAX 160
