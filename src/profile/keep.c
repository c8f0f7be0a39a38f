// SPDX-License-Identifier: MIT
/*
 * What a profile keeps: arrays that grow within a bound of bytes, and tables that find an element
 * of such an array by its content. Elements are named by their place, and never go.
 */
#include "profile/profile_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/xalloc.h"

#define FIRST_ELEMENTS 64
#define PIECE_BYTES    (16 * 1024)

/* ---- arrays -------------------------------------------------------------------------------- */

static bool take_room(struct keep_room *room, size_t bytes)
{
	if (bytes > room->most - room->used)
		return false;
	room->used += bytes;
	return true;
}

/* By half, not by two: what is reserved and not used counts against the bound. */
void *keep_grow(struct keep_room *room, void *array, size_t n, size_t *cap, size_t element)
{
	size_t want = *cap ? *cap + *cap / 2 : FIRST_ELEMENTS;

	if (n < *cap)
		return array;
	if (n >= KEEP_NONE - 1 || !take_room(room, (want - *cap) * element))
		return NULL;
	*cap = want;
	return xrealloc(array, want * element);
}

/* ---- places by content --------------------------------------------------------------------- */

struct keep_slot {
	uint32_t hash, at; /* at: KEEP_NONE where the slot is free */
};

void keep_index_free(struct keep_index *index)
{
	free(index->slots);
	memset(index, 0, sizeof(*index));
}

static struct keep_slot *free_slot(const struct keep_index *index, uint32_t hash)
{
	size_t at = hash & (index->cap - 1);

	while (index->slots[at].at != KEEP_NONE)
		at = (at + 1) & (index->cap - 1);
	return &index->slots[at];
}

/* Room for one more element; false where there is none. To be asked before keep_index_slot(). */
static bool keep_index_grow(struct keep_room *room, struct keep_index *index)
{
	size_t cap = index->cap ? 2 * index->cap : 2 * FIRST_ELEMENTS;
	struct keep_index larger = { .n = index->n, .cap = cap, .fit = index->fit };

	if (4 * (index->n + 1) <= 3 * index->cap)
		return true;
	if (!take_room(room, (cap - index->cap) * sizeof(*index->slots)))
		return false;
	larger.slots = xmalloc(cap * sizeof(*larger.slots));
	memset(larger.slots, 0xff, cap * sizeof(*larger.slots));
	for (size_t i = 0; i < index->cap; i++) {
		if (index->slots[i].at != KEEP_NONE)
			*free_slot(&larger, index->slots[i].hash) = index->slots[i];
	}
	free(index->slots);
	*index = larger;
	return true;
}

/*
 * The slot of what equals `key`, by same(data, place, key); a free one if nothing does, which the
 * caller takes with keep_index_take().
 */
static struct keep_slot *keep_index_slot(const struct keep_index *index, uint32_t hash,
                                         bool (*same)(const void *data, uint32_t at,
                                                      const void *key),
                                         const void *data, const void *key)
{
	size_t at = hash & (index->cap - 1);

	for (;; at = (at + 1) & (index->cap - 1)) {
		struct keep_slot *slot = &index->slots[at];

		if (slot->at == KEEP_NONE || (slot->hash == hash && same(data, slot->at, key)))
			return slot;
	}
}

static void keep_index_take(struct keep_index *index, struct keep_slot *slot, uint32_t hash,
                            uint32_t at)
{
	*slot = (struct keep_slot){ hash, at };
	index->n++;
}

/* An array, while an element of it is looked for. */
struct keep_look {
	const char *all;
	size_t bytes, key;
};

static bool same_bytes(const void *data, uint32_t at, const void *key)
{
	const struct keep_look *look = data;

	return !memcmp(look->all + at * look->bytes, key, look->key);
}

