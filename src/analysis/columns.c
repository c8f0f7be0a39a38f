// SPDX-License-Identifier: MIT
#include "analysis/columns.h"

#include <stdbool.h>
#include <string.h>

#include "base/text.h"

#define COLUMNS_MAX 16

void columns_init(struct columns *columns, const char *align, const char *headings)
{
	memset(columns, 0, sizeof(*columns));
	columns->align = align;
	for (; *headings; headings++) {
		if (*headings == '|')
			columns_end_cell(columns);
		else
			buf_putc(&columns->cells, *headings);
	}
	columns_end_cell(columns);
}

void columns_end_cell(struct columns *columns)
{
	buf_putc(&columns->cells, '\0');
}

void columns_text(struct columns *columns, const char *text)
{
	buf_puts(&columns->cells, text);
	columns_end_cell(columns);
}

static void measure(const struct columns *columns, size_t width[COLUMNS_MAX])
{
	const char *cell = columns->cells.data, *end = cell + columns->cells.len;
	size_t n = strlen(columns->align);

	memset(width, 0, COLUMNS_MAX * sizeof(*width));
	for (size_t at = 0; cell < end; at = (at + 1) % n, cell += strlen(cell) + 1) {
		size_t used = text_columns(cell);

		width[at] = used > width[at] ? used : width[at];
	}
}

static void add_blanks(struct buf *out, size_t n)
{
	while (n--)
		buf_putc(out, ' ');
}

void columns_print(struct columns *columns, struct buf *out)
{
	const char *cell = columns->cells.data, *end = cell + columns->cells.len;
	size_t width[COLUMNS_MAX], n = strlen(columns->align);

	measure(columns, width);
	for (size_t at = 0; cell < end; at = (at + 1) % n, cell += strlen(cell) + 1) {
		size_t blanks = width[at] - text_columns(cell);
		bool left = columns->align[at] == 'l';

		add_blanks(out, left ? 2 : 2 + blanks);
		buf_puts(out, cell);
		if (at + 1 == n)
			buf_putc(out, '\n');
		else if (left)
			add_blanks(out, blanks);
	}
	buf_free(&columns->cells);
}
