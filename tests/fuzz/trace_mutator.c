// SPDX-License-Identifier: MIT
#include "tests/fuzz/trace_mutator.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "trace/chunk.h"

#define CHUNKS_MAX    32
#define RAW_MAX       (64u << 10) /* of a chunk: what is larger is passed over */
#define MOST_CHANGES  4
#define OFTEN_DAMAGED 16 /* one mutation in so many is left as random bytes make it */

struct piece {
	struct chunk_head head;
	struct buf raw;
};

struct trace {
	uint8_t header[FORMAT_HEADER_BYTES];
	struct piece pieces[CHUNKS_MAX];
	size_t n;
	unsigned random; /* its state */
};

static unsigned draw(struct trace *trace, size_t below)
{
	trace->random = trace->random * 1103515245u + 12345u;
	return below ? (trace->random >> 16) % (unsigned)below : 0;
}

/* ---- taking apart, putting together -------------------------------------------------------- */

static void add_piece(struct trace *trace, const struct chunk_head *head, struct unpacker *unpacker,
                      const uint8_t *payload)
{
	const uint8_t *raw =
		head->raw_bytes <= RAW_MAX ? unpacker_open(unpacker, head, payload) : NULL;
	struct piece *piece;

	if (!raw || head->type == CHUNK_INDEX || trace->n == CHUNKS_MAX)
		return;
	piece = &trace->pieces[trace->n++];
	*piece = (struct piece){ .head = *head };
	buf_add(&piece->raw, raw, head->raw_bytes);
}

static void take_apart(struct trace *trace, const uint8_t *data, size_t size)
{
	struct unpacker *unpacker = unpacker_new();
	size_t at = FORMAT_HEADER_BYTES;
	struct chunk_head head;

	memcpy(trace->header, data, sizeof(trace->header));
	while (size - at >= FORMAT_CHUNK_BYTES && chunk_head_read(data + at, &head) &&
	       head.stored_bytes <= size - at - FORMAT_CHUNK_BYTES) {
		add_piece(trace, &head, unpacker, data + at + FORMAT_CHUNK_BYTES);
		at += FORMAT_CHUNK_BYTES + head.stored_bytes;
	}
	unpacker_free(unpacker);
}

static void put_end(struct buf *file, struct packer *packer, const struct buf *heads)
{
	struct chunk_head head = { .type = CHUNK_INDEX };
	uint8_t trailer[FORMAT_TRAILER_BYTES];
	size_t at = file->len;

	packer_add(packer, &head, heads->data, heads->len, file);
	put_fixed(trailer, at, 8);
	put_fixed(trailer + 8, file->len - at, 4);
	put_fixed(trailer + 12, crc32(0, trailer, 12), 4);
	memcpy(trailer + 16, FORMAT_MAGIC, FORMAT_MAGIC_BYTES);
	buf_add(file, trailer, sizeof(trailer));
}

static void put_together(struct trace *trace, struct buf *file)
{
	struct packer *packer = packer_new();
	struct buf heads = { 0 };

	buf_add(file, trace->header, sizeof(trace->header));
	for (size_t i = 0; i < trace->n; i++) {
		struct piece *piece = &trace->pieces[i];
		size_t at = file->len;

		packer_add(packer, &piece->head, piece->raw.data, piece->raw.len, file);
		buf_add(&heads, file->data + at, FORMAT_CHUNK_BYTES);
	}
	if (draw(trace, 8)) /* else as a crash leaves it */
		put_end(file, packer, &heads);
	buf_free(&heads);
	packer_free(packer);
}

static void drop_pieces(struct trace *trace)
{
	while (trace->n)
		buf_free(&trace->pieces[--trace->n].raw);
}

/* ---- changes ------------------------------------------------------------------------------- */

static uint64_t extreme(struct trace *trace)
{
	static const double reals[] = { 0.0, -1.0, 1e300, -1e300, 1e19, 0x1p63, 0x1p64, 1e-300 };
	static const uint64_t numbers[] = {
		0,          1,          UINT64_MAX,         INT64_MAX,          1ull << 63,
		UINT32_MAX, 1ull << 31, 0x7ff0000000000000, 0x7ff8000000000000, FORMAT_TIME_MAX,
		1ull << 53
	};
	unsigned i = draw(trace, 19);
	uint64_t bits;

	if (i >= 8)
		return numbers[i - 8];
	memcpy(&bits, &reals[i], sizeof(bits));
	return bits;
}

