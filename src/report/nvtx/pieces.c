// SPDX-License-Identifier: MIT
#include "report/nvtx/pieces.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

#define BLOCK_PIECES 256
#define FIRST_PIECES 4 /* there may be as many threads as pieces */

struct piece_block {
	size_t n, room;
	struct piece at[];
};

/* ---- places -------------------------------------------------------------------------------- */

/* How many blocks begin with a piece that was asked for before then. */
static size_t blocks_before(const struct pieces *pieces, uint64_t time_ns)
{
	size_t low = 0, high = pieces->n_blocks;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (pieces->blocks[middle]->at[0].asked_ns < time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static size_t pieces_before(const struct piece_block *block, uint64_t time_ns)
{
	size_t low = 0, high = block->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (block->at[middle].asked_ns < time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct piece_place pieces_from(const struct pieces *pieces, uint64_t time_ns)
{
	size_t before = blocks_before(pieces, time_ns);
	struct piece_place place = { .pieces = pieces };

	if (before) {
		place.block = before - 1;
		place.at = pieces_before(pieces->blocks[before - 1], time_ns);
	}
	return place;
}

const struct piece *pieces_next(struct piece_place *place)
{
	const struct pieces *pieces = place->pieces;

	if (place->block < pieces->n_blocks && place->at == pieces->blocks[place->block]->n) {
		place->block++;
		place->at = 0;
	}
	if (place->block == pieces->n_blocks)
		return NULL;
	return &pieces->blocks[place->block]->at[place->at++];
}

/* ---- adding -------------------------------------------------------------------------------- */

static size_t block_bytes(size_t room)
{
	return sizeof(struct piece_block) + room * sizeof(struct piece);
}

static struct piece_block *insert_block(struct pieces *pieces, size_t index, size_t room)
{
	struct piece_block *block = xmalloc(block_bytes(room));

	if (pieces->n_blocks == pieces->room) {
		pieces->room = 2 * pieces->room + 1;
		pieces->blocks = xrealloc(pieces->blocks, pieces->room * sizeof(*pieces->blocks));
	}
	memmove(pieces->blocks + index + 1, pieces->blocks + index,
	        (pieces->n_blocks - index) * sizeof(*pieces->blocks));
	pieces->n_blocks++;
	block->n = 0;
	block->room = room;
	return pieces->blocks[index] = block;
}

/* The later half of a full block goes into one of its own. */
static void split_block(struct pieces *pieces, size_t index)
{
	struct piece_block *full = pieces->blocks[index];
	struct piece_block *later = insert_block(pieces, index + 1, BLOCK_PIECES);

	later->n = full->n / 2;
	full->n -= later->n;
	memcpy(later->at, full->at + full->n, later->n * sizeof(*later->at));
}

static void make_room_in(struct pieces *pieces, struct piece_place *place)
{
	struct piece_block *block = pieces->blocks[place->block];

	if (block->n < block->room)
		return;
	if (block->room < BLOCK_PIECES) {
		block->room *= 4;
		pieces->blocks[place->block] = xrealloc(block, block_bytes(block->room));
	} else if (place->at == block->n && place->block + 1 == pieces->n_blocks) {
		/* those that come in order fill blocks whole */
		insert_block(pieces, ++place->block, BLOCK_PIECES);
		place->at = 0;
	} else {
		split_block(pieces, place->block);
		if (place->at > block->n) {
			place->at -= block->n;
			place->block++;
		}
	}
}

void pieces_add(struct pieces *pieces, const struct piece *piece)
{
	struct piece_place place = pieces_from(pieces, piece->asked_ns + 1);
	struct piece_block *block;

	if (!pieces->n_blocks)
		insert_block(pieces, 0, FIRST_PIECES);
	make_room_in(pieces, &place);
	block = pieces->blocks[place.block];
	memmove(block->at + place.at + 1, block->at + place.at,
	        (block->n - place.at) * sizeof(*block->at));
	block->at[place.at] = *piece;
	block->n++;
	pieces->n++;
}

/* ---- letting go ---------------------------------------------------------------------------- */

uint64_t pieces_drop(struct pieces *pieces, size_t n)
{
	uint64_t asked_ns = 0;
	size_t gone = 0;

	pieces->n -= n;
	while (n) {
		struct piece_block *block = pieces->blocks[gone];
		size_t some = n < block->n ? n : block->n;

		n -= some;
		asked_ns = block->at[some - 1].asked_ns;
		block->n -= some;
		memmove(block->at, block->at + some, block->n * sizeof(*block->at));
		if (!block->n) {
			free(block);
			gone++;
		}
	}
	pieces->n_blocks -= gone;
	memmove(pieces->blocks, pieces->blocks + gone, pieces->n_blocks * sizeof(*pieces->blocks));
	return asked_ns;
}

void pieces_free(struct pieces *pieces)
{
	for (size_t i = 0; i < pieces->n_blocks; i++)
		free(pieces->blocks[i]);
	free(pieces->blocks);
}
