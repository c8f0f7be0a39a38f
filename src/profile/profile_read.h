/* SPDX-License-Identifier: MIT */
/*
 * Folded stacks as a profile, to compare another one with: what profile_write() made, or any tool
 * that writes "main;step 41000". Frames have names only, those of Python without their lines, which
 * move when a program is changed. How whole stacks are is not in such a file.
 */
#ifndef CUSCOPE_PROFILE_PROFILE_READ_H
#define CUSCOPE_PROFILE_PROFILE_READ_H

#include <stdio.h>

#include "base/err.h"
#include "profile/profile.h"

/*
 * Adds what `in` has. Time in "[GPU_Kernel]gemm" and the like is of GPUs, in "[off_CPU]" of blocked
 * threads, all else of CPUs. `name` is for sentences. 0, or -EBADMSG for what is no such file, or
 * another negative errno.
 */
int profile_read_folded(struct profile *profile, FILE *in, const char *name, struct err *err);

#endif
