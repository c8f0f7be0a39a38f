/* SPDX-License-Identifier: MIT */
/*
 * One chunk of a trace file: a head of fixed size, and a payload that is compressed by itself. So
 * each chunk can be read, checked and thrown away without the others.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "trace/format.h"

struct chunk_head {
	uint8_t type;               /* enum chunk_type; readers pass over what they do not know */
	uint32_t stored_bytes;      /* of the payload, as it is in the file */
	uint32_t raw_bytes;         /* uncompressed */
	uint32_t events;            /* CHUNK_EVENTS: with those announced */
	uint32_t announced;         /* CHUNK_EVENTS: how many of them the definitions hold */
	uint64_t first_ns, last_ns; /* CHUNK_EVENTS: the earliest and the latest time */
	uint64_t begin_ns;          /* CHUNK_EVENTS: when the first of them began */
	uint32_t definitions;       /* CHUNK_DEFINITIONS: records */
	uint32_t payload_crc;       /* CRC-32 of the payload, as it is in the file */
};

/* False where the bytes are no head: another magic, another checksum, impossible sizes. */
bool chunk_head_read(const uint8_t from[FORMAT_CHUNK_BYTES], struct chunk_head *head);

#ifdef FUZZING
extern bool chunk_any_checksum; /* a fuzzer that had to find checksums would find nothing else */
#endif

/* ---- packing ------------------------------------------------------------------------------- */

struct packer;

struct packer *packer_new(void);
void packer_free(struct packer *packer);

/* Appends head and payload to `out`; fills the sizes and the checksum of `head`. */
void packer_add(struct packer *packer, struct chunk_head *head, const void *raw, size_t bytes,
                struct buf *out);

/* ---- unpacking ----------------------------------------------------------------------------- */

#define UNPACK_SPARE 1024 /* zeros behind what was unpacked: see get_varint() */

struct unpacker;

struct unpacker *unpacker_new(void);
void unpacker_free(struct unpacker *unpacker);

/*
 * Checks and unpacks a payload: head->raw_bytes bytes, valid until the next call. NULL where it
 * is damaged.
 */
const uint8_t *unpacker_open(struct unpacker *unpacker, const struct chunk_head *head,
                             const void *payload);

/*
 * Numbers as bytes: little-endian of fixed width, and varints (seven bits a byte, the lowest
 * first, the eighth says that more follow). Signed numbers are folded: 0 -1 1 -2 become 0 1 2 3.
 */

#define VARINT_MAX 10 /* bytes */

static inline uint8_t *put_fixed(uint8_t *at, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		*at++ = (uint8_t)(value >> (8 * i));
	return at;
}

static inline uint64_t get_fixed(const uint8_t *at, unsigned bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)at[i] << (8 * i);
	return value;
}

static inline uint8_t *put_varint(uint8_t *at, uint64_t value)
{
	while (value >= 0x80) {
		*at++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*at++ = (uint8_t)value;
	return at;
}

/*
 * Reads at most VARINT_MAX bytes, which have to be there: buffers that are read so have that many
 * more than their content, and the caller looks at the end once for many numbers.
 */
static inline const uint8_t *get_varint(const uint8_t *at, uint64_t *value)
{
	uint64_t result = *at & 0x7f;

	if (*at++ < 0x80) {
		*value = result;
		return at;
	}
	for (unsigned shift = 7; shift < 7 * VARINT_MAX; shift += 7) {
		result |= (uint64_t)(*at & 0x7f) << shift;
		if (*at++ < 0x80)
			break;
	}
	*value = result;
	return at;
}

static inline uint64_t fold(uint64_t value)
{
	return value << 1 ^ (uint64_t)((int64_t)value >> 63);
}

static inline uint64_t unfold(uint64_t value)
{
	return value >> 1 ^ (0 - (value & 1));
}

/* ---- reading what may be damaged ----------------------------------------------------------- */

/* A stretch of bytes; reading past its end gives zeros and sets `bad`. */
struct bytes {
	const uint8_t *at, *end;
	bool bad;
};

static inline struct bytes bytes_of(const void *data, size_t len)
{
	return (struct bytes){ data, len ? (const uint8_t *)data + len : data, false };
}

static inline uint64_t bytes_varint(struct bytes *in)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 7 * VARINT_MAX; shift += 7) {
		if (in->at == in->end) {
			in->bad = true;
			return 0;
		}
		value |= (uint64_t)(*in->at & 0x7f) << shift;
		if (*in->at++ < 0x80)
			break;
	}
	return value;
}

/* The next `len` bytes as a stretch of their own. */
static inline struct bytes bytes_take(struct bytes *in, uint64_t len)
{
	struct bytes part = { in->at, in->at, false };

	if (len > (uint64_t)(in->end - in->at)) {
		in->bad = part.bad = true;
		return part;
	}
	part.end = in->at += len;
	return part;
}

/*
 * A trace file as chunks: which there are and where. The index tells that. Where a crash left none,
 * chunks are found by walking from one to the next, over damage to the next head.
 */

struct chunk_at {
	struct chunk_head head;
	uint64_t offset; /* of the head */
	uint64_t gap;    /* without an index: bytes before it that are no chunk */
};

struct file_in {
	int fd;
	const char *path;           /* kept, not copied */
	uint64_t bytes, data_bytes; /* data: without holes */
	unsigned major, minor;      /* of the format */
	struct chunk_at *chunks;
	size_t n_chunks;
	bool complete;       /* ends as a writer ends it */
	bool has_trailer;    /* its last bytes are what a writer ends a file with */
	bool has_gaps;       /* without an index: bytes that are no chunk lie between chunks */
	uint64_t damaged_at; /* without an index: where bytes begin that are no chunk, up to the */
			     /* end; 0: nowhere */
	struct unpacker *unpacker;
	struct buf payload;
	uint8_t *block; /* of the file, which heads are looked for in */
	uint64_t block_at;
	size_t block_bytes;
};

/* How many of so many bytes of a file are no holes: what there is a file of, whatever its length.
 * All, where the file system does not know holes. */
uint64_t file_data_bytes(int fd, uint64_t bytes);

/* A descriptor is closed by file_in_close(), which follows failures, too. */
int file_in_open(struct file_in *in, const char *path, struct err *err);
int file_in_open_fd(struct file_in *in, int fd, const char *called, struct err *err);
void file_in_close(struct file_in *in);

/* The payload of a chunk, unpacked; valid until the next call. NULL: it is damaged. */
const uint8_t *file_in_chunk(struct file_in *in, const struct chunk_at *chunk);
