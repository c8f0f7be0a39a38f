/* SPDX-License-Identifier: MIT */
/*
 * Maps in this process that look like those of the eBPF programs, so that the programs' code of
 * sums (bpf/fold*.h) runs here as well: see fold_inside.c. A map has room for so many entries.
 * Where that is used up, one that is a cache forgets what was asked for the longest ago, and any
 * other refuses.
 */
#ifndef CUSCOPE_CAPTURE_WATCH_FOLD_MAP_H
#define CUSCOPE_CAPTURE_WATCH_FOLD_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/watch/ledger.h"

struct fold_map_entry;

struct fold_map {
	size_t key_bytes, value_bytes, room;
	bool cache;
	struct ledger *ledger; /* its rows are the entries; else NULL */
	const char *array;     /* values by a key of 32 bits, which stay as they are; else NULL */
	struct fold_map_entry *entries;
};

void fold_map_free(struct fold_map *map); /* the entries */

/* The helpers of eBPF programs that the sums use. */
void *fold_map_lookup(struct fold_map *map, const void *key);
long fold_map_update(struct fold_map *map, const void *key, const void *value, uint64_t flags);
long fold_map_delete(struct fold_map *map, const void *key);

/* Hands out each entry, which may be deleted meanwhile. */
void fold_map_each(struct fold_map *map,
                   void (*each)(void *data, const void *key, const void *value), void *data);

#endif
