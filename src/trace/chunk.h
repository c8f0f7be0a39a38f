/* SPDX-License-Identifier: MIT */
/*
 * One chunk of a trace file: a head of fixed size, and a payload that is compressed by itself. So
 * each chunk can be read, checked and thrown away without the others.
 */
#ifndef CUSCOPE_TRACE_CHUNK_H
#define CUSCOPE_TRACE_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
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

#endif
