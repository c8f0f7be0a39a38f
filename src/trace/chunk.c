// SPDX-License-Identifier: MIT
#include "trace/chunk.h"

#include <stdlib.h>
#include <string.h>

#include <zlib.h>
#include <zstd.h>

#include "base/xalloc.h"
#include "trace/bytes.h"

/* Level 3 makes files 4 % smaller (docs/results/pipeline.md); recording is to cost little. */
#define LEVEL 1

/* ---- heads --------------------------------------------------------------------------------- */

static void chunk_head_write(const struct chunk_head *head, uint8_t into[FORMAT_CHUNK_BYTES])
{
	uint8_t *at = into;

	memset(into, 0, FORMAT_CHUNK_BYTES);
	at = put_fixed(at, FORMAT_CHUNK_MAGIC, 4);
	at = put_fixed(at, head->type, 4);
	at = put_fixed(at, head->stored_bytes, 4);
	at = put_fixed(at, head->raw_bytes, 4);
	at = put_fixed(at, head->events, 4);
	at = put_fixed(at, head->announced, 4);
	at = put_fixed(at, head->first_ns, 8);
	at = put_fixed(at, head->last_ns, 8);
	at = put_fixed(at, head->begin_ns, 8);
	at = put_fixed(at, head->definitions, 4);
	put_fixed(at, head->payload_crc, 4);
	put_fixed(into + FORMAT_CHUNK_BYTES - 4, crc32(0, into, FORMAT_CHUNK_BYTES - 4), 4);
}

#ifdef FUZZING
bool chunk_any_checksum;
#endif

static bool crc_is(uint64_t expected, const void *data, size_t bytes)
{
#ifdef FUZZING
	if (chunk_any_checksum)
		return true;
#endif
	return crc32(0, data, (uInt)bytes) == expected;
}

/* Cheap, and what most of a file's bytes that look like a head fail at. */
static bool sizes_fit(const uint8_t *from)
{
	return from[4] == CHUNK_INDEX || /* as long as the file asks for */
	       (get_fixed(from + 12, 4) <= FORMAT_RAW_MAX &&
	        get_fixed(from + 8, 4) <= ZSTD_compressBound(FORMAT_RAW_MAX));
}

bool chunk_head_read(const uint8_t from[FORMAT_CHUNK_BYTES], struct chunk_head *head)
{
	if (get_fixed(from, 4) != FORMAT_CHUNK_MAGIC || !sizes_fit(from) ||
	    !crc_is(get_fixed(from + FORMAT_CHUNK_BYTES - 4, 4), from, FORMAT_CHUNK_BYTES - 4))
		return false;
	*head = (struct chunk_head){
		.type = from[4],
		.stored_bytes = (uint32_t)get_fixed(from + 8, 4),
		.raw_bytes = (uint32_t)get_fixed(from + 12, 4),
		.events = (uint32_t)get_fixed(from + 16, 4),
		.announced = (uint32_t)get_fixed(from + 20, 4),
		.first_ns = get_fixed(from + 24, 8),
		.last_ns = get_fixed(from + 32, 8),
		.begin_ns = get_fixed(from + 40, 8),
		.definitions = (uint32_t)get_fixed(from + 48, 4),
		.payload_crc = (uint32_t)get_fixed(from + 52, 4),
	};
	return head->first_ns <= head->last_ns;
}

/* ---- packing ------------------------------------------------------------------------------- */

struct packer {
	ZSTD_CCtx *zstd;
};

struct packer *packer_new(void)
{
	struct packer *packer = xcalloc(1, sizeof(*packer));

	packer->zstd = ZSTD_createCCtx();
	if (!packer->zstd)
		abort(); /* out of memory, as xalloc */
	ZSTD_CCtx_setParameter(packer->zstd, ZSTD_c_compressionLevel, LEVEL);
	return packer;
}

void packer_free(struct packer *packer)
{
	if (!packer)
		return;
	ZSTD_freeCCtx(packer->zstd);
	free(packer);
}

void packer_add(struct packer *packer, struct chunk_head *head, const void *raw, size_t bytes,
                struct buf *out)
{
	size_t room = ZSTD_compressBound(bytes), stored;
	char *at;

	buf_reserve(out, FORMAT_CHUNK_BYTES + room);
	at = out->data + out->len;
	stored = ZSTD_compress2(packer->zstd, at + FORMAT_CHUNK_BYTES, room, raw, bytes);
	if (ZSTD_isError(stored))
		abort(); /* cannot be, with that much room */
	head->raw_bytes = (uint32_t)bytes;
	head->stored_bytes = (uint32_t)stored;
	head->payload_crc =
		(uint32_t)crc32(0, (const Bytef *)at + FORMAT_CHUNK_BYTES, (uInt)stored);
	chunk_head_write(head, (uint8_t *)at);
	out->len += FORMAT_CHUNK_BYTES + stored;
	out->data[out->len] = '\0';
}

/* ---- unpacking ----------------------------------------------------------------------------- */

struct unpacker {
	ZSTD_DCtx *zstd;
	uint8_t *raw;
	size_t room;
};

struct unpacker *unpacker_new(void)
{
	struct unpacker *unpacker = xcalloc(1, sizeof(*unpacker));

	unpacker->zstd = ZSTD_createDCtx();
	if (!unpacker->zstd)
		abort(); /* out of memory, as xalloc */
	return unpacker;
}

void unpacker_free(struct unpacker *unpacker)
{
	if (!unpacker)
		return;
	ZSTD_freeDCtx(unpacker->zstd);
	free(unpacker->raw);
	free(unpacker);
}

const uint8_t *unpacker_open(struct unpacker *unpacker, const struct chunk_head *head,
                             const void *payload)
{
	size_t got;

	if (!crc_is(head->payload_crc, payload, head->stored_bytes))
		return NULL;
	if (unpacker->room < head->raw_bytes || !unpacker->raw) {
		free(unpacker->raw);
		unpacker->room = head->raw_bytes;
		unpacker->raw = xmalloc(unpacker->room + UNPACK_SPARE);
	}
	got = ZSTD_decompressDCtx(unpacker->zstd, unpacker->raw, head->raw_bytes, payload,
	                          head->stored_bytes);
	if (ZSTD_isError(got) || got != head->raw_bytes)
		return NULL;
	memset(unpacker->raw + got, 0, UNPACK_SPARE);
	return unpacker->raw;
}
