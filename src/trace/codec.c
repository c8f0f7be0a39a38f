// SPDX-License-Identifier: MIT
#include "trace/codec.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "trace/format.h"

void codec_init(struct codec *codec)
{
	memset(codec, 0, sizeof(*codec));
	codec->slots = xcalloc(SLOTS, sizeof(*codec->slots));
}

void codec_free(struct codec *codec)
{
	free(codec->slots);
	free(codec->kernels);
	free(codec->correlations);
}

void codec_begin(struct codec *codec, uint64_t time_ns)
{
	codec->chunk++;
	codec->time_ns = time_ns;
}

struct slot *codec_slot_anew(struct codec *codec, struct slot *slot, uint32_t function,
                             uint32_t kernel)
{
	memset(slot, 0, sizeof(*slot));
	memset(slot->follows, FOLLOWS_NONE, sizeof(slot->follows));
	slot->chunk = codec->chunk;
	slot->function = function;
	slot->kernel = kernel;
	return slot;
}

struct last_kernel *codec_kernel_grown(struct codec *codec, uint32_t index)
{
	while (index >= codec->n_kernels) {
		size_t n = codec->n_kernels ? 2 * codec->n_kernels : 256;

		codec->kernels = xrealloc(codec->kernels, n * sizeof(*codec->kernels));
		memset(codec->kernels + codec->n_kernels, 0,
		       (n - codec->n_kernels) * sizeof(*codec->kernels));
		codec->n_kernels = n;
	}
	codec->kernels[index] = (struct last_kernel){ .chunk = codec->chunk };
	return &codec->kernels[index];
}

struct last_correlation *codec_correlation_grown(struct codec *codec, uint32_t process)
{
	while (process >= codec->n_correlations) {
		size_t n = codec->n_correlations ? 2 * codec->n_correlations : 16;

		codec->correlations =
			xrealloc(codec->correlations, n * sizeof(*codec->correlations));
		memset(codec->correlations + codec->n_correlations, 0,
		       (n - codec->n_correlations) * sizeof(*codec->correlations));
		codec->n_correlations = n;
	}
	codec->correlations[process] = (struct last_correlation){ .chunk = codec->chunk };
	return &codec->correlations[process];
}

struct names {
	struct buf texts; /* each with its NUL: the payload */
	size_t *at;       /* where each begins, by number - 1 */
	uint32_t count, room;
	uint32_t *slots; /* numbers by hash, 0: free; at most half of them are taken */
	uint32_t n_slots;
};

struct names *names_new(void)
{
	return xcalloc(1, sizeof(struct names));
}

void names_free(struct names *names)
{
	if (!names)
		return;
	buf_free(&names->texts);
	free(names->at);
	free(names->slots);
	free(names);
}

size_t names_bytes(const struct names *names)
{
	return names->texts.len;
}

static void add_slot(struct names *names, size_t at)
{
	if (names->count == names->room) {
		names->room = names->room ? 2 * names->room : 64;
		names->at = xrealloc(names->at, names->room * sizeof(*names->at));
	}
	names->at[names->count++] = at;
}

/* ---- writing ------------------------------------------------------------------------------- */

static bool is_text(const struct names *names, uint32_t number, const char *text, size_t len)
{
	const char *other = names->texts.data + names->at[number - 1];

	return strlen(other) == len && !memcmp(other, text, len);
}

/* Where the text's number is, or is to be. */
static uint32_t *slot_of(struct names *names, const char *text, size_t len)
{
	uint32_t at = hash_bytes(text, len) & (names->n_slots - 1);

	while (names->slots[at] && !is_text(names, names->slots[at], text, len))
		at = (at + 1) & (names->n_slots - 1);
	return &names->slots[at];
}

static void grow(struct names *names)
{
	free(names->slots);
	names->n_slots = names->n_slots ? 2 * names->n_slots : 256;
	names->slots = xcalloc(names->n_slots, sizeof(*names->slots));
	for (uint32_t number = 1; number <= names->count; number++) {
		const char *text = names->texts.data + names->at[number - 1];

		*slot_of(names, text, strlen(text)) = number;
	}
}

uint32_t names_number(struct names *names, const char *text)
{
	uint32_t *slot;
	size_t len;

	if (!text)
		return 0;
	if (2 * (names->count + 1) > names->n_slots)
		grow(names);
	len = strnlen(text, FORMAT_TEXT_MAX);
	slot = slot_of(names, text, len);
	if (*slot)
		return *slot;
	add_slot(names, names->texts.len);
	buf_add(&names->texts, text, len);
	buf_putc(&names->texts, '\0');
	return *slot = names->count;
}

void names_take(struct names *names, struct buf *raw)
{
	buf_reset(raw);
	buf_add(raw, names->texts.data, names->texts.len);
	buf_reset(&names->texts);
	if (names->count)
		memset(names->slots, 0, names->n_slots * sizeof(*names->slots));
	names->count = 0;
}

/* ---- reading ------------------------------------------------------------------------------- */

bool names_read(struct names *names, const uint8_t *raw, size_t bytes)
{
	names->count = 0;
	buf_reset(&names->texts);
	if (!bytes)
		return true;
	if (raw[bytes - 1])
		return false;
	buf_add(&names->texts, raw, bytes);
	for (size_t at = 0, next; at < bytes; at = next) {
		next = at + strlen(names->texts.data + at) + 1;
		text_cut_bytes(names->texts.data + at, NAMES_TEXT_MAX);
		add_slot(names, at);
	}
	return true;
}

const char *names_text(const struct names *names, uint64_t number)
{
	return number && number <= names->count ? names->texts.data + names->at[number - 1] : NULL;
}
