// SPDX-License-Identifier: MIT
#include "table/columns.h"

#include <stdbool.h>
#include <string.h>

#include "base/text.h"

#define NAME_LEAST  24 /* columns of the last cell, however narrow the terminal */
#define NEXT_INDENT 4  /* blanks before what goes on in a next line */

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

static void measure(struct columns *columns)
{
	const char *cell = columns->cells.data, *end = cell + columns->cells.len;

	for (size_t at = 0; cell < end; at = (at + 1) % columns->n, cell += strlen(cell) + 1) {
		size_t used = text_columns(cell);

		columns->width[at] = used > columns->width[at] ? used : columns->width[at];
	}
}

static bool ends_in_name(const struct columns *columns)
{
	return columns->align[columns->n - 1] == 'l';
}

/* What a column wants at least. A name is cut, but not to nothing. */
static size_t least(const struct columns *columns, size_t at)
{
	size_t width = columns->width[at];

	if (at + 1 == columns->n && ends_in_name(columns) && width > NAME_LEAST)
		width = NAME_LEAST;
	return columns->screen && width > columns->screen - NEXT_INDENT
	               ? columns->screen - NEXT_INDENT
	               : width;
}

/*
 * Whether a cell begins a line of its own. In every row these are the same cells, but for names at
 * the end that would be cut to little.
 */
static bool breaks(const struct columns *columns, size_t at, size_t used, const char *cell)
{
	size_t want = least(columns, at);

	if (at + 1 == columns->n && ends_in_name(columns) && text_columns(cell) < want)
		want = text_columns(cell);
	return columns->screen > NEXT_INDENT && at && used + 2 + want > columns->screen;
}

static void print_cell(const struct columns *columns, size_t at, const char *cell, size_t len,
                       size_t room, struct buf *out)
{
	bool left = columns->align[at] == 'l', last = at + 1 == columns->n;
	size_t used = left ? text_columns(cell) : len; /* numbers are plain */
	size_t width = columns->width[at] < room ? columns->width[at] : room;
	size_t blanks = width > used ? width - used : 0;

	buf_fill(out, ' ', left ? 2 : 2 + blanks);
	if (left && used > room)
		(last && !columns->words ? text_add_name : text_add_cut)(out, cell, room);
	else
		buf_add(out, cell, len);
	if (last)
		buf_putc(out, '\n');
	else if (left && blanks)
		buf_fill(out, ' ', blanks);
}

/* Blanks at the end of a line that goes on. */
static void break_line(struct buf *out)
{
	while (out->len && out->data[out->len - 1] == ' ')
		out->len--;
	buf_putc(out, '\n');
	buf_fill(out, ' ', NEXT_INDENT - 2);
}

void columns_piece(struct columns *columns, struct buf *out)
{
	const char *cell = columns->cells.data, *end = cell + columns->cells.len;
	size_t used = 0, len;

	if (!columns->width[0])
		measure(columns);
	for (size_t at = 0; cell < end; cell += len + 1) {
		bool fits = true;

		len = strlen(cell);
		if (!at) {
			used = 0;
		} else if (breaks(columns, at, used, cell)) {
			break_line(out);
			used = NEXT_INDENT - 2;
		}
		fits = !columns->screen || columns->screen <= used + 2;
		print_cell(columns, at, cell, len, fits ? (size_t)-1 : columns->screen - used - 2,
		           out);
		used += 2 + least(columns, at);
		at = at + 1 < columns->n ? at + 1 : 0;
	}
	buf_reset(&columns->cells);
}

void columns_print(struct columns *columns, struct buf *out)
{
	columns_piece(columns, out);
	buf_free(&columns->cells);
}
