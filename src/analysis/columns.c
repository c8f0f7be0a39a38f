// SPDX-License-Identifier: MIT
#include "analysis/columns.h"

#include <stdbool.h>
#include <string.h>

#include "base/text.h"

#define NAME_LEAST 24 /* columns of the last cell, however narrow the terminal */

void columns_init(struct columns *columns, const char *align, const char *headings)
{
	memset(columns, 0, sizeof(*columns));
	columns->align = align;
	columns->n = strlen(align);
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

static void measure(struct columns *columns)
{
	const char *cell = columns->cells.data, *end = cell + columns->cells.len;

	for (size_t at = 0; cell < end; at = (at + 1) % columns->n, cell += strlen(cell) + 1) {
		size_t used = text_columns(cell);

		columns->width[at] = used > columns->width[at] ? used : columns->width[at];
	}
}

/* What the columns before the last leave of the screen. */
static size_t room_for_name(const struct columns *columns)
{
	size_t used = 2;

	if (!columns->screen)
		return (size_t)-1;
	for (size_t i = 0; i + 1 < columns->n; i++)
		used += columns->width[i] + 2;
	return columns->screen > used + NAME_LEAST ? columns->screen - used : NAME_LEAST;
}

static void print_cell(const struct columns *columns, size_t at, const char *cell, size_t len,
                       size_t room, struct buf *out)
{
	bool left = columns->align[at] == 'l', last = at + 1 == columns->n;
	size_t used = left ? text_columns(cell) : len; /* numbers are plain */
	size_t blanks = columns->width[at] > used ? columns->width[at] - used : 0;

	buf_fill(out, ' ', left ? 2 : 2 + blanks);
	if (last && left && used > room)
		(columns->words ? text_add_cut : text_add_name)(out, cell, room);
	else
		buf_add(out, cell, len);
	if (last)
		buf_putc(out, '\n');
	else if (left && blanks)
		buf_fill(out, ' ', blanks);
}

void columns_piece(struct columns *columns, struct buf *out)
{
	const char *cell = columns->cells.data, *end = cell + columns->cells.len;
	size_t room, len;

	if (!columns->width[0])
		measure(columns);
	room = room_for_name(columns);
	for (size_t at = 0; cell < end; cell += len + 1) {
		len = strlen(cell);
		print_cell(columns, at, cell, len, room, out);
		at = at + 1 < columns->n ? at + 1 : 0;
	}
	buf_reset(&columns->cells);
}

void columns_print(struct columns *columns, struct buf *out)
{
	columns_piece(columns, out);
	buf_free(&columns->cells);
}
