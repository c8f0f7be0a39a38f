/* SPDX-License-Identifier: MIT */
/* Files that are there whole or not at all. */
#ifndef CUSCOPE_BASE_FILE_H
#define CUSCOPE_BASE_FILE_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdio.h>

/*
 * Writes `text` to a new file beside `path` and renames it: a reader sees the old file or the
 * new one, never half of it. A path that is no regular file (a pipe, /dev/stdout) is written to
 * as it is. 0 or a negative errno.
 */
int file_replace(const char *path, const struct buf *text, struct err *err);

/*
 * Opens for writing what was found to be no regular file. -EEXIST if it is one by now: in a folder
 * of somebody else's a pipe may be exchanged for a link to a file that only we may write to.
 */
int file_open_special(const char *path);

/* Whether that would work, as far as can be told before there is something to write. */
int file_can_replace(const char *path, struct err *err);

/*
 * The same for what is too long to be held in memory: a file that is written beside its place and
 * takes it when it is whole. `fresh`: not if something is there already.
 */
struct new_file {
	char *path, *temporary; /* temporary NULL: no regular file, written to as it is */
	FILE *out;              /* NULL with `named`: whoever writes opens new_file_path() */
};

int new_file_open(struct new_file *file, const char *path, bool fresh, bool named, struct err *err);
const char *new_file_path(const struct new_file *file); /* of what is being written */

/* Each ends it: in its place, or without a trace. */
int new_file_keep(struct new_file *file, struct err *err);
void new_file_drop(struct new_file *file);

#endif