static void change_bytes(struct trace *trace, struct piece *piece)
{
	size_t size = piece->raw.len, room = size + 64;

	buf_reserve(&piece->raw, 64);
	piece->raw.len = LLVMFuzzerMutate((uint8_t *)piece->raw.data, size, room);
}

/* A number of fixed width, or a varint in place of one, which makes the rest longer or shorter. */
static void change_number(struct trace *trace, struct piece *piece)
{
	size_t at = draw(trace, piece->raw.len), old = 8, len = 8;
	struct buf changed = { 0 };
	uint8_t number[VARINT_MAX];

	put_fixed(number, extreme(trace), 8);
	if (draw(trace, 2)) {
		len = (size_t)(put_varint(number, extreme(trace)) - number);
		for (old = 1; at + old < piece->raw.len && piece->raw.data[at + old - 1] & 0x80;)
			old++;
	}
	if (at + old > piece->raw.len)
		return;
	buf_add(&changed, piece->raw.data, at);
	buf_add(&changed, number, len);
	buf_add(&changed, piece->raw.data + at + old, piece->raw.len - at - old);
	buf_free(&piece->raw);
	piece->raw = changed;
}

static void change_head(struct trace *trace, struct piece *piece)
{
	switch (draw(trace, 6)) {
	case 0:
		piece->head.events += draw(trace, 5) - 2;
		break;
	case 1:
		piece->head.announced += draw(trace, 5) - 2;
		break;
	case 2:
		piece->head.first_ns = extreme(trace);
		break;
	case 3:
		piece->head.last_ns = extreme(trace);
		break;
	case 4:
		piece->head.begin_ns = extreme(trace);
		break;
	case 5:
		piece->head.type = (uint8_t)draw(trace, 8);
		break;
	}
	if (piece->head.first_ns > piece->head.last_ns) /* the head would be no head */
		piece->head.first_ns = piece->head.last_ns;
}

static void change_order(struct trace *trace, size_t i)
{
	struct piece piece = trace->pieces[i];
	size_t other = draw(trace, trace->n);

	if (draw(trace, 2)) {
		trace->pieces[i] = trace->pieces[other];
		trace->pieces[other] = piece;
		return;
	}
	if (trace->n == CHUNKS_MAX)
		return;
	trace->pieces[trace->n] = (struct piece){ .head = piece.head };
	buf_add(&trace->pieces[trace->n++].raw, piece.raw.data, piece.raw.len);
}

static void change(struct trace *trace)
{
	size_t i = draw(trace, trace->n);
	struct piece *piece = &trace->pieces[i];
	unsigned kind = draw(trace, 16);

	if (kind == 0)
		change_order(trace, i);
	else if (kind <= 2)
		change_head(trace, piece);
	else if (kind <= 8 && piece->raw.len)
		change_number(trace, piece);
	else
		change_bytes(trace, piece);
}

/* ---- the mutator --------------------------------------------------------------------------- */

size_t trace_mutate(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	struct trace trace = { .random = seed };
	struct buf file = { 0 };

	if (size < FORMAT_HEADER_BYTES || !draw(&trace, OFTEN_DAMAGED))
		return LLVMFuzzerMutate(data, size, max);
	take_apart(&trace, data, size);
	if (!trace.n)
		return LLVMFuzzerMutate(data, size, max);
	for (unsigned i = 1 + draw(&trace, MOST_CHANGES); i; i--)
		change(&trace);
	put_together(&trace, &file);
	if (file.len <= max) {
		memcpy(data, file.data, file.len);
		size = file.len;
	}
	drop_pieces(&trace);
	buf_free(&file);
	return size;
}

size_t trace_mutate_behind(uint8_t *data, size_t size, size_t max, unsigned seed, size_t prefix)
{
	if (size < prefix || max <= prefix)
		return LLVMFuzzerMutate(data, size, max);
	if (seed % 8 == 0)
		LLVMFuzzerMutate(data, prefix, prefix);
	return prefix + trace_mutate(data + prefix, size - prefix, max - prefix, seed);
}
