/* SPDX-License-Identifier: MIT */
/* /proc/PID/maps, line by line: the executable mappings of a process. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct mapping {
	uint64_t start, end;
	uint64_t offset; /* in the file */
	dev_t dev;
	uint64_t inode;
	bool readable, writable, executable, private;
	bool deleted;     /* the path ends in " (deleted)", taken off here */
	const char *path; /* points into the line that was parsed; "" for anonymous memory */
};

/* Parses one line in place (it is written to). Returns 0, or -EINVAL for what is no maps line. */
int mapping_parse(char *line, struct mapping *mapping);

/*
 * Calls `each` for every executable mapping of a file (inode not 0) of `pid`; stops when it
 * returns non-zero and returns that. A negative errno with a sentence when the file cannot be read.
 */
int maps_each(pid_t pid, int (*each)(const struct mapping *mapping, void *data), void *data,
              struct err *err);

/* The same with executable memory that is no file's as well: code made at run time, "[vdso]". */
int maps_each_code(pid_t pid, int (*each)(const struct mapping *mapping, void *data), void *data,
                   struct err *err);

/*
 * The same, for as long as it takes no more of a processor than `most_ns` (0: without a limit).
 * -ETIME where it would: the mappings until then were passed on.
 */
int maps_each_code_within(pid_t pid, uint64_t most_ns,
                          int (*each)(const struct mapping *mapping, void *data), void *data,
                          struct err *err);

/*
 * Opens what is mapped, whatever its path means by now: /proc/PID/map_files/START-END first (right
 * in every mount namespace and for deleted files), then /proc/PID/root/PATH if its inode still
 * agrees. Returns a descriptor that the caller closes, or a negative errno with a sentence. It is
 * read by helper_pread and asked by file_stat, see helper.h.
 */
int mapping_open(pid_t pid, const struct mapping *mapping, struct err *err);

/*
 * For helper.h, which calls them where it costs nothing that they hang. With `is_path` (may be
 * NULL), a file that somebody serves is opened by O_PATH only, and *is_path is set. `by_map` is
 * what map_files said: a descriptor or a negative errno. path_open_here opens a regular file by a
 * path under the root of the process. Of MAPPING_OF_NAMESPACE that is the root of this mount
 * namespace, for a helper alone.
 */
#define MAPPING_OF_NAMESPACE 0
int mapping_open_here(pid_t pid, const struct mapping *mapping, bool *is_path, int *by_map);
int path_open_here(pid_t pid, const char *path, bool *is_path);

/*
 * mapping_open of a process that is gone, by the mapping's path from the root of its parent, of
 * this process, or of this mount namespace: the path of what is in a chroot begins outside of it.
 * `person` (person.h) is who ran it. No sentence.
 */
int mapping_open_gone(pid_t parent, uint64_t person, const struct mapping *mapping);
