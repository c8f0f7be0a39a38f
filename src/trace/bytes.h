/* SPDX-License-Identifier: MIT */
/*
 * Numbers as bytes: little-endian of fixed width, and varints (seven bits a byte, the lowest
 * first, the eighth says that more follow). Signed numbers are folded: 0 -1 1 -2 become 0 1 2 3.
 */
#ifndef CUSCOPE_TRACE_BYTES_H
#define CUSCOPE_TRACE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

#endif
