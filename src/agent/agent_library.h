/* SPDX-License-Identifier: MIT */
/*
 * The library that goes into targets. Its bytes are a part of this program; a command that is
 * started needs a path besides, since CUDA_INJECTION64_PATH wants one.
 *
 * That path lives on in the environment of what the command starts, root's processes among them,
 * after cuscope has ended. So it is one that only root can ever change (base/guarded.h), and that
 * stays: the file beside the program or in ../lib/cuscope, if it is the same library, else one in
 * /run/cuscope, or where that is mounted noexec in /var/lib/cuscope, in a folder named by its build
 * id, which is made once and kept. Never /tmp nor TMPDIR: what is removed there can be made again
 * by anybody. Nor a descriptor's path, /proc/PID/fd/N or /proc/self/fd/N: the pid, or the number in
 * a child that closes what it does not know, comes to mean something else. Where there is no such
 * place it is refused.
 */
#ifndef CUSCOPE_AGENT_AGENT_LIBRARY_H
#define CUSCOPE_AGENT_AGENT_LIBRARY_H

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

#endif
