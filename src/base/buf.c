// SPDX-License-Identifier: MIT
#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	buf_add(buf, &c, 1);
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

static void put_digits(struct buf *buf, unsigned long long value, unsigned base)
{
	char digits[24];
	size_t at = sizeof(digits);

	do {
		digits[--at] = "0123456789abcdef"[value % base];
		value /= base;
	} while (value);
	buf_add(buf, digits + at, sizeof(digits) - at);
}

void buf_u64(struct buf *buf, unsigned long long value)
{
	put_digits(buf, value, 10);
}

void buf_s64(struct buf *buf, long long value)
{
	if (value < 0)
		buf_putc(buf, '-');
	put_digits(buf, value < 0 ? -(unsigned long long)value : (unsigned long long)value, 10);
}

void buf_hex(struct buf *buf, unsigned long long value)
{
	buf_add(buf, "0x", 2);
	put_digits(buf, value, 16);
}

/* Length of the valid UTF-8 sequence at `p`, 0 where there is none. */
static size_t utf8_length(const unsigned char *p)
{
	static const unsigned least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t len = p[0] < 0x80             ? 1
	             : (p[0] & 0xe0) == 0xc0 ? 2
	             : (p[0] & 0xf0) == 0xe0 ? 3
	             : (p[0] & 0xf8) == 0xf0 ? 4
	                                     : 0;
	unsigned code;

	if (len <= 1)
		return len;
	code = p[0] & (0x7f >> len);
	for (size_t i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (p[i] & 0x3f);
	}
	return code < least[len] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : len;
}

void buf_json_string(struct buf *buf, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;

	buf_putc(buf, '"');
	while (*p) {
		size_t len = utf8_length(p);

		if (*p == '"' || *p == '\\') {
			buf_putc(buf, '\\');
			buf_putc(buf, (char)*p++);
		} else if (*p < 0x20 || *p == 0x7f) {
			buf_printf(buf, "\\u%04x", *p++);
		} else if (!len) {
			buf_puts(buf, "\\ufffd");
			p++;
		} else {
			buf_add(buf, p, len);
			p += len;
		}
	}
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
	while (value >= 1024 && i + 1 < sizeof(unit) / sizeof(*unit)) {
		value /= 1024;
		i++;
	}
	buf_printf(buf, "%.2f %s", value, unit[i]);
}

void buf_duration(struct buf *buf, unsigned long long ns)
{
	if (ns < 1000)
		buf_printf(buf, "%llu ns", ns);
	else if (ns < 1000000)
		buf_printf(buf, "%.2f us", (double)ns / 1e3);
	else if (ns < 1000000000)
		buf_printf(buf, "%.3f ms", (double)ns / 1e6);
	else
		buf_printf(buf, "%.3f s", (double)ns / 1e9);
}
