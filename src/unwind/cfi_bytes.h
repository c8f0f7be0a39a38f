/* SPDX-License-Identifier: MIT */
/*
 * Bytes of call frame information, read one after the other and never past their end: what is not
 * there is 0, and the reader is marked bad.
 */
#ifndef CUSCOPE_UNWIND_CFI_BYTES_H
#define CUSCOPE_UNWIND_CFI_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A number of 64 bits takes ten bytes. Compilers write no longer ones. */
#define CFI_LEB128_MAX 10

struct cfi_bytes {
	const uint8_t *at, *end;
	bool bad;
};

static inline size_t cfi_left(const struct cfi_bytes *bytes)
{
	return (size_t)(bytes->end - bytes->at);
}

static inline void cfi_fail(struct cfi_bytes *bytes)
{
	bytes->at = bytes->end;
	bytes->bad = true;
}

static inline void cfi_skip(struct cfi_bytes *bytes, uint64_t count)
{
	if (count > cfi_left(bytes))
		cfi_fail(bytes);
	else
		bytes->at += count;
}

/* Takes the next `count` bytes off as a reader of their own. */
static inline struct cfi_bytes cfi_part(struct cfi_bytes *bytes, uint64_t count)
{
	struct cfi_bytes part = { bytes->at, bytes->at, false };

	cfi_skip(bytes, count);
	part.end = bytes->bad ? part.at : bytes->at;
	part.bad = bytes->bad;
	return part;
}

/* A number of 1, 2, 4 or 8 bytes, of the byte order that both machines have. */
static inline uint64_t cfi_unsigned(struct cfi_bytes *bytes, size_t size)
{
	uint64_t value = 0;

	if (size > cfi_left(bytes)) {
		cfi_fail(bytes);
		return 0;
	}
	memcpy(&value, bytes->at, size);
	bytes->at += size;
	return value;
}

static inline uint8_t cfi_u8(struct cfi_bytes *bytes)
{
	if (bytes->at < bytes->end)
		return *bytes->at++;
	bytes->bad = true;
	return 0;
}

static inline int64_t cfi_signed(struct cfi_bytes *bytes, size_t size)
{
	unsigned int unused = 64 - 8 * (unsigned int)size;

	return (int64_t)(cfi_unsigned(bytes, size) << unused) >> unused;
}

/* The bits of a LEB128 number, and their count in *bits. */
static inline uint64_t cfi_leb128(struct cfi_bytes *bytes, unsigned int *bits)
{
	uint64_t value = 0;

	*bits = 0;
	for (unsigned int i = 0; i < CFI_LEB128_MAX; i++) {
		uint8_t byte = cfi_u8(bytes);

		value |= (uint64_t)(byte & 0x7f) << *bits;
		*bits += 7;
		if (!(byte & 0x80))
			return value;
	}
	cfi_fail(bytes);
	return 0;
}

static inline uint64_t cfi_uleb128(struct cfi_bytes *bytes)
{
	unsigned int bits;

	if (bytes->at < bytes->end && *bytes->at < 0x80) /* almost all are */
		return *bytes->at++;
	return cfi_leb128(bytes, &bits);
}

static inline int64_t cfi_sleb128(struct cfi_bytes *bytes)
{
	unsigned int bits;
	uint64_t value = cfi_leb128(bytes, &bits);

	if (bits < 64 && value >> (bits - 1) & 1)
		value |= ~(uint64_t)0 << bits;
	return (int64_t)value;
}

#endif
