// SPDX-License-Identifier: MIT
/* From the recorded words of one call to what it asked for. Runs once for every event. */
#include "cuda/row.h"

#include <string.h>

#include "base/array.h"
#include "base/words.h"

/* ---- parts --------------------------------------------------------------------------------- */

/*/* Where the parts of a call are: what decode.c does with values, said without them. */

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
struct parts_gathering {
	struct api_parts *parts;
	unsigned factors, dims, bits;
	bool missing;     /* a factor is not recorded */
	bool out_missing; /* the same of an output */
	bool out;         /* a factor is an output */
};

static void add_factor(struct parts_gathering *g, const struct piece *piece, struct api_where at)
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

static void add_known(struct parts_gathering *g, struct api_where *into, unsigned *count,
                      unsigned most, struct api_where at)
{
	if (!at.known || *count == most)
		g->missing = true;
	else
		into[(*count)++] = at;
}

static void add_size(struct parts_gathering *g, const struct piece *piece, struct api_where at)
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

static void add_part(struct parts_gathering *g, const struct piece *piece, struct api_where at)
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
	struct parts_gathering g = { .parts = parts };

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

/* ---- decode -------------------------------------------------------------------------------- */

/* What the values of a call add up to. */
struct decode_sum {
	bool has_bytes;   /* a factor was seen */
	bool missing;     /* a factor was not recorded: the bytes are not known */
	bool out_missing; /* the same of an output, for which a spare may stand in */
	uint64_t bytes;
	uint64_t spare;
	uint64_t dim[3], levels;
	unsigned n_dims;
	uint64_t bits;                                     /* of one element */
	uint64_t copy[PART_DST_ARRAY - PART_SRC_TYPE + 1]; /* by part */
	bool has_copy_types;
};

/* False where the value was not recorded; it is 0 then. */
static bool read_value(const struct api_raw *raw, struct row_where at, const struct piece *piece,
                       uint64_t *value)
{
	const void *base = NULL;
	uint32_t half;

	*value = 0;
	if (at.where == IN_REG)
		base = raw->reg;
	else if (at.where == IN_STACK)
		base = raw->stack;
	else if (at.where == IN_BLOB && raw->blob_valid)
		base = raw->blob;
	else if (at.where == IN_OUT)
		base = raw->out;
	if (!base || (piece->out && !raw->out_valid))
		return false;
	if (piece->width == 4) {
		memcpy(&half, (const char *)base + at.offset, 4);
		*value = piece->type == T_INT ? (uint64_t)(int64_t)(int32_t)half : half;
	} else {
		memcpy(value, (const char *)base + at.offset, 8);
	}
	return true;
}

/* CUarray_format and the bits of one channel; formats that are compressed or planar are
 * left out. */
static const struct decode_format {
	uint8_t first, last, bits;
} formats[] = {
	{ 0x01, 0x01, 8 },  /* UNSIGNED_INT8 */
	{ 0x02, 0x02, 16 }, /* UNSIGNED_INT16 */
	{ 0x03, 0x03, 32 }, /* UNSIGNED_INT32 */
	{ 0x08, 0x08, 8 },  /* SIGNED_INT8 */
	{ 0x09, 0x09, 16 }, /* SIGNED_INT16 */
	{ 0x0a, 0x0a, 32 }, /* SIGNED_INT32 */
	{ 0x10, 0x10, 16 }, /* HALF */
	{ 0x20, 0x20, 32 }, /* FLOAT */
	{ 0xc0, 0xc2, 8 },  /* UNORM_INT8X1, 8X2, 8X4 */
	{ 0xc3, 0xc5, 16 }, /* UNORM_INT16X1, 16X2, 16X4 */
	{ 0xc6, 0xc8, 8 },  /* SNORM_INT8X1, 8X2, 8X4 */
	{ 0xc9, 0xcb, 16 }, /* SNORM_INT16X1, 16X2, 16X4 */
};

unsigned api_format_bits(uint32_t value)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (value >= formats[i].first && value <= formats[i].last)
			return formats[i].bits;
	return 0;
}

