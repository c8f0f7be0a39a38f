// SPDX-License-Identifier: MIT
#include "hooks/cursor.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/text.h"

bool cursor_wrong(struct cursor *c, const char *where, const char *fmt, ...)
{
	va_list ap;

	c->mistake->at = where - c->text;
	va_start(ap, fmt);
	vsnprintf(c->mistake->says, sizeof(c->mistake->says), fmt, ap);
	va_end(ap);
	text_make_safe(c->mistake->says, sizeof(c->mistake->says));
	return false;
}

void cursor_skip_blanks(struct cursor *c)
{
	while (*c->at == ' ' || *c->at == '\t')
		c->at++;
}

static bool is_word(char byte)
{
	return isalnum((unsigned char)byte) || byte == '_';
}

bool cursor_takes(struct cursor *c, const char *word)
{
	size_t len = strlen(word);

	cursor_skip_blanks(c);
	if (strncmp(c->at, word, len) || (is_word(*word) && is_word(c->at[len])))
		return false;
	c->at += len;
	return true;
}

size_t cursor_name(struct cursor *c, char *name, size_t room)
{
	size_t len = 0, kept;

	cursor_skip_blanks(c);
	while (is_word(c->at[len]))
		len++;
	kept = len < room ? len : room - 1;
	memcpy(name, c->at, kept);
	name[kept] = '\0';
	c->at += len;
	return len;
}

static unsigned digit_of(char byte)
{
	if (byte >= '0' && byte <= '9')
		return byte - '0';
	byte |= 0x20;
	return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : 16;
}

bool cursor_number(struct cursor *c, uint64_t most, uint64_t *number)
{
	const char *begin;
	unsigned base = 10;
	uint64_t value = 0;

	cursor_skip_blanks(c);
	begin = c->at;
	if (begin[0] == '0' && (begin[1] | 0x20) == 'x' && digit_of(begin[2]) < 16) {
		base = 16;
		c->at += 2;
	}
	if (digit_of(*c->at) >= base)
		return cursor_wrong(c, begin, "a number is expected here: 1024 or 0x400");
	for (unsigned digit; (digit = digit_of(*c->at)) < base; c->at++) {
		if (value > (most - digit) / base || digit > most)
			return cursor_wrong(c, begin, "this number is too large: %llu is the most",
			                    (unsigned long long)most);
		value = value * base + digit;
	}
	*number = value;
	return true;
}

const char *cursor_near(const char *typed, const char *const *words, size_t n, char *room,
                        size_t bytes)
{
	const char *near = suggest(typed, words, n);

	room[0] = '\0';
	if (near)
		snprintf(room, bytes, ": did you mean '%s'?", near);
	return room;
}
