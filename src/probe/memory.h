/* SPDX-License-Identifier: MIT */
/* Reading another process's memory, by helper.h: a target that does not answer is given up. */
#ifndef CUSCOPE_PROBE_MEMORY_H
#define CUSCOPE_PROBE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* All of it (64 KiB at most) or false. */
bool memory_read(pid_t pid, uint64_t address, void *to, size_t bytes);

/* A string of less than `size` bytes with its NUL; false when it is longer or cannot be read. */
bool memory_read_string(pid_t pid, uint64_t address, char *to, size_t size);

#endif
