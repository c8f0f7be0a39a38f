// SPDX-License-Identifier: MIT
/*/* Where the parts of a call are: what decode.c does with values, said without them. */
#include "cuda/row.h"

#include <string.h>

static struct api_where public_where(struct row_where at, const struct piece *piece)
{
	static const uint16_t base[] = {
		[IN_REG] = offsetof(struct api_raw, reg),
		[IN_STACK] = offsetof(struct api_raw, stack),
		[IN_OUT] = offsetof(struct api_raw, out),
		[IN_BLOB] = offsetof(struct api_raw, blob),
	};

	if (at.where == NOWHERE)
		return (struct api_where){ 0 };
	return (struct api_where){ .known = true,
		                   .offset = (uint16_t)(base[at.where] + at.offset),
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

static void add_factor(struct gathering *g, const struct piece *piece, struct api_where at)
{
	struct api_where *factor = g->parts->factor;

	if (!at.known || g->factors == 3) {
		g->out_missing |= piece->out;
		g->missing |= !piece->out;
		return;
	}
	if (piece->out) { /* first, for its spare */
		g->out = true;
		memmove(factor + 1, factor, 2 * sizeof(*factor));
		factor[0] = at;
	} else {
		factor[g->factors] = at;
	}
	g->factors++;
}

static void add_known(struct gathering *g, struct api_where *into, unsigned *count, unsigned most,
                      struct api_where at)
{
	if (!at.known || *count == most)
		g->missing = true;
	else
		into[(*count)++] = at;
}

static void add_size(struct gathering *g, const struct piece *piece, struct api_where at)
{
	struct api_parts *parts = g->parts;

	switch (piece->part) {
	case PART_FACTOR:
		parts->sized = true;
		add_factor(g, piece, at);
		break;
	case PART_SPARE:
		parts->spare = at;
		break;
	case PART_DIM:
		parts->sized = parts->array = true;
		add_known(g, parts->dim, &g->dims, 3, at);
		break;
	case PART_LEVELS:
		parts->levels = at;
		break;
	case PART_FORMAT:
		parts->format = true;
		/* fall through */
	case PART_BITS:
		add_known(g, parts->bits, &g->bits, 4, at);
		break;
	}
}

static void add_part(struct gathering *g, const struct piece *piece, struct api_where at)
{
	struct api_parts *parts = g->parts;

	if (piece->part >= PART_GRID && piece->part < PART_GRID + 3)
		parts->grid[piece->part - PART_GRID] = at;
	else if (piece->part >= PART_BLOCK && piece->part < PART_BLOCK + 3)
		parts->block[piece->part - PART_BLOCK] = at;
	else if (piece->part >= PART_SRC_TYPE && piece->part <= PART_SRC_ARRAY)
		parts->from[piece->part - PART_SRC_TYPE] = at;
	else if (piece->part >= PART_DST_TYPE && piece->part <= PART_DST_ARRAY)
		parts->to[piece->part - PART_DST_TYPE] = at;
	else if (piece->part == PART_ADDRESS)
		parts->address = at;
	else if (piece->part == PART_LAUNCHES)
		parts->launches = at;
	else if (piece->part == PART_SOURCE)
		parts->source = at;
	else if (piece->part == PART_STREAM)
		parts->stream = at;
	else if (piece->part == PART_EVENT)
		parts->event = parts->event.known ? parts->event : at;
	else if (piece->part == PART_HANDLE && !piece->out)
		parts->handle = at;
	else if (piece->part == PART_KIND)
		parts->kind = at;
	else
		add_size(g, piece, at);
}

void api_parts(const struct api *api, enum api_abi abi, struct api_parts *parts)
{
	struct gathering g = { .parts = parts };

	memset(parts, 0, sizeof(*parts));
	parts->direction = api->row->direction;
	parts->flat = api->row->flags & FLAT;
	for (size_t i = 0; i < api->n_pieces; i++)
		add_part(&g, &api->piece[i], public_where(api->layout[abi].at[i], &api->piece[i]));
	if (g.out_missing && parts->spare.known && g.factors < 3)
		parts->factor[g.factors] = parts->spare;
	else if (g.out_missing)
		parts->sized = false;
	if (!g.out)
		parts->spare = (struct api_where){ 0 };
	if (g.missing)
		parts->sized = false;
}
