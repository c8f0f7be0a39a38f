/* SPDX-License-Identifier: MIT */
/*
 * /tmp/perf-PID.map: what programs that make code at run time write for perf, one line a function:
 * begin and length in hexadecimal, and a name. Python does with -X perf, so do Java agents, node
 * and LuaJIT. The file is the program's own and is believed in nothing but names.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct budget;
struct perf_map;

/*
 * Opens the map of a running process, in its mount namespace and under the pid that it has for
 * itself. Only a regular file of the process's user or of root is taken, as perf does. NULL where
 * there is none. It stays readable when the process has ended. What is read of it is taken from the
 * budget (may be NULL), whose owner is the pid.
 */
struct perf_map *perf_map_open(pid_t pid, struct budget *budget);
struct perf_map *perf_map_open_file(int fd); /* takes the descriptor; for tests */
void perf_map_free(struct perf_map *map);    /* NULL is allowed */

/*
 * The function at an address, and how far into it that is; NULL where none is known. The first 8
 * MiB of the file are read, and a function for each 32 bytes of them. They are read again when the
 * file has grown and what was read does not tell. Nothing is read where the budget has no room. Of
 * functions that overlap the one written last is meant. The name, cut where trace files cut them
 * (trace/format.h), belongs to the map, until the next call. *late: the file was not read, since
 * that takes too much time.
 */
const char *perf_map_find(struct perf_map *map, uint64_t address, uint64_t *into_bytes, bool *late);
