/* SPDX-License-Identifier: MIT */
/* Compression in gzip's format, piece by piece. */
#ifndef CUSCOPE_BASE_GZIP_H
#define CUSCOPE_BASE_GZIP_H

#include <stdbool.h>

#include "base/buf.h"

struct gzip;

struct gzip *gzip_new(void);
void gzip_free(struct gzip *gzip); /* NULL is allowed */

/*
 * Compresses `in` and appends what is ready to `out`; with `last` all of it, and the end of the
 * file.
 */
void gzip_add(struct gzip *gzip, const struct buf *in, bool last, struct buf *out);

#endif
