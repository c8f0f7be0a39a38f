/* SPDX-License-Identifier: MIT */
/*
 * Files that cuscope makes, in folders that others may write as well. A name that a user gives is
 * looked up once, and its folder is held by descriptor. Its last part is never followed if it is a
 * link, and never opened for writing if it is a file that exists. What is written is a new file,
 * which takes the place of an old one by rename, so that a link, hard or symbolic, that somebody
 * put there leads nowhere.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* What runs do is nobody else's business. Under sudo a new file belongs to who called that. */
#define FILE_MODE 0600

struct new_file_options {
	bool replace; /* what has the name already, a file or a link */
	bool grows;   /* is there from its begin, not only when it is whole */
	bool regular; /* no pipe or device will do */
	mode_t mode;  /* 0: FILE_MODE; the umask does not count */
};

struct new_file {        /* all 0: none */
	char *path;      /* as the user gave it */
	FILE *out;       /* of a regular file its descriptor can be read, too */
	char *name;      /* in the folder; NULL: a pipe or a device, written to as it is */
	char *temporary; /* its name there until it takes the other; NULL: none, or no more */
	int folder;      /* -1: none */
	bool replace, placed;
	bool begun; /* new_file_place() was called */
};

/*
 * "-" and /dev/stdout, /dev/stderr, /dev/fd/N are descriptors that are open, pipes and devices are
 * opened as they are. -EEXIST where a file is there and is not to be replaced. Nothing that exists
 * is changed before new_file_place() or new_file_keep().
 */
int new_file_open(struct new_file *file, const char *path, const struct new_file_options *options,
                  struct err *err);

/*
 * One without a name, where base/secure_file.h makes those: it is gone when it ends, kept or not.
 * `called` is for sentences.
 */
int new_file_unnamed(struct new_file *file, const char *called, struct err *err);

/* A file that grows takes its name, if it has not yet: what is written from now on is worth it. */
int new_file_place(struct new_file *file, struct err *err);

/* Each ends it: in its place, or without a trace. */
int new_file_keep(struct new_file *file, struct err *err);
void new_file_drop(struct new_file *file);

/*
 * Writes `text` to a new file that takes the place of what is there: a reader sees the old file or
 * the new one, never half of it. What is no regular file is written to as it is. 0 or a negative
 * errno.
 */
int file_replace(const char *path, mode_t mode, const struct buf *text, struct err *err);

/* Whether that would work, as far as can be told before there is something to write. */
int file_can_replace(const char *path, bool replace, struct err *err);

/* ---- for files and folders that are made in other ways ------------------------------------------
 */

/* A name that nobody can know beforehand, for what has not taken its place yet; the caller frees
 * it. NULL: there are no random numbers. */
char *file_temporary_name(void);

/* Gives what was made for us alone its mode (0: FILE_MODE), and to who called sudo. */
void file_hand_over(int fd, mode_t mode);

/* The first line of a small file of /proc or /sys, as far as it fits, without its newline. False,
 * with "": it cannot be read, or is empty. */
bool file_line(const char *path, char *line, size_t size);
