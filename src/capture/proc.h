/* SPDX-License-Identifier: MIT */
/* Which descriptors processes have. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Numbers of a process's descriptors whose links have `name` in them: bytes, or a negative errno.
 * It can have 65,536, each with a path that takes 0.1 ms to make. -ETIME: its user has had his part
 * of the time.
 */
ssize_t proc_descriptors(pid_t pid, const char *name, int32_t *numbers, size_t bytes);

/* Whether a process has a descriptor whose path begins so. */
bool proc_has_open(pid_t pid, const char *path);
