// SPDX-License-Identifier: MIT
#include "divert/entry_targets.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "base/xalloc.h"
#include "divert/entry_decode.h"

#define SEARCHED_MAX (512ull << 20) /* bytes of code */
#define DECODED_MAX  (8ull << 20)
#define LOOKED_UP    64 /* bytes that could be decoded while a segment is found */
#define PART         (256u << 10)
#define BRANCH_MAX   6  /* bytes: 0f 8x and the distance */
#define FIRST_BYTES  32 /* bits of entry_targets_take; entry_move.h writes 24 at most */
#define GRAIN        32 /* bytes of code for one bit of near_entry */
#define HITS_MAX     65536

/* What may be a branch: where it ends, and which byte of which function it leads to. */
struct hit {
	uint64_t end;
	uint32_t function;
	uint8_t offset;
	bool forgotten;
};

struct entry_targets {
	const struct entry_function *functions;
	size_t count;
	uint8_t *near_entry; /* a bit for each GRAIN bytes from the first function to the last */
	uint64_t base, grains;
	struct hit *hits; /* in order of their end, once the search is over */
	size_t n_hits;
	uint32_t *unconfirmed; /* of each function: those for which there was no room */
	uint64_t decoded;
};

struct entry_targets *entry_targets_new(const struct entry_function *functions, size_t count)
{
	struct entry_targets *targets = xcalloc(1, sizeof(*targets));
	uint64_t last = count ? functions[count - 1].address : 0;

	targets->functions = functions;
	targets->count = count;
	targets->unconfirmed = xcalloc(count + 1, sizeof(*targets->unconfirmed));
	targets->base = count ? functions[0].address : 0;
	/* Functions that lie farther apart than the code that is searched are no real ones. */
	if (!count || last - targets->base > SEARCHED_MAX)
		return targets;
	targets->grains = (last - targets->base + FIRST_BYTES) / GRAIN + 1;
	targets->near_entry = xcalloc(targets->grains / 8 + 1, 1);
	for (size_t i = 0; i < count; i++) {
		uint64_t from = functions[i].address - targets->base;

		for (uint64_t g = from / GRAIN; g <= (from + FIRST_BYTES - 1) / GRAIN; g++)
			targets->near_entry[g / 8] |= (uint8_t)(1u << g % 8);
	}
	return targets;
}

void entry_targets_free(struct entry_targets *targets)
{
	if (!targets)
		return;
	free(targets->near_entry);
	free(targets->hits);
	free(targets->unconfirmed);
	free(targets);
}

/* ---- the search ------------------------------------------------------------------------------ */

