/* SPDX-License-Identifier: MIT */
/*
 * Hash tables (uthash), by a function that nobody outside can reckon with.
 *
 * Keys are what programs and trace files say: names, handles, addresses. Of a function that is
 * known, as uthash's own are, thousands of keys with one value are made in seconds, and each
 * look-up goes through all of them. So this one has a secret, which is new in each run.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t hash_long(const void *data, size_t bytes);

static inline uint32_t hash_bytes(const void *data, size_t bytes)
{
	return (uint32_t)hash_long(data, bytes);
}

#define HASH_FUNCTION(data, bytes, value) ((value) = hash_bytes((data), (bytes)))

/* uthash gives up growing a table for good when its entries met twice more than they should. This
 * table grows again when a chain has become longer by ten. */
#define uthash_noexpand_fyi(table) ((table)->noexpand = 0)

#include <uthash.h>