enum api_direction api_kind_direction(uint64_t kind)
{
	static const uint8_t directions[] = { DIRECTION_H2H, DIRECTION_H2D, DIRECTION_D2H,
		                              DIRECTION_D2D, DIRECTION_DEFAULT };

	return kind < sizeof(directions) ? directions[kind] : DIRECTION_NONE;
}

/* Sums up what cannot be said from one value alone. */
static void add_to_sum(struct decode_sum *sum, const struct piece *piece, uint64_t value,
                       bool known)
{
	switch (piece->part) {
	case PART_FACTOR:
		sum->has_bytes = true;
		if (!known && piece->out)
			sum->out_missing = true;
		else if (!known)
			sum->missing = true;
		else
			sum->bytes *= value * piece->scale;
		break;
	case PART_SPARE:
		sum->spare = value;
		break;
	case PART_DIM:
		sum->missing |= !known;
		if (sum->n_dims < 3)
			sum->dim[sum->n_dims++] = value;
		break;
	case PART_LEVELS:
		sum->levels = value;
		break;
	case PART_BITS:
		sum->missing |= !known;
		sum->bits += value;
		break;
	case PART_FORMAT:
		sum->missing |= !known;
		sum->bits = api_format_bits((uint32_t)value);
		break;
	case PART_SRC_TYPE:
	case PART_DST_TYPE:
		sum->has_copy_types = true;
		/* fall through */
	case PART_SRC_HOST:
	case PART_SRC_DEVICE:
	case PART_SRC_ARRAY:
	case PART_DST_HOST:
	case PART_DST_DEVICE:
	case PART_DST_ARRAY:
		sum->copy[piece->part - PART_SRC_TYPE] = value;
		break;
	default:
		break;
	}
}

static void apply(struct api_call *call, const struct piece *piece, uint64_t value)
{
	switch (piece->part) {
	case PART_ADDRESS:
		call->address = value;
		break;
	case PART_SOURCE:
		call->source = value;
		break;
	case PART_STREAM:
		call->stream = value;
		call->has_stream = true;
		break;
	case PART_EVENT:
		if (!call->event)
			call->event = value;
		break;
	case PART_HANDLE:
		/* What a call was given, rather than what it made of it. */
		if (!piece->out || !call->handle)
			call->handle = value;
		break;
	case PART_SHMEM:
		call->shmem_bytes = value;
		break;
	case PART_LAUNCHES:
		call->launches = value < API_LAUNCHES_MAX ? (uint32_t)value : API_LAUNCHES_MAX;
		break;
	case PART_KIND:
		call->direction = api_kind_direction(value);
		break;
	case PART_GRID:
	case PART_GRID + 1:
	case PART_GRID + 2:
		call->grid[piece->part - PART_GRID] = (uint32_t)value;
		break;
	case PART_BLOCK:
	case PART_BLOCK + 1:
	case PART_BLOCK + 2:
		call->block[piece->part - PART_BLOCK] = (uint32_t)value;
		break;
	default:
		break;
	}
}

/* Elements of an array with all levels of its mipmap; an extent of 0 means: not that many dims. */
static uint64_t array_elements(const struct decode_sum *sum)
{
	uint64_t levels = sum->levels ? sum->levels : 1, total = 0;

	for (uint64_t level = 0; level < levels && level < 32; level++) {
		uint64_t elements = 1;

		for (unsigned i = 0; i < sum->n_dims; i++)
			if (sum->dim[i] >> level)
				elements *= sum->dim[i] >> level;
		total += elements;
	}
	return total;
}

static uint64_t total_bytes(const struct decode_sum *sum)
{
	uint64_t bytes = sum->bytes;

	if (sum->missing || (sum->out_missing && !sum->spare))
		return 0;
	if (sum->out_missing)
		bytes *= sum->spare;
	if (sum->n_dims)
		bytes = bytes * array_elements(sum) * sum->bits / 8;
	else if (!sum->has_bytes)
		bytes = 0;
	return bytes;
}

/* CUmemorytype */
enum { TYPE_HOST = 1, TYPE_DEVICE, TYPE_ARRAY, TYPE_UNIFIED };

