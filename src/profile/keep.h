/* SPDX-License-Identifier: MIT */
/*
 * What a profile keeps: arrays that grow within a bound of bytes, and tables that find an element
 * of such an array by its content. Elements are named by their place, and never go.
 */
#ifndef CUSCOPE_PROFILE_KEEP_H
#define CUSCOPE_PROFILE_KEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEEP_NONE UINT32_MAX

/* Bytes that all arrays and tables of one profile may take together. */
struct keep_room {
	size_t used, most;
};

/*
 * `array` of `element` bytes each, with room for one more than `n`; *cap is how many fit. NULL
 * where the room does not allow it: then the array is as it was.
 */
void *keep_grow(struct keep_room *room, void *array, size_t n, size_t *cap, size_t element);

struct keep_slot {
	uint32_t hash, at; /* at: KEEP_NONE where the slot is free */
};

/* Places by content. A zeroed one is empty. */
struct keep_index {
	struct keep_slot *slots;
	size_t n, cap; /* cap: a power of two */
};

void keep_index_free(struct keep_index *index);

/* Room for one more element; false where there is none. To be asked before keep_index_slot(). */
bool keep_index_grow(struct keep_room *room, struct keep_index *index);

/*
 * The slot of what equals `key`, by same(data, place, key); a free one if nothing does, which the
 * caller takes with keep_index_take().
 */
struct keep_slot *keep_index_slot(const struct keep_index *index, uint32_t hash,
                                  bool (*same)(const void *data, uint32_t at, const void *key),
                                  const void *data, const void *key);
void keep_index_take(struct keep_index *index, struct keep_slot *slot, uint32_t hash, uint32_t at);

/* ---- texts --------------------------------------------------------------------------------- */

#define KEEP_TEXT_MOST                                                                             \
	4096 /* bytes of a text; what is longer is cut there, and ends with "..."                  \
	      */

/* Each text once. Text 0 is "". */
struct keep_texts {
	struct keep_index index;
	const char **texts;
	size_t n, cap;
	struct keep_piece *pieces; /* of memory that texts lie in, the newest first */
};

void keep_texts_free(struct keep_texts *texts);

/* The number of a text; NULL is "". KEEP_NONE where there is no room. */
uint32_t keep_text(struct keep_room *room, struct keep_texts *texts, const char *text);

#endif
