/* SPDX-License-Identifier: MIT */
/*
 * Text by id, made when an id is first seen: what the lines of a process, a function or a kernel
 * have in common. Private to src/output.
 */
#ifndef CUSCOPE_OUTPUT_FRAGMENTS_H
#define CUSCOPE_OUTPUT_FRAGMENTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Zeroed: empty. */
struct fragments {
	struct buf *text;
	size_t n;
};

/* The text of `id`, empty where it still has to be made. Until the next call. */
struct buf *fragment(struct fragments *fragments, uint32_t id);

void fragments_free(struct fragments *fragments);

#endif
