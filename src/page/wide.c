// SPDX-License-Identifier: MIT
#include "page/wide.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"

#define BYTE_ORDER_MARK 0xfeff
#define NOT_TEXT        0xfffd
#define LONGEST         4 /* bytes of a character */

static void add_word(struct buf *out, unsigned word)
{
	buf_putc(out, (char)word);
	buf_putc(out, (char)(word >> 8));
}

void page_wide_begin(struct buf *out)
{
	add_word(out, BYTE_ORDER_MARK);
}

static void add_code(struct buf *out, unsigned code)
{
	if (code < 0x10000) {
		add_word(out, code);
		return;
	}
	add_word(out, 0xd800 + ((code - 0x10000) >> 10));
	add_word(out, 0xdc00 + ((code - 0x10000) & 0x3ff));
}

/* Of the character that a byte begins; 1: it begins none. */
static size_t length_of(unsigned char first)
{
	return first >= 0xf8 || first < 0xc0 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
}

size_t page_wide_add(struct buf *out, const char *text, size_t len)
{
	size_t at = 0;

	while (at < len) {
		char character[LONGEST + 1] = { 0 };
		size_t left = len - at < LONGEST ? len - at : LONGEST, n;
		unsigned code = 0;

		if (!(text[at] & 0x80)) {
			add_word(out, (unsigned char)text[at++]);
			continue;
		}
		memcpy(character, text + at, left);
		n = text_utf8(character, &code);
		if (!n && left < length_of((unsigned char)text[at]))
			break;
		add_code(out, n ? code : NOT_TEXT);
		at += n ? n : 1;
	}
	return at;
}

static int digit_of(char digit)
{
	if (digit >= 'A' && digit <= 'Z')
		return digit - 'A';
	if (digit >= 'a' && digit <= 'z')
		return digit - 'a' + 26;
	if (digit >= '0' && digit <= '9')
		return digit - '0' + 52;
	return digit == '+' ? 62 : 63;
}

static bool word_is_kept(unsigned word)
{
	return word && word != '\r' && word != '<' && word != PAGE_WIDE_MARK &&
	       (word < 0xd800 || word > 0xdfff);
}

static void add_bytes(struct buf *out, unsigned word)
{
	if (!word_is_kept(word)) {
		add_word(out, PAGE_WIDE_MARK);
		word ^= PAGE_WIDE_OTHER;
	}
	add_word(out, word);
}

void page_wide_block(struct buf *out, const char *base64, size_t len)
{
	size_t bytes, n = 0;
	unsigned bits = 0, word = 0;

	while (len && base64[len - 1] == '=')
		len--;
	bytes = len * 6 / 8;
	add_word(out, bytes % 2 ? '1' : '0');
	for (size_t i = 0; i < len; i++) {
		bits = bits << 6 | (unsigned)digit_of(base64[i]);
		if (i % 4 == 0)
			continue;
		word |= (bits >> (6 - 2 * (i % 4)) & 0xff) << 8 * (n % 2);
		if (n++ % 2) {
			add_bytes(out, word);
			word = 0;
		}
	}
	if (n % 2)
		add_bytes(out, word);
}
