/* SPDX-License-Identifier: MIT */
/*
 * The library that goes into targets. Its bytes are a part of this program; a command that is
 * started needs a path besides, since CUDA_INJECTION64_PATH wants one.
 *
 * That path lives on in the environment of what the command starts, root's processes among them,
 * after cuscope has ended. So it is one that only root can ever change (base/guarded.h), and that
 * stays:
 * - the file beside the program or in ../lib/cuscope, if it is the same library;
 * - else one in /run/cuscope, or in /var/lib/cuscope if /run is mounted noexec. It lies in a folder
 *   that is named by its build id, is made once, and kept.
 *
 * Never in /tmp or TMPDIR, where anybody can make again what was removed. Never by a descriptor's
 * path, /proc/PID/fd/N or /proc/self/fd/N: the pid comes to mean another process, and the number
 * another file. Where there is no such place the library is refused.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* The bytes that are part of this program. */
const void *agent_library_bytes(size_t *bytes);

struct agent_library;

/* A path at which any user's process can load it, also after agent_library_free. */
int agent_library_open(struct agent_library **library, struct err *err);
const char *agent_library_path(const struct agent_library *library);
void agent_library_free(struct agent_library *library); /* NULL is fine */

/* Whether the file at `path` is this library, stripped or not, or by its name another cuscope's. */
bool agent_library_is_at(const char *path);
