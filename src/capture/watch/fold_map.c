// SPDX-License-Identifier: MIT
#include "capture/watch/fold_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <linux/bpf.h>

#include "base/map.h"
#include "base/xalloc.h"

/* The key lies behind the value. */
struct fold_map_entry {
	UT_hash_handle hh;
	uint64_t value[];
};

static void drop(struct fold_map *map, struct fold_map_entry *entry)
{
	MAP_DROP(map->entries, entry);
}

void fold_map_free(struct fold_map *map)
{
	struct fold_map_entry *entry, *next;

	HASH_ITER (hh, map->entries, entry, next) {
		drop(map, entry);
	}
}

static char *key_of(struct fold_map *map, struct fold_map_entry *entry)
{
	return (char *)entry->value + map->value_bytes;
}

static struct fold_map_entry *find(struct fold_map *map, const void *key)
{
	return MAP_FIND_BYTES(map->entries, key, map->key_bytes);
}

static void *of_array(struct fold_map *map, const void *key)
{
	uint32_t index;

	memcpy(&index, key, sizeof(index));
	return index < map->room ? (void *)(map->array + index * map->value_bytes) : NULL;
}

/* Behind all others: the first is the one that was not asked for in the longest time. */
static void use(struct fold_map *map, struct fold_map_entry *entry)
{
	if (!entry->hh.next)
		return;
	HASH_DEL(map->entries, entry);
	HASH_ADD_KEYPTR(hh, map->entries, key_of(map, entry), map->key_bytes, entry);
}

void *fold_map_lookup(struct fold_map *map, const void *key)
{
	struct fold_map_entry *entry;

	if (map->array)
		return of_array(map, key);
	if (map->ledger)
		return ledger_here(map->ledger, key);
	entry = find(map, key);
	if (entry && map->cache)
		use(map, entry);
	return entry ? entry->value : NULL;
}

static struct fold_map_entry *add(struct fold_map *map, const void *key)
{
	struct fold_map_entry *entry;

	if (HASH_COUNT(map->entries) >= map->room) {
		if (!map->cache)
			return NULL;
		drop(map, map->entries);
	}
	entry = xcalloc(1, sizeof(*entry) + map->value_bytes + map->key_bytes);
	memcpy(key_of(map, entry), key, map->key_bytes);
	HASH_ADD_KEYPTR(hh, map->entries, key_of(map, entry), map->key_bytes, entry);
	return entry;
}

/* Rows of a ledger begin with zeroes. */
long fold_map_update(struct fold_map *map, const void *key, const void *value, uint64_t flags)
{
	struct fold_map_entry *entry;

	if (map->ledger)
		return ledger_make_here(map->ledger, key) ? 0 : -E2BIG;
	entry = find(map, key);
	if (entry && flags == BPF_NOEXIST)
		return -EEXIST;
	if (!entry)
		entry = add(map, key);
	if (!entry)
		return -E2BIG;
	memcpy(entry->value, value, map->value_bytes);
	return 0;
}

long fold_map_delete(struct fold_map *map, const void *key)
{
	struct fold_map_entry *entry = find(map, key);

	if (!entry)
		return -ENOENT;
	drop(map, entry);
	return 0;
}

void fold_map_each(struct fold_map *map,
                   void (*each)(void *data, const void *key, const void *value), void *data)
{
	struct fold_map_entry *entry, *next;

	for (entry = map->entries; entry; entry = next) {
		next = entry->hh.next;
		each(data, key_of(map, entry), entry->value);
	}
}
