// SPDX-License-Identifier: MIT
/* The places of a call's parts: what decode.c does with values, said without them. */
#include "cuda/row.h"

#include <string.h>

static struct api_place public_place(struct row_place place, const struct piece *piece)
{
	static const uint16_t base[] = {
		[IN_REG] = offsetof(struct api_raw, reg),
		[IN_STACK] = offsetof(struct api_raw, stack),
		[IN_OUT] = offsetof(struct api_raw, out),
		[IN_BLOB] = offsetof(struct api_raw, blob),
	};

	if (place.where == NOWHERE)
		return (struct api_place){ 0 };
	return (struct api_place){ .known = true,
		                   .offset = (uint16_t)(base[place.where] + place.offset),
		                   .width = piece->width,
		                   .scale = piece->scale ? piece->scale : 1 };
}

/* What is being put together of one function. */
struct gathering {
	struct api_parts *parts;
	unsigned factors, dims, bits;
	bool missing;     /* a factor is not recorded */
	bool out_missing; /* the same of an output */
	bool out;         /* a factor is an output */
};

static void add_factor(struct gathering *g, const struct piece *piece, struct api_place place)
{
	struct api_place *factor = g->parts->factor;

	if (!place.known || g->factors == 3) {
		g->out_missing |= piece->out;
		g->missing |= !piece->out;
		return;
	}
	if (piece->out) { /* first, for its spare */
		g->out = true;
		memmove(factor + 1, factor, 2 * sizeof(*factor));
		factor[0] = place;
	} else {
		factor[g->factors] = place;
	}
	g->factors++;
}

static void add_known(struct gathering *g, struct api_place *into, unsigned *count, unsigned most,
                      struct api_place place)
{
	if (!place.known || *count == most)
		g->missing = true;
	else
		into[(*count)++] = place;
}

static void add_size(struct gathering *g, const struct piece *piece, struct api_place place)
{
	struct api_parts *parts = g->parts;

	switch (piece->part) {
	case PART_FACTOR:
		parts->sized = true;
		add_factor(g, piece, place);
		break;
	case PART_SPARE:
		parts->spare = place;
		break;
	case PART_DIM:
		parts->sized = parts->array = true;
		add_known(g, parts->dim, &g->dims, 3, place);
		break;
	case PART_LEVELS:
		parts->levels = place;
		break;
	case PART_FORMAT:
		parts->format = true;
		/* fall through */
	case PART_BITS:
		add_known(g, parts->bits, &g->bits, 4, place);
		break;
	}
}

static void add_part(struct gathering *g, const struct piece *piece, struct api_place place)
{
	struct api_parts *parts = g->parts;

	if (piece->part >= PART_GRID && piece->part < PART_GRID + 3)
		parts->grid[piece->part - PART_GRID] = place;
	else if (piece->part >= PART_BLOCK && piece->part < PART_BLOCK + 3)
		parts->block[piece->part - PART_BLOCK] = place;
	else if (piece->part >= PART_SRC_TYPE && piece->part <= PART_SRC_ARRAY)
		parts->from[piece->part - PART_SRC_TYPE] = place;
	else if (piece->part >= PART_DST_TYPE && piece->part <= PART_DST_ARRAY)
		parts->to[piece->part - PART_DST_TYPE] = place;
	else if (piece->part == PART_ADDRESS)
		parts->address = place;
	else if (piece->part == PART_SOURCE)
		parts->source = place;
	else if (piece->part == PART_STREAM)
		parts->stream = place;
	else if (piece->part == PART_EVENT)
		parts->event = parts->event.known ? parts->event : place;
	else if (piece->part == PART_HANDLE && !piece->out)
		parts->handle = place;
	else if (piece->part == PART_KIND)
		parts->kind = place;
	else
		add_size(g, piece, place);
}

void api_parts(const struct api *api, enum api_abi abi, struct api_parts *parts)
{
	struct gathering g = { .parts = parts };

	memset(parts, 0, sizeof(*parts));
	parts->direction = api->row->direction;
	parts->flat = api->row->flags & FLAT;
	for (size_t i = 0; i < api->n_pieces; i++)
		add_part(&g, &api->piece[i],
		         public_place(api->layout[abi].place[i], &api->piece[i]));
	if (g.out_missing && parts->spare.known && g.factors < 3)
		parts->factor[g.factors] = parts->spare;
	else if (g.out_missing)
		parts->sized = false;
	if (!g.out)
		parts->spare = (struct api_place){ 0 };
	if (g.missing)
		parts->sized = false;
}
