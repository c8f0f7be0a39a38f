// SPDX-License-Identifier: MIT
#include "account/keyed.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "base/hash.h"
#include "base/vec.h"

#define KEYED_SLOTS 64 /* at first */

/* The slot of the key, or the free one for it. */
static struct keyed_slot *keyed_find(const struct keyed *keyed, uint32_t hash, const void *key)
{
	size_t at = hash & (keyed->n_slots - 1);
	const char *row;

	for (;; at = (at + 1) & (keyed->n_slots - 1)) {
		struct keyed_slot *slot = &keyed->slots[at];

		if (!slot->row)
			return slot;
		if (slot->hash != hash)
			continue;
		row = keyed_at(keyed, slot->row - 1);
		__builtin_prefetch(row + 64, 1); /* the caller writes to all of it */
		if (!memcmp(row, key, keyed->key_bytes))
			return slot;
	}
}

/* Of a row that has none. */
static void keyed_place(struct keyed *keyed, struct keyed_slot slot)
{
	size_t at = slot.hash & (keyed->n_slots - 1);

	while (keyed->slots[at].row)
		at = (at + 1) & (keyed->n_slots - 1);
	keyed->slots[at] = slot;
}

static void keyed_grow(struct keyed *keyed)
{
	struct keyed_slot *before = keyed->slots;
	size_t n = keyed->n_slots;

	keyed->n_slots = n ? 2 * n : KEYED_SLOTS;
	keyed->slots = xcalloc(keyed->n_slots, sizeof(*keyed->slots));
	for (size_t i = 0; i < n; i++)
		if (before[i].row)
			keyed_place(keyed, before[i]);
	free(before);
}

void *keyed_row(struct keyed *keyed, const void *key, size_t most)
{
	struct keyed_slot *slot;
	uint32_t hash;
	char *row;

	if (keyed->n && !memcmp(keyed_at(keyed, keyed->last), key, keyed->key_bytes))
		return keyed_at(keyed, keyed->last);
	hash = hash_bytes(key, keyed->key_bytes);
	if (2 * keyed->n >= keyed->n_slots)
		keyed_grow(keyed);
	slot = keyed_find(keyed, hash, key);
	if (slot->row) {
		keyed->last = slot->row - 1;
		return keyed_at(keyed, keyed->last);
	}
	if (keyed->n >= most)
		return NULL;
	keyed->rows = vec_room(keyed->rows, keyed->n, keyed->row_bytes);
	keyed->last = keyed->n;
	row = keyed_at(keyed, keyed->n++);
	memset(row, 0, keyed->row_bytes);
	memcpy(row, key, keyed->key_bytes);
	*slot = (struct keyed_slot){ hash, (uint32_t)keyed->n };
	return row;
}

void *keyed_row_of(struct keyed *keyed, struct keyed_last *last, uint32_t id, const void *key)
{
	uint32_t *number = BY_ID(last->row, last->n, id);
	void *row = *number ? keyed_at(keyed, *number - 1) : NULL;

	if (row && !memcmp(row, key, keyed->key_bytes))
		return row;
	row = keyed_row(keyed, key, SIZE_MAX);
	*number = (uint32_t)keyed_number(keyed, row) + 1;
	return row;
}

void keyed_keep(struct keyed *keyed, size_t n)
{
	memset(keyed->slots, 0, keyed->n_slots * sizeof(*keyed->slots));
	keyed->n = n;
	keyed->last = 0;
	for (size_t i = 0; i < n; i++)
		keyed_place(keyed,
		            (struct keyed_slot){ hash_bytes(keyed_at(keyed, i), keyed->key_bytes),
		                                 (uint32_t)i + 1 });
}

void keyed_empty(struct keyed *keyed)
{
	keyed_free(keyed);
	keyed->rows = NULL;
	keyed->slots = NULL;
	keyed->n = keyed->n_slots = keyed->last = 0;
}

void keyed_free(struct keyed *keyed)
{
	free(keyed->rows);
	free(keyed->slots);
}
