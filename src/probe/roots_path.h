/* SPDX-License-Identifier: MIT */
/*
 * Paths on which every folder and every link is root's, so that they lead where root wants. They
 * are gone part by part. Nothing is looked for in a folder of somebody else, or of a file system
 * that a user serves (FUSE): that could wait for ever.
 */
#ifndef CUSCOPE_PROBE_ROOTS_PATH_H
#define CUSCOPE_PROBE_ROOTS_PATH_H

#include <glob.h>
#include <stdbool.h>
#include <sys/stat.h>

/* Whether root alone can change it. */
bool is_roots(const struct stat *st);

/* A descriptor by path only (O_PATH) of a file or folder of root's, or a negative errno. */
int roots_path_open(const char *path);

/* glob(3) that finds such paths only. What it returns; globfree. */
int roots_path_glob(const char *pattern, glob_t *found);

/* Where a descriptor lies, which the caller frees; NULL: nowhere. */
char *roots_path_real(int fd);

#endif
