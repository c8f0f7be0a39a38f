/* SPDX-License-Identifier: MIT */
/*
 * A glob on names of processes and programs, as fnmatch has it in the C locale. Its form is one
 * that the eBPF programs can run as well, so that the kernel and user space agree on who is a
 * target.
 *
 * The glob is a row of positions, each a set of bytes; a star lets the position that it stands
 * before wait. A name is matched by a set of bits, one for each position that may be next.
 */
#pragma once

#include <stdbool.h>

#include "bpf/wire.h"

/* Returns false where the glob has more positions than a name can have bytes: it matches none. */
bool name_glob_compile(const char *text, struct wire_glob *glob);

/* Of a name longer than 255 bytes, which no file has, only those are looked at. */
bool name_glob_matches(const struct wire_glob *glob, const char *name);
