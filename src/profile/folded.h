/* SPDX-License-Identifier: MIT */
/*
 * Folded stacks: "main;step;cudaLaunchKernel;[GPU_Kernel]gemm 41000", a line for each stack, which
 * flamegraph.pl, inferno and speedscope read. The number is microseconds, of CPUs and of GPUs
 * alike, so that both have widths that can be compared. Readers take them for samples, and some
 * make one of each: of nanoseconds there would be a thousand times as many.
 */
#pragma once

#include <stdio.h>

#include "base/err.h"
#include "profile/profile.h"

/*
 * Folded stacks as a profile, to compare another one with: what profile_write() made, or any tool
 * that writes "main;step 41000". Frames have names only, those of Python without their lines, which
 * move when a program is changed. How whole stacks are is not in such a file.
 */

/*
 * Adds what `in` has. Time in "[GPU_Kernel]gemm" and the like is of GPUs, in "[off_CPU]" of blocked
 * threads, all else of CPUs. `name` is for sentences. 0, or -EBADMSG for what is no such file, or
 * another negative errno.
 */
int profile_read_folded(struct profile *profile, FILE *in, const char *name, struct err *err);
