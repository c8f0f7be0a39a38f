/* SPDX-License-Identifier: MIT */
/* CUDA libraries in the usual places of this machine, for commands that were given no process. */
#ifndef CUSCOPE_PROBE_LIBRARIES_H
#define CUSCOPE_PROBE_LIBRARIES_H

/*
 * Calls `each` with the real path of every libcuda and libcudart found, once each; stops when it
 * returns non-zero and returns that. Root goes by ways that are root's only (roots_path.h).
 */
int libraries_each(int (*each)(void *data, const char *path), void *data);

/* The same without the folders of users, by ways that are root's only, whoever asks. */
int libraries_system_each(int (*each)(void *data, const char *path), void *data);

/* The same for libcupti, which GPU times are had by. */
int libraries_cupti_each(int (*each)(void *data, const char *path), void *data);

/* The same for libraries of any kind whose name begins with this one, which may be a pattern. */
int libraries_named_each(const char *name, int (*each)(void *data, const char *path), void *data);

#endif