enum api_direction api_types_direction(uint64_t from, uint64_t to)
{
	if (from == TYPE_UNIFIED || to == TYPE_UNIFIED)
		return DIRECTION_DEFAULT;
	if (from == TYPE_HOST)
		return to == TYPE_HOST ? DIRECTION_H2H : DIRECTION_H2D;
	return to == TYPE_HOST ? DIRECTION_D2H : DIRECTION_D2D;
}

/* The address of one end of a copy that a struct describes. */
static uint64_t end_address(const uint64_t *end)
{
	enum { TYPE, HOST, DEVICE, ARRAY }; /* the order of enum part */

	/* with TYPE_UNIFIED the device field holds it, host memory or not */
	return end[TYPE] == TYPE_HOST    ? end[HOST]
	       : end[TYPE] == TYPE_ARRAY ? end[ARRAY]
	                                 : end[DEVICE];
}

/* CUDA_MEMCPY2D and its larger relatives. */
static void decode_driver_copy(const struct decode_sum *sum, struct api_call *call)
{
	const uint64_t *from = sum->copy, *to = sum->copy + (PART_DST_TYPE - PART_SRC_TYPE);

	call->source = end_address(from);
	call->address = end_address(to);
	if (call->direction == DIRECTION_NONE)
		call->direction = api_types_direction(from[0], to[0]);
}

/*
 * cudaMemcpy3DParms: an array in the place of a pointer. Where an array takes part, the width
 * counts its elements, whose size is not to be seen here, so the bytes stay unknown; the driver's
 * call below this one has them.
 */
static void decode_runtime_copy(const struct decode_sum *sum, struct api_call *call)
{
	uint64_t from = sum->copy[PART_SRC_ARRAY - PART_SRC_TYPE];
	uint64_t to = sum->copy[PART_DST_ARRAY - PART_SRC_TYPE];

	if (from)
		call->source = from;
	if (to)
		call->address = to;
	if (from || to)
		call->bytes = 0;
	call->size_unknown |= from || to;
}

/* Whether something that the size is made of was not recorded, or lies where nothing is. */
static bool size_is_unknown(const struct decode_sum *sum)
{
	return sum->missing || (sum->out_missing && !sum->spare) ||
	       (!sum->has_bytes && !sum->n_dims);
}

/* Whether it has addresses or bytes that play a part; so do handles of graphs, as its source. */
static bool is_of_bytes(enum api_op op)
{
	return op == OP_ALLOC || op == OP_FREE || op == OP_COPY || op == OP_SET ||
	       op == OP_CAPTURE_END || op >= OP_MAP;
}

void api_decode(const struct api *api, enum api_abi abi, const struct api_raw *raw,
                struct api_call *call)
{
	struct decode_sum sum;
	uint64_t value;

	words_clear(&sum, sizeof(sum));
	sum.bytes = 1;
	words_clear(call, sizeof(*call));
	call->n_args = api->n_args;
	call->direction = api->row->direction;
	call->launches = api->row->op == OP_LAUNCH;
	if (api->row->flags & FLAT)
		call->grid[0] = call->grid[1] = call->grid[2] = 1;
	for (size_t i = 0; i < api->n_pieces; i++) {
		const struct piece *piece = &api->piece[i];
		bool known = read_value(raw, api->layout[abi].at[i], piece, &value);

		if (piece->arg != NO_ARG && piece->type != T_GRID && piece->type != T_BLOCK)
			call->arg[piece->arg] = value;
		if (piece->part < PART_FACTOR)
			apply(call, piece, value);
		else
			add_to_sum(&sum, piece, value, known);
	}
	if (!is_of_bytes(api->row->op)) {
		call->address = call->source = 0;
		return;
	}
	call->bytes = total_bytes(&sum);
	call->size_unknown =
		(api->row->op == OP_COPY || api->row->op == OP_SET) && size_is_unknown(&sum);
	if (sum.has_copy_types && raw->blob_valid)
		decode_driver_copy(&sum, call);
	else
		decode_runtime_copy(&sum, call);
}
