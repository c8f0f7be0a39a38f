/* SPDX-License-Identifier: MIT */
/*
 * Tables of entries that are found by a key: uthash's, with what each table would write again. A
 * table is a pointer to entries with a UT_hash_handle called hh, and NULL while it is empty:
 *
 *   struct row {
 *           struct row_key key;
 *           ...
 *           UT_hash_handle hh;
 *   };
 *   struct row *rows = NULL;
 *
 *   row = MAP_FIND(rows, &key);      the entry with that key, or NULL
 *   row = MAP_ADD(rows, key, &key);  a new one, zeroed but for the key; there is none with it
 *   row = MAP_MAKE(rows, key, &key); the one that is there, or a new one
 *   MAP_DROP(rows, row);             out of the table, and freed
 *   MAP_FREE(rows, free);            all of them, each by a function of the caller's
 *
 * Keys are compared by their bytes, so a struct has no padding that nobody sets. A table that
 * targets can fill has a bound: its owner asks HASH_COUNT before MAP_ADD and MAP_MAKE, and counts
 * what is left out. HASH_ITER walks in the order in which entries came.
 */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/xalloc.h"

#define MAP_FIND(map, wanted) MAP_FIND_BYTES(map, wanted, sizeof(*(wanted)))

/* Of tables by text, with or without its end. */
#define MAP_FIND_TEXT(map, text) MAP_FIND_BYTES(map, text, strlen(text))

#define MAP_FIND_BYTES(map, bytes, len)                                                            \
	({                                                                                         \
		__typeof__((map) + 0) map_found;                                                   \
                                                                                                   \
		HASH_FIND(hh, map, bytes, len, map_found);                                         \
		map_found;                                                                         \
	})

#define MAP_ADD(map, member, wanted)                                                               \
	({                                                                                         \
		__typeof__((map) + 0) map_added = xcalloc(1, sizeof(*map_added));                  \
                                                                                                   \
		_Static_assert(sizeof(*(wanted)) == sizeof(map_added->member), "another key");     \
		memcpy(&map_added->member, wanted, sizeof(map_added->member));                     \
		HASH_ADD(hh, map, member, sizeof(map_added->member), map_added);                   \
		map_added;                                                                         \
	})

#define MAP_MAKE(map, member, wanted)                                                              \
	({                                                                                         \
		__typeof__((map) + 0) map_made = MAP_FIND(map, wanted);                            \
                                                                                                   \
		map_made ? map_made : MAP_ADD(map, member, wanted);                                \
	})

#define MAP_DROP(map, entry)                                                                       \
	do {                                                                                       \
		__typeof__(entry) map_dropped = (entry);                                           \
                                                                                                   \
		HASH_DEL(map, map_dropped);                                                        \
		free(map_dropped);                                                                 \
	} while (0)

#define MAP_FREE(map, entry_free)                                                                  \
	do {                                                                                       \
		__typeof__((map) + 0) map_entry, map_next;                                         \
                                                                                                   \
		HASH_ITER (hh, map, map_entry, map_next) {                                         \
			HASH_DEL(map, map_entry);                                                  \
			entry_free(map_entry);                                                     \
		}                                                                                  \
	} while (0)
