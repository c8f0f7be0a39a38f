// SPDX-License-Identifier: MIT
#include "output/parquet/parquet_dictionary.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/xalloc.h"

#define DICTIONARY_MOST 2048u
#define DICTIONARY_TEXT (256u << 10) /* bytes */

void dictionary_free(struct dictionary *dictionary)
{
	buf_free(&dictionary->plain);
	free(dictionary->begin);
	free(dictionary->slots);
	*dictionary = (struct dictionary){ 0 };
}

static uint32_t *dictionary_slot(struct dictionary *dictionary, const void *data, size_t len)
{
	uint32_t mask = dictionary->n_slots - 1, at = hash_bytes(data, len) & mask;

	for (; dictionary->slots[at]; at = (at + 1) & mask) {
		const uint32_t *begin = &dictionary->begin[dictionary->slots[at] - 1];

		if (begin[1] - begin[0] == len &&
		    !memcmp(dictionary->plain.data + begin[0], data, len))
			break;
	}
	return &dictionary->slots[at];
}

/* Half of the slots stay free. */
static void dictionary_grow(struct dictionary *dictionary)
{
	if (dictionary->n_slots > 2 * dictionary->n)
		return;
	dictionary->n_slots = dictionary->n_slots ? 4 * dictionary->n_slots : 64;
	free(dictionary->slots);
	dictionary->slots = xcalloc(dictionary->n_slots, sizeof(*dictionary->slots));
	dictionary->begin = xrealloc(dictionary->begin,
	                             (dictionary->n_slots / 2 + 2) * sizeof(*dictionary->begin));
	dictionary->begin[0] = 0;
	for (uint32_t i = 0; i < dictionary->n; i++) {
		uint32_t begin = dictionary->begin[i], end = dictionary->begin[i + 1];

		*dictionary_slot(dictionary, dictionary->plain.data + begin, end - begin) = i + 1;
	}
}

bool dictionary_place(struct dictionary *dictionary, const void *data, size_t len, uint32_t *place)
{
	uint32_t *slot;

	dictionary_grow(dictionary);
	slot = dictionary_slot(dictionary, data, len);
	if (!*slot) {
		if (dictionary->n == DICTIONARY_MOST ||
		    dictionary->plain.len + len > DICTIONARY_TEXT)
			return false;
		buf_add(&dictionary->plain, data, len);
		*slot = ++dictionary->n;
		dictionary->begin[dictionary->n] = (uint32_t)dictionary->plain.len;
	}
	*place = *slot - 1;
	return true;
}
