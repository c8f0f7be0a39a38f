/* SPDX-License-Identifier: MIT */
/* The different values of a column, as a dictionary page of Parquet has them. Private to
 * src/output/parquet. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Zeroed: empty. Values stand in the order in which they came. */
struct dictionary {
	struct buf plain; /* the values, as a dictionary page has them */
	uint32_t *begin;  /* of each in it; one more: the end */
	uint32_t *slots;  /* by hash: its number and one; 0: free */
	uint32_t n, n_slots;
};

/*
 * The place of a value, `data` as PLAIN has it, which is added if it is new. False: there is no
 * room, after 2,048 values or 256 KiB.
 */
bool dictionary_place(struct dictionary *dictionary, const void *data, size_t len, uint32_t *place);

/* What it has; it is empty then. */
void dictionary_free(struct dictionary *dictionary);
