/* SPDX-License-Identifier: MIT */
/* The processes below others: what these have started, and what that has. Private to target.c. */
#ifndef CUSCOPE_CAPTURE_TARGET_FAMILY_H
#define CUSCOPE_CAPTURE_TARGET_FAMILY_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * Calls `each` once for every process below one of `pids` that is there, but not for this program
 * and what is below it. It looks again while it finds more: what a process forks before `each` was
 * called for it may come while it is looked for.
 */
int target_each_below(const pid_t *pids, size_t n_pids, int (*each)(void *data, pid_t pid),
                      void *data, struct err *err);

#endif