uint32_t keep_element(struct keep_room *room, struct keep_index *index, void *array, size_t *n,
                      const void *element, size_t bytes, size_t key)
{
	struct keep_look look = { .bytes = bytes, .key = key };
	uint32_t hash = hash_bytes(element, key);
	struct keep_slot *slot;
	char *all;

	memcpy(&all, array, sizeof(all));
	look.all = all;
	if (!keep_index_grow(room, index))
		return KEEP_NONE;
	slot = keep_index_slot(index, hash, same_bytes, &look, element);
	if (slot->at != KEEP_NONE)
		return slot->at;
	all = keep_grow(room, all, *n, &index->fit, bytes);
	if (!all)
		return KEEP_NONE;
	memcpy(array, &all, sizeof(all));
	memcpy(all + *n * bytes, element, bytes); /* with its padding */
	keep_index_take(index, slot, hash, (uint32_t)*n);
	return (uint32_t)(*n)++;
}

/* ---- texts --------------------------------------------------------------------------------- */

struct keep_piece {
	struct keep_piece *next;
	size_t used, size;
	char data[];
};

struct text_key {
	const char *text;
	size_t len;
};

void keep_texts_free(struct keep_texts *texts)
{
	while (texts->pieces) {
		struct keep_piece *piece = texts->pieces;

		texts->pieces = piece->next;
		free(piece);
	}
	keep_index_free(&texts->index);
	free(texts->texts);
	memset(texts, 0, sizeof(*texts));
}

static bool same_text(const void *data, uint32_t at, const void *key)
{
	const struct keep_texts *texts = data;
	const struct text_key *wanted = key;

	return !strncmp(texts->texts[at], wanted->text, wanted->len) &&
	       !texts->texts[at][wanted->len];
}

static char *text_memory(struct keep_room *room, struct keep_texts *texts, size_t bytes)
{
	struct keep_piece *piece = texts->pieces;
	char *memory;

	if (!piece || piece->size - piece->used < bytes) {
		if (!take_room(room, PIECE_BYTES))
			return NULL;
		piece = xmalloc(PIECE_BYTES);
		*piece = (struct keep_piece){ texts->pieces, 0, PIECE_BYTES - sizeof(*piece) };
		texts->pieces = piece;
	}
	memory = piece->data + piece->used;
	piece->used += bytes;
	return memory;
}

static uint32_t add_text(struct keep_room *room, struct keep_texts *texts, const char *text,
                         size_t len)
{
	struct text_key key = { text, len };
	uint32_t hash = hash_bytes(text, len);
	struct keep_slot *slot;
	const char **grown;
	char *copy;

	if (!keep_index_grow(room, &texts->index))
		return KEEP_NONE;
	slot = keep_index_slot(&texts->index, hash, same_text, texts, &key);
	if (slot->at != KEEP_NONE)
		return slot->at;
	grown = keep_grow(room, texts->texts, texts->n, &texts->cap, sizeof(*texts->texts));
	if (!grown)
		return KEEP_NONE;
	texts->texts = grown;
	copy = text_memory(room, texts, len + 1);
	if (!copy)
		return KEEP_NONE;
	memcpy(copy, text, len);
	copy[len] = '\0';
	texts->texts[texts->n] = copy;
	keep_index_take(&texts->index, slot, hash, (uint32_t)texts->n);
	return (uint32_t)texts->n++;
}

/* No character of it is cut in two. */
static size_t whole_characters(const char *text, size_t most)
{
	size_t len = most;

	while (len && most - len < 4 && ((unsigned char)text[len] & 0xc0) == 0x80)
		len--;
	return len;
}

uint32_t keep_text(struct keep_room *room, struct keep_texts *texts, const char *text)
{
	static const char dots[] = "...";
	size_t len = text ? strnlen(text, KEEP_TEXT_MOST + 1) : 0;
	char cut[KEEP_TEXT_MOST + 1];

	if (!texts->n && add_text(room, texts, "", 0) == KEEP_NONE)
		return KEEP_NONE;
	if (len <= KEEP_TEXT_MOST)
		return add_text(room, texts, text ? text : "", len);
	len = whole_characters(text, KEEP_TEXT_MOST - sizeof(dots) + 1);
	memcpy(cut, text, len);
	memcpy(cut + len, dots, sizeof(dots));
	return add_text(room, texts, cut, len + sizeof(dots) - 1);
}
