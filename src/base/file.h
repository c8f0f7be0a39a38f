/* SPDX-License-Identifier: MIT */
/* Files that are there whole or not at all. */
#ifndef CUSCOPE_BASE_FILE_H
#define CUSCOPE_BASE_FILE_H

#include "base/buf.h"
#include "base/err.h"

/*
 * Writes `text` to a new file beside `path` and renames it: a reader sees the old file or the
 * new one, never half of it. A path that is no regular file (a pipe, /dev/stdout) is written to
 * as it is. 0 or a negative errno.
 */
int file_replace(const char *path, const struct buf *text, struct err *err);

/* Whether that would work, as far as can be told before there is something to write. */
int file_can_replace(const char *path, struct err *err);

#endif
