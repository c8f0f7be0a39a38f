/* SPDX-License-Identifier: MIT */
/*
 * A growing byte buffer with printf. Out of memory ends the program: a tracer that lost part of a
 * line silently would be worse. A zeroed `struct buf` is an empty buffer.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/at_end.h"

struct buf {
	char *data; /* NUL-terminated whenever not NULL; owned by the buffer */
	size_t len; /* bytes without the NUL */
	size_t cap;
};

void buf_free(struct buf *buf);
void buf_reset(struct buf *buf); /* empty, memory kept */
void buf_reserve(struct buf *buf, size_t extra);
void buf_add(struct buf *buf, const void *data, size_t len);
void buf_puts(struct buf *buf, const char *text);
void buf_putc(struct buf *buf, char c);
void buf_fill(struct buf *buf, char c, size_t count); /* as often */
void buf_printf(struct buf *buf, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *buf, const char *fmt, va_list ap);

/* Decimal and 0x-hexadecimal without the cost of printf: these run once or more for every event. */
void buf_u64(struct buf *buf, unsigned long long value);
void buf_s64(struct buf *buf, long long value);
void buf_hex(struct buf *buf, unsigned long long value);

/* value / 10^decimals with all its decimals (at most 9): (12345678, 6) is "12.345678". */
void buf_fixed(struct buf *buf, unsigned long long value, unsigned decimals);

/* A JSON string with its quotes; bytes that are not UTF-8 become U+FFFD. */
void buf_json_string(struct buf *buf, const char *text);

/* "1.00 MiB", "512 B": binary units, two decimals from KiB up. */
void buf_bytes(struct buf *buf, unsigned long long bytes);

/* "812 ns", "1.34 us", "2.001 ms", "3.2 s": a duration as a person reads it. */
void buf_duration(struct buf *buf, unsigned long long ns);

/* The same two in what printf() is given: each text lives as long as the block that it is in. */
#define TEXT_DURATION(ns) text_of_duration(ns, (char[TEXT_OF_MOST]){ 0 })
#define TEXT_BYTES(bytes) text_of_bytes(bytes, (char[TEXT_OF_MOST]){ 0 })
#define TEXT_OF_MOST      32

const char *text_of_duration(unsigned long long ns, char text[TEXT_OF_MOST]);
const char *text_of_bytes(unsigned long long bytes, char text[TEXT_OF_MOST]);

/*
 * The text that a demangler calls back with, piece by piece. It takes no answer, and what it makes
 * of a name can be of any size: with more than `most` bytes it is left where it is. `demangle` is
 * to hold nothing but its stack for that. What it returns, or true where it was left.
 */
typedef void buf_piece_fn(const char *text, size_t len, void *opaque);
bool buf_demangle(struct buf *buf, size_t most, const char *mangled,
                  bool (*demangle)(const char *mangled, buf_piece_fn *add, void *opaque));
