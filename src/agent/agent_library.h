/* SPDX-License-Identifier: MIT */
/*
 * The library that goes into targets. Its bytes are a part of this program; a command that is
 * started needs a path besides, since CUDA_INJECTION64_PATH wants one.
 *
 * That is the file beside the program or in ../lib/cuscope, if it is the same library, else one in
 * a folder made for this run, which goes away at its end. /proc/PID/fd/N of cuscope would need no
 * file; but a command outlives cuscope, the pid is given to somebody else's process, and what that
 * has open as N would be loaded, by root too. A file that is gone is harmless: driver 580 goes on
 * without it (measured: cuInit succeeds, nothing is said), and what had loaded it keeps it mapped.
 */
#ifndef CUSCOPE_AGENT_AGENT_LIBRARY_H
#define CUSCOPE_AGENT_AGENT_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* The bytes that are part of this program. */
const void *agent_library_bytes(size_t *bytes);

struct agent_library;

/* A path at which any user's process can load it, until agent_library_free. */
int agent_library_open(struct agent_library **library, struct err *err);
const char *agent_library_path(const struct agent_library *library);
void agent_library_free(struct agent_library *library); /* NULL is fine */

/* Whether the file at `path` is this library, stripped or not, or by its name another cuscope's. */
bool agent_library_is_at(const char *path);

#endif
