// SPDX-License-Identifier: MIT
#include "table/table_text.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "table/table_form.h"

#define NAME_LEAST  24 /* columns of the last cell, however narrow the terminal */
#define NEXT_INDENT 4  /* blanks before what goes on in a next line */

/* Append to `cells`, then end the cell; the rows follow from their number. */
static void columns_end_cell(struct columns *columns)
{
	buf_putc(&columns->cells, '\0');
}

/* `headings`: one for each column of `align`, divided by '|'. */
static void columns_init(struct columns *columns, const char *align, const char *headings)
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

/* Appends the rows so far, two blanks before each, and forgets them. */
static void columns_piece(struct columns *columns, struct buf *out)
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

/* The last piece, or the only one; frees the table. */
static void columns_print(struct columns *columns, struct buf *out)
{
	columns_piece(columns, out);
	buf_free(&columns->cells);
}

#define PIECE_ROWS 256 /* laid out together; the first so many decide the widths */

static bool is_text(const struct table_column *column)
{
	return column->type == TABLE_TEXT || column->type == TABLE_WORDS;
}

/* "12.5" below "% HIDDEN", "BUSY (%)" */
static bool wants_percent(const struct table_column *column)
{
	return (column->type == TABLE_PERCENT || column->type == TABLE_CHANGE) &&
	       !strchr(column->name, '%');
}

static void add_heading(struct buf *headings, const struct table_column *column)
{
	buf_puts(headings, column->name);
	if (wants_percent(column))
		buf_puts(headings, " (%)");
	else if (column->type == TABLE_TIME)
		buf_puts(headings, " (ms)");
	else if (column->type == TABLE_MB)
		buf_puts(headings, " (MB)");
	else if (column->type == TABLE_MB_RATE)
		buf_puts(headings, " (MB/s)");
}

static void add_headings(struct table *table)
{
	const struct table_column *last = NULL;
	AT_END(buf_free) struct buf headings = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < table->n_columns; i++) {
		const struct table_column *column = &table->columns[i];

		if (!table_shows(table, column))
			continue;
		if (n)
			buf_putc(&headings, '|');
		add_heading(&headings, column);
		table->align[n++] = is_text(column) ? 'l' : 'r';
		last = column;
	}
	table->align[n] = '\0';
	columns_init(&table->layout, table->align, headings.data);
	table->layout.screen = table->options.width;
	table->layout.words = last->type == TABLE_WORDS;
}

static void add_title(struct table *table, const char *title, bool apart)
{
	struct buf *out = table->out;
	size_t from;

	if (apart)
		buf_putc(out, '\n');
	from = out->len;
	if (title)
		buf_printf(out, table->options.color ? "\033[1m%s\033[0m\n" : "%s\n", title);
	text_wrap_lines(out, from, table->options.width);
}

static void text_begin(struct table *table, const char *key, const char *title)
{
	table->title = title;
	if (!table->options.page)
		add_title(table, title, table->tables > 0);
	add_headings(table);
}

static double magnitude(const struct table_value *value)
{
	if (value->kind == VALUE_U64)
		return (double)value->u64;
	return fabs(value->kind == VALUE_REAL ? value->real : (double)value->s64);
}

static bool is_negative(const struct table_value *value)
{
	if (value->kind == VALUE_REAL)
		return value->real < 0;
	return value->kind != VALUE_U64 && value->s64 < 0;
}

/* What is shown as 0.0 has no sign. */
static bool is_nothing(const struct table_column *column, const struct table_value *value)
{
	return magnitude(value) < (column->type == TABLE_CHANGE ? 0.05 : 1e-300);
}

static uint64_t whole(const struct table_value *value)
{
	return value->kind == VALUE_U64 ? value->u64 : number_rounded(magnitude(value));
}

static void add_number(struct buf *out, const struct table_column *column,
                       const struct table_value *value)
{
	switch (column->type) {
	case TABLE_DURATION:
		buf_duration(out, whole(value));
		break;
	case TABLE_TIME:
		buf_fixed(out, (whole(value) + 500) / 1000, 3);
		break;
	case TABLE_BYTES:
		buf_bytes(out, whole(value));
		break;
	case TABLE_RATE:
		buf_bytes(out, whole(value));
		buf_puts(out, "/s");
		break;
	case TABLE_MB:
	case TABLE_MB_RATE:
		table_add_real(out, magnitude(value) / 1e6, 3);
		break;
	case TABLE_PERCENT:
	case TABLE_CHANGE:
		table_add_real(out, magnitude(value), 1);
		break;
	case TABLE_REAL:
		if (column->decimals)
			table_add_real(out, magnitude(value), column->decimals);
		else
			table_add_significant(out, magnitude(value), 4);
		break;
	default:
		buf_u64(out, whole(value));
		break;
	}
}

static bool has_sign(const struct table_column *column, const struct table_value *value)
{
	return value->kind == VALUE_DIFFERENCE || column->type == TABLE_CHANGE;
}

static void text_cell(struct table *table, const struct table_column *column,
                      const struct table_value *value)
{
	struct buf *out = &table->layout.cells;

	if (value->scaled)
		buf_putc(out, '~');
	switch (value->kind) {
	case VALUE_UNKNOWN:
		buf_putc(out, table->options.scale > 1 && column->flags & TABLE_EXACT ? '?' : '-');
		break;
	case VALUE_BOOL:
		buf_puts(out, value->u64 ? "yes" : "no");
		break;
	case VALUE_TEXT:
		text_add_safe(out, value->text);
		break;
	case VALUE_TRIPLE:
		buf_putc(out, '(');
		for (int i = 0; i < 3; i++) {
			buf_u64(out, value->triple[i]);
			buf_putc(out, i < 2 ? ',' : ')');
		}
		break;
	default:
		if (column->flags & TABLE_NO_ZERO && !magnitude(value)) {
			buf_putc(out, '-');
			break;
		}
		if (is_negative(value) && !is_nothing(column, value))
			buf_putc(out, '-');
		else if (has_sign(column, value) && !is_nothing(column, value))
			buf_putc(out, '+');
		add_number(out, column, value);
		break;
	}
	columns_end_cell(&table->layout);
}

static void text_end_row(struct table *table)
{
	if (!table->options.page && table->rows % PIECE_ROWS == PIECE_ROWS - 1)
		columns_piece(&table->layout, table->out);
}

/* A table without rows is its notes, or says that there is nothing; in a page it is not there. */
static void text_end(struct table *table)
{
	bool shown = table->rows || (table->options.page && table->notes.len);
	struct buf *out = table->out;
	size_t from;

	if (shown && table->options.page && table->title)
		add_title(table, table->title, true);
	if (shown)
		columns_print(&table->layout, out);
	else if (!table->notes.len && !table->options.page)
		buf_puts(out, "  none\n");
	buf_free(&table->layout.cells);
	from = out->len;
	for (const char *note = table->notes.data; note && *note; note = strchr(note, '\n') + 1) {
		buf_puts(out, "  ");
		buf_add(out, note, strchr(note, '\n') + 1 - note);
	}
	text_wrap_lines(out, from, table->options.width);
}

static void text_passage(struct table *table, const struct table_passage *passage)
{
	add_title(table, passage->title, table->tables > 0);
	buf_puts(table->out, passage->lines);
}

const struct table_form_ops table_text_form = {
	.ending = ".txt",
	.begin = text_begin,
	.cell = text_cell,
	.end_row = text_end_row,
	.end = text_end,
	.passage = text_passage,
};

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
