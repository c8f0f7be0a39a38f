/* SPDX-License-Identifier: MIT */
/* CUDA libraries in the usual places of this machine, for commands that were given no process. */
#pragma once

#include <stdbool.h>

/*
 * Calls `each` with the real path of every libcuda and libcudart found, once each; stops when it
 * returns non-zero and returns that. Root goes by ways that are root's only (mounts.h).
 */
int libraries_each(int (*each)(void *data, const char *path), void *data);

/* The same for libcupti, which GPU times are had by. */
int libraries_cupti_each(int (*each)(void *data, const char *path), void *data);

/* The same for libraries of any kind whose name begins with this one, which may be a pattern. */
int libraries_named_each(const char *name, int (*each)(void *data, const char *path), void *data);

/*
 * CUDA libraries that are known before a target maps them: of the loader's cache, of the usual
 * places, of LD_LIBRARY_PATH, of processes that run. Probes belong to files, so with these even
 * the first process is traced from its first call.
 *
 * Only files that root alone can change, in folders that root alone can change. Others are hooked
 * when a target maps them, since probes cost every process that uses the file.
 */

/* Calls `each` with files, opened for it to close, and their paths; some more than once. */
void beforehand_each(bool running, void (*each)(void *data, int fd, const char *path), void *data);

/*
 * Opens the file of a path, if nobody but root can change it or the way to it. A descriptor or a
 * negative errno.
 */
int beforehand_open(const char *path);

/* What the loader's cache says of CUDA libraries, in the text of it; for tests. */
void beforehand_cache(const char *cache, unsigned long bytes,
                      void (*each)(void *data, const char *path), void *data);
