// SPDX-License-Identifier: MIT
#include "base/buf.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "base/xalloc.h"

void buf_free(struct buf *buf)
{
	free(buf->data);
	memset(buf, 0, sizeof(*buf));
}

void buf_reset(struct buf *buf)
{
	buf->len = 0;
	if (buf->data)
		buf->data[0] = '\0';
}

void buf_reserve(struct buf *buf, size_t extra)
{
	size_t want = buf->len + extra + 1;

	if (want <= buf->cap)
		return;
	if (want < 2 * buf->cap)
		want = 2 * buf->cap;
	if (want < 256)
		want = 256;
	buf->data = xrealloc(buf->data, want);
	buf->cap = want;
}

void buf_add(struct buf *buf, const void *data, size_t len)
{
	buf_reserve(buf, len);
	if (len) /* data may be NULL then */
		memcpy(buf->data + buf->len, data, len);
	buf->len += len;
	buf->data[buf->len] = '\0';
}

void buf_puts(struct buf *buf, const char *text)
{
	buf_add(buf, text, strlen(text));
}

void buf_putc(struct buf *buf, char c)
{
	buf_reserve(buf, 1);
	buf->data[buf->len++] = c;
	buf->data[buf->len] = '\0';
}

void buf_fill(struct buf *buf, char c, size_t count)
{
	buf_reserve(buf, count);
	memset(buf->data + buf->len, c, count);
	buf->len += count;
	buf->data[buf->len] = '\0';
}

void buf_vprintf(struct buf *buf, const char *fmt, va_list ap)
{
	va_list again;
	int n;

	buf_reserve(buf, 128);
	va_copy(again, ap);
	n = vsnprintf(buf->data + buf->len, buf->cap - buf->len, fmt, ap);
	if (n >= 0 && (size_t)n >= buf->cap - buf->len) {
		buf_reserve(buf, n);
		n = vsnprintf(buf->data + buf->len, buf->cap - buf->len, fmt, again);
	}
	va_end(again);
	if (n > 0)
		buf->len += n;
}

void buf_printf(struct buf *buf, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(buf, fmt, ap);
	va_end(ap);
}

#define DIGITS_MAX 24 /* of 64 bits in decimal, and room for a sign and a point */

/* Writes the digits so that they end at `end`; returns where they begin. */
static char *decimal_before(char *end, unsigned long long value)
{
	do {
		*--end = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	return end;
}

void buf_u64(struct buf *buf, unsigned long long value)
{
	char digits[DIGITS_MAX], *end = digits + sizeof(digits);
	const char *first = decimal_before(end, value);

	buf_add(buf, first, end - first);
}

void buf_s64(struct buf *buf, long long value)
{
	if (value < 0)
		buf_putc(buf, '-');
	buf_u64(buf, value < 0 ? -(unsigned long long)value : (unsigned long long)value);
}

void buf_hex(struct buf *buf, unsigned long long value)
{
	char digits[DIGITS_MAX], *end = digits + sizeof(digits), *at = end;

	do {
		*--at = "0123456789abcdef"[value % 16];
		value /= 16;
	} while (value);
	*--at = 'x';
	*--at = '0';
	buf_add(buf, at, end - at);
}

void buf_fixed(struct buf *buf, unsigned long long value, unsigned decimals)
{
	char digits[DIGITS_MAX], *end = digits + sizeof(digits), *at = end;

	for (unsigned i = 0; i < decimals; i++) {
		*--at = (char)('0' + value % 10);
		value /= 10;
	}
	if (decimals)
		*--at = '.';
	at = decimal_before(at, value);
	buf_add(buf, at, end - at);
}

void buf_json_string(struct buf *buf, const char *text)
{
	const char *plain = text; /* from here on nothing needs an escape */

	buf_putc(buf, '"');
	while (*text) {
		unsigned char c = (unsigned char)*text;
		unsigned code = c;
		size_t len = c < 0x80 ? 1 : text_utf8(text, &code);

		if (len && c != '"' && c != '\\' && !text_is_hostile(code)) {
			text += len;
			continue;
		}
		buf_add(buf, plain, text - plain);
		if (c == '"' || c == '\\') {
			buf_putc(buf, '\\');
			buf_putc(buf, (char)c);
		} else if (len) {
			buf_printf(buf, "\\u%04x", code);
		} else {
			buf_puts(buf, "\\ufffd");
		}
		plain = text += len ? len : 1;
	}
	buf_add(buf, plain, text - plain);
	buf_putc(buf, '"');
}

void buf_bytes(struct buf *buf, unsigned long long bytes)
{
	static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
	double value = (double)bytes;
	size_t i = 0;

	if (bytes < 1024) {
		buf_printf(buf, "%llu B", bytes);
		return;
	}
	while (value >= 1024 && i + 1 < ARRAY_SIZE(unit)) {
		value /= 1024;
		i++;
	}
	buf_printf(buf, "%.2f %s", value, unit[i]);
}

void buf_duration(struct buf *buf, unsigned long long ns)
{
	if (ns < 1000) {
		buf_u64(buf, ns);
		buf_add(buf, " ns", 3);
	} else if (ns < 1000000) {
		buf_fixed(buf, (ns + 5) / 10, 2);
		buf_add(buf, " us", 3);
	} else if (ns < 1000000000) {
		buf_fixed(buf, (ns + 500) / 1000, 3);
		buf_add(buf, " ms", 3);
	} else {
		buf_fixed(buf, ns / 1000000 + (ns % 1000000 >= 500000), 3);
		buf_add(buf, " s", 2);
	}
}

const char *text_of_duration(unsigned long long ns, char text[TEXT_OF_MOST])
{
	AT_END(buf_free) struct buf buf = { 0 };

	buf_duration(&buf, ns);
	return memcpy(text, buf.data, buf.len + 1);
}

const char *text_of_bytes(unsigned long long bytes, char text[TEXT_OF_MOST])
{
	AT_END(buf_free) struct buf buf = { 0 };

	buf_bytes(&buf, bytes);
	return memcpy(text, buf.data, buf.len + 1);
}

struct buf_demangled {
	struct buf *text;
	size_t most;
	jmp_buf too_long;
};

static void add_piece(const char *text, size_t len, void *opaque)
{
	struct buf_demangled *out = opaque;

	buf_add(out->text, text, len);
	if (out->text->len > out->most)
		longjmp(out->too_long, 1);
}

bool buf_demangle(struct buf *buf, size_t most, const char *mangled,
                  bool (*demangle)(const char *mangled, buf_piece_fn *add, void *opaque))
{
	struct buf_demangled out = { .text = buf, .most = most };

	if (setjmp(out.too_long))
		return true;
	return demangle(mangled, add_piece, &out);
}
