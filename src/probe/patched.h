/* SPDX-License-Identifier: MIT */
/*
 * Processes that have written over a function of a file in their own memory: a jump to code of
 * theirs at its entry, as interposers do. The kernel puts a probe's breakpoint over that as over
 * anything else. At the trap it runs the file's instruction, and goes on behind it: in the middle
 * of what was written. Such a process ends by that. A probe is in the file, for all who have it
 * mapped, targets or not. So they are looked for before it is put there.
 *
 * So are those that have guard pages there, which any process can put into its memory. The kernel
 * cannot put a breakpoint into these, and then puts the probe into no process at all.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct patch_point {
	uint64_t entry; /* of a function, in the file */
	uint32_t probe; /* bytes from there to the probed instruction */
	uint32_t bytes; /* and to behind it; PATCH_BYTES at most are looked at */
	pid_t pid;      /* out: a process that has other code there, or that; 0: nobody has */
	bool guarded;   /* out: a guard page */
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
#define PATCHED_WHY                                                                                \
	"has code of its own there, and a probe in this file would end it: hooked in no process"
#define GUARDED_WHY                                                                                \
	"has a guard page there (MADV_GUARD_INSTALL), so the kernel puts this probe into no "      \
	"process"
