// SPDX-License-Identifier: MIT
#include "table/words.h"

#include <stdint.h>
#include <string.h>

size_t words_width(const struct table *table, size_t before, size_t otherwise)
{
	const struct table_options *options = table_options(table);

	if (options->form != TABLE_FORM_TEXT)
		return SIZE_MAX;
	if (!options->width)
		return otherwise;
	return options->width > 2 * before ? options->width - before : before;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* "12.5 %", "3.2 ms": not between them. */
static bool can_break(const char *text, size_t at)
{
	return text[at] == ' ' && !(at && is_digit(text[at - 1]) && !is_digit(text[at + 1]));
}

static size_t line_length(const char *text, size_t width)
{
	size_t len = strlen(text);

	if (len <= width)
		return len;
	for (size_t i = width; i; i--) {
		if (can_break(text, i))
			return i;
	}
	return strcspn(text, " ");
}

bool words_line(const char **text, size_t width, struct buf *line)
{
	size_t len = line_length(*text, width);

	buf_reset(line);
	buf_add(line, *text, len);
	*text += len + strspn(*text + len, " ");
	return **text != '\0';
}
