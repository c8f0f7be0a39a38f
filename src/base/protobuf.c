// SPDX-License-Identifier: MIT
#include "base/protobuf.h"

#include <string.h>

#define VARINT_MAX 10 /* bytes of 64 bits, seven a byte */

enum wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_LENGTH = 2 };

/* Room for a tag and a number behind it. */
static char *room(struct buf *out)
{
	buf_reserve(out, 2 * VARINT_MAX);
	return out->data + out->len;
}

static char *varint(char *at, uint64_t value)
{
	while (value >= 0x80) {
		*at++ = (char)(value | 0x80);
		value >>= 7;
	}
	*at++ = (char)value;
	return at;
}

static char *tag(char *at, uint32_t field, enum wire wire)
{
	return varint(at, field << 3 | wire);
}

static void set_end(struct buf *out, const char *at)
{
	out->len = at - out->data;
}

void pb_varint(struct buf *out, uint32_t field, uint64_t value)
{
	set_end(out, varint(tag(room(out), field, WIRE_VARINT), value));
}

void pb_fixed64(struct buf *out, uint32_t field, uint64_t value)
{
	char *at = tag(room(out), field, WIRE_FIXED64);

	for (int i = 0; i < 8; i++)
		*at++ = (char)(value >> 8 * i);
	set_end(out, at);
}

void pb_double(struct buf *out, uint32_t field, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	pb_fixed64(out, field, bits);
}

void pb_bytes(struct buf *out, uint32_t field, const void *data, size_t len)
{
	set_end(out, varint(tag(room(out), field, WIRE_LENGTH), len));
	buf_add(out, data, len);
}

void pb_string(struct buf *out, uint32_t field, const char *text)
{
	pb_bytes(out, field, text, strlen(text));
}

size_t pb_begin(struct buf *out, uint32_t field)
{
	set_end(out, tag(room(out), field, WIRE_LENGTH) + 1);
	return out->len;
}

void pb_end(struct buf *out, size_t begin)
{
	size_t len = out->len - begin;
	char length[VARINT_MAX];
	size_t bytes = varint(length, len) - length;

	if (bytes > 1) {
		buf_reserve(out, bytes);
		memmove(out->data + begin + bytes - 1, out->data + begin, len);
		out->len += bytes - 1;
	}
	memcpy(out->data + begin - 1, length, bytes);
}
