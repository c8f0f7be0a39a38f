/* SPDX-License-Identifier: MIT */
/*
 * Reading small files that decide what a program does, or that are secret. Who may write such
 * a file, or exchange it, commands a program that runs as root.
 */
#ifndef CUSCOPE_BASE_SECURE_FILE_H
#define CUSCOPE_BASE_SECURE_FILE_H

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

#endif