/* The last function that begins at or before an address; there is one. */
static size_t function_before(const struct entry_targets *targets, uint64_t address)
{
	size_t low = 0, high = targets->count;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (targets->functions[middle].address <= address)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static void note_hit(struct entry_targets *targets, uint64_t end, uint64_t target)
{
	uint64_t grain = (target - targets->base) / GRAIN, offset;
	size_t i;

	if (target < targets->base || grain >= targets->grains ||
	    !(targets->near_entry[grain / 8] >> grain % 8 & 1))
		return;
	i = function_before(targets, target);
	offset = target - targets->functions[i].address;
	if (!offset || offset >= FIRST_BYTES)
		return;
	if (targets->n_hits == HITS_MAX) {
		targets->unconfirmed[i] |= 1u << offset;
		return;
	}
	targets->hits = vec_room(targets->hits, targets->n_hits, sizeof(*targets->hits));
	targets->hits[targets->n_hits++] =
		(struct hit){ .end = end, .function = (uint32_t)i, .offset = (uint8_t)offset };
}

static void search_part(struct entry_targets *targets, const uint8_t *code, size_t bytes,
                        uint64_t address)
{
	for (size_t at = 0; at + 1 < bytes; at++) {
		size_t distance_at;
		int32_t distance;

		if ((code[at] & 0xfe) == 0xe8)
			distance_at = at + 1;
		else if (code[at] == 0x0f && (code[at + 1] & 0xf0) == 0x80)
			distance_at = at + 2;
		else
			continue;
		if (distance_at + sizeof(distance) > bytes)
			continue;
		memcpy(&distance, code + distance_at, sizeof(distance));
		note_hit(targets, address + distance_at + sizeof(distance),
		         address + distance_at + sizeof(distance) + (uint64_t)(int64_t)distance);
	}
}

/* Parts overlap by all but one byte of the longest branch: some are found twice. */
static void search_segment(struct entry_targets *targets, const struct elf_image *image,
                           const Elf64_Phdr *segment, uint64_t bytes, uint8_t *part)
{
	uint64_t at = 0;

	while (at < bytes) {
		uint64_t n = bytes - at < PART ? bytes - at : PART;

		if (segment->p_offset > UINT64_MAX - at ||
		    !elf_image_read(image, segment->p_offset + at, part, n))
			break;
		search_part(targets, part, n, segment->p_vaddr + at);
		if (n < PART)
			break;
		at += n - (BRANCH_MAX - 1);
	}
}

static int compare_hits(const void *left, const void *right)
{
	const struct hit *a = left, *b = right;

	return a->end < b->end ? -1 : a->end > b->end;
}

void entry_targets_search(struct entry_targets *targets, const struct elf_image *image)
{
	uint64_t left = SEARCHED_MAX;
	uint8_t *part;

	if (!targets->grains)
		return;
	part = xmalloc(PART);
	for (size_t i = 0; i < image->n_segments; i++) {
		const Elf64_Phdr *segment = &image->segments[i];
		uint64_t bytes = segment->p_filesz < left ? segment->p_filesz : left;

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
			continue;
		left -= bytes;
		search_segment(targets, image, segment, bytes, part);
	}
	free(part);
	if (targets->n_hits)
		qsort(targets->hits, targets->n_hits, sizeof(*targets->hits), compare_hits);
}

/* ---- which of them are no branches ----------------------------------------------------------- */

/* The first hit that ends behind an address. */
static size_t first_behind(const struct entry_targets *targets, uint64_t address)
{
	size_t low = 0, high = targets->n_hits;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (targets->hits[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Instructions from the function's begin on, as far as all of them decode. */
static void decode(struct entry_targets *targets, size_t hit, const uint8_t *code, size_t bytes,
                   uint64_t start)
{
	struct entry_instruction instruction;
	ZydisDecoder decoder;
	size_t at = 0;

	entry_decoder_init(&decoder);
	while (hit < targets->n_hits && targets->hits[hit].end <= start + bytes &&
	       entry_decode(&decoder, code, bytes, at, &instruction)) {
		uint64_t end = start + at + instruction.raw.length;

		/* A branch ends where its distance does. */
		for (; hit < targets->n_hits && targets->hits[hit].end <= end; hit++)
			if (!instruction.has_target || targets->hits[hit].end != end)
				targets->hits[hit].forgotten = true;
		at += instruction.raw.length;
	}
}

void entry_targets_confirm(struct entry_targets *targets, const struct elf_image *image,
                           uint64_t start, uint64_t end)
{
	size_t hit = first_behind(targets, start);
	const Elf64_Phdr *segment;
	uint8_t *code;

	if (hit == targets->n_hits || targets->hits[hit].end > end || end <= start)
		return;
	if (end - start > ENTRY_FUNCTION_MAX || targets->decoded >= DECODED_MAX)
		return;
	targets->decoded += end - start + LOOKED_UP; /* a file may have thousands of segments */
	segment = elf_image_segment(image, start, end - start);
	if (!segment || !(segment->p_flags & PF_X))
		return;
	code = xmalloc(end - start);
	if (elf_image_read(image, segment->p_offset + start - segment->p_vaddr, code, end - start))
		decode(targets, hit, code, end - start, start);
	free(code);
}

void entry_targets_take(const struct entry_targets *targets, uint32_t *bits)
{
	for (size_t i = 0; i < targets->count; i++)
		bits[i] = targets->unconfirmed[i];
	for (size_t i = 0; i < targets->n_hits; i++)
		if (!targets->hits[i].forgotten)
			bits[targets->hits[i].function] |= 1u << targets->hits[i].offset;
}
