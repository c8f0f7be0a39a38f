/* SPDX-License-Identifier: MIT */
/* Files without a name, for what is too long to be held in memory. */
#ifndef CUSCOPE_BASE_TEMPORARY_H
#define CUSCOPE_BASE_TEMPORARY_H

#include "base/err.h"

/*
 * A file descriptor to read and write, of a file that goes when it is closed: in TMPDIR, or else in
 * /var/tmp, since /tmp is often memory. A negative errno and a sentence on failure.
 */
int temporary_open(struct err *err);

#endif
