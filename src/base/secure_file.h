/* SPDX-License-Identifier: MIT */
/*
 * Reading small files that decide what a program does, or that are secret. Who may write such
 * a file, or exchange it, commands a program that runs as root.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#define SECURE_FILE_MOST 65536

enum secure_file {
	SECURE_FILE_PUBLIC, /* nobody else may write it */
	SECURE_FILE_SECRET, /* nor read it */
};

/*
 * Appends what is in a regular file of root's, or of who runs this, in a folder in which nobody
 * else can exchange it. The same goes for each link that leads there. 0 or a negative errno with a
 * sentence.
 */
int secure_file_read(const char *path, enum secure_file kind, struct buf *out, struct err *err);

/* ---- temporary ----------------------------------------------------------------------------- */

/* Files without a name, for what is too long to be held in memory. */

/*
 * A file descriptor to read and write, of a file that goes when it is closed: in TMPDIR, or else in
 * /var/tmp, since /tmp is often memory. A negative errno and a sentence on failure.
 */
int temporary_open(struct err *err);
