// SPDX-License-Identifier: MIT
/* The column by which a user wants the rows: which it is, and how its values are put in order. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/sorter.h"
#include "base/xalloc.h"
#include "table/table_form.h"

#define LAST UINT64_MAX /* what is unknown stands behind everything, in both directions */

static char plain(char c)
{
	return c == '_' || c == '-' ? ' ' : (char)tolower((unsigned char)c);
}

/* "total_time" is "Total Time", and so is "Total Time (ns)", as it stands above a csv. */
static bool is_column(const char *name, const char *typed, size_t len)
{
	size_t i = 0;

	while (i < len && name[i] && plain(name[i]) == plain(typed[i]))
		i++;
	return !name[i] && (i == len || (len - i > 2 && !strncmp(typed + i, " (", 2)));
}

static size_t without_direction(const char *typed, const char **direction)
{
	const char *colon = strrchr(typed, ':');

	*direction = colon && (!strcmp(colon, ":asc") || !strcmp(colon, ":desc")) ? colon + 1 : "";
	return **direction ? (size_t)(colon - typed) : strlen(typed);
}

/* Names and times upwards, all else from the largest. */
static bool goes_down(enum table_type type, const char *direction)
{
	if (*direction)
		return !strcmp(direction, "desc");
	return type != TABLE_TEXT && type != TABLE_WORDS && type != TABLE_TIME;
}

static void offer(struct table *table)
{
	for (size_t i = 0; i < table->n_columns; i++)
		buf_printf(&table->sort.offered, "%s%s", table->sort.offered.len ? ", " : "",
		           table->columns[i].name);
}

static int no_such_column(struct table *table)
{
	return err_set(&table->lines.failure, EINVAL,
	               "--sort: %s has no column '%s'; its columns are %s", table->options.name,
	               table->options.sort, table->sort.offered.data);
}

bool table_sort_begin(struct table *table)
{
	struct table_sort *sort = &table->sort;
	const char *direction;
	size_t len;

	sort->on = false;
	if (!table->options.sort)
		return false;
	len = without_direction(table->options.sort, &direction);
	for (size_t i = 0; i < table->n_columns && !sort->on; i++) {
		enum table_type type = table->columns[i].type;

		if (!is_column(table->columns[i].name, table->options.sort, len))
			continue;
		sort->column = i;
		sort->on = sort->known = true;
		sort->down = goes_down(type, direction);
		sort->text = type == TABLE_TEXT || type == TABLE_WORDS;
	}
	if (sort->on && table->options.form == TABLE_FORM_TEXT)
		table_note(table, "rows by %s, %s (--sort)", table->columns[sort->column].name,
		           sort->text   ? sort->down ? "from Z to A" : "from A to Z"
		           : sort->down ? "the largest first"
		                        : "the smallest first");
	if (!sort->known) {
		offer(table);
		if (!table->parts) /* nothing of it was written yet */
			no_such_column(table);
	}
	return sort->on;
}

void table_sort_end(struct table *table)
{
	if (table->options.sort && table->tables && !table->sort.known &&
	    !table->lines.failure.code)
		no_such_column(table);
}

/* ---- values --------------------------------------------------------------------------------- */

/* A whole number that is larger where the real one is. */
static uint64_t order_of(double value)
{
	uint64_t bits;

	value += 0.0; /* -0 is 0 */
	memcpy(&bits, &value, sizeof(bits));
	return bits >> 63 ? ~bits : bits | 1ull << 63;
}

static double number_of(const struct table_value *value)
{
	switch (value->kind) {
	case VALUE_U64:
		return (double)value->u64;
	case VALUE_REAL:
		return value->real;
	case VALUE_TRIPLE: /* threads, blocks */
		return (double)value->triple[0] * value->triple[1] * value->triple[2];
	default:
		return (double)value->s64;
	}
}

static uint64_t table_sort_key(const struct table *table, const struct table_value *value)
{
	uint64_t key;

	if (value->kind == VALUE_UNKNOWN)
		return LAST;
	if (value->kind == VALUE_TEXT) /* these are compared themselves */
		return 0;
	key = order_of(number_of(value));
	return table->sort.down ? ~key : key;
}

/*
 * Rows that are held back until all are there, and then written in order. A row is kept as its
 * cells: a byte for the kind of value, one for its type where that is not the column's, then the
 * value. Long texts are mostly the names of a few kernels, so they are kept once.
 */

#define ROWS_BYTES  (16u << 20) /* held in memory; the others go to a file */
#define TEXTS_BYTES (16u << 20) /* kept once; the others stand in their rows */
#define TEXT_SORTED 4096        /* characters of a text that count for the order */
#define TEXT_SHORT  24          /* not worth that */

enum { TEXT_INLINE, TEXT_KEPT };

struct text {
	size_t len;
	UT_hash_handle hh;
	char bytes[];
};

struct table_order {
	struct sorter *sorter;
	struct text *texts; /* hash by content */
	size_t texts_bytes;
	struct buf row; /* that is being written */
	struct buf by;  /* the text that it is sorted by */
	uint64_t key;
	size_t rows;
	uint64_t bytes;
};

void table_order_free(struct table_order *order)
{
	if (!order)
		return;
	MAP_FREE(order->texts, free);
	sorter_free(order->sorter);
	buf_free(&order->row);
	buf_free(&order->by);
	free(order);
}

static void hold_rows(struct table *table, size_t most)
{
	struct table_order *order = xcalloc(1, sizeof(*order));

	order->sorter = sorter_new(ROWS_BYTES, most);
	table_order_free(table->order);
	table->order = order;
}

void table_in_order(struct table *table)
{
	if (!table->sort.on)
		hold_rows(table, table->options.top);
}

void table_key(struct table *table, uint64_t key)
{
	if (!table->sort.on)
		table->order->key = key;
}

/* ---- by a column ---------------------------------------------------------------------------- */

/* Rows begin with the text of that column. */
static int upwards(const void *a, const void *b)
{
	return strcmp(a, b);
}

static int downwards(const void *a, const void *b)
{
	return strcmp(b, a);
}

void table_order_by_column(struct table *table)
{
	hold_rows(table, 0); /* table_whole() may come yet */
	if (table->sort.text)
		sorter_ties(table->order->sorter, table->sort.down ? downwards : upwards);
}

static void note_column(struct table *table, const struct table_value *value)
{
	struct table_order *order = table->order;

	order->key = table_sort_key(table, value);
	if (table->sort.text && value->kind == VALUE_TEXT)
		buf_add(&order->by, value->text, strnlen(value->text, TEXT_SORTED));
}

/* ---- keeping -------------------------------------------------------------------------------- */

/* NULL: there is no room for more. */
static const char *keep_text(struct table_order *order, const char *bytes, size_t len)
{
	struct text *text = MAP_FIND_BYTES(order->texts, bytes, len);

	if (text)
		return text->bytes;
	if (order->texts_bytes + len > TEXTS_BYTES)
		return NULL;
	text = xcalloc(1, sizeof(*text) + len + 1);
	text->len = len;
	memcpy(text->bytes, bytes, len);
	HASH_ADD(hh, order->texts, bytes, len, text);
	order->texts_bytes += sizeof(*text) + len + 1;
	return text->bytes;
}

static void add_text(struct table_order *order, const char *bytes)
{
	size_t len = strlen(bytes);
	const char *kept = len > TEXT_SHORT ? keep_text(order, bytes, len) : NULL;

	buf_putc(&order->row, kept ? TEXT_KEPT : TEXT_INLINE);
	if (kept)
		buf_add(&order->row, &kept, sizeof(kept));
	else
		buf_add(&order->row, bytes, len + 1);
}

void table_order_cell(struct table *table, enum table_type type, const struct table_value *value)
{
	struct table_order *order = table->order;

	if (table->sort.on && table->at == table->sort.column)
		note_column(table, value);
	buf_putc(&order->row, (char)value->kind);
	buf_putc(&order->row, (char)type);
	switch (value->kind) {
	case VALUE_UNKNOWN:
		break;
	case VALUE_TEXT:
		add_text(order, value->text);
		break;
	case VALUE_TRIPLE:
		buf_add(&order->row, value->triple, 3 * sizeof(*value->triple));
		break;
	default:
		buf_add(&order->row, &value->u64, sizeof(value->u64));
		break;
	}
}

void table_order_row(struct table *table)
{
	struct table_order *order = table->order;
	struct buf *row;

	if (table->sort.on && table->sort.text) {
		buf_putc(&order->by, '\0');
		buf_add(&order->by, order->row.data, order->row.len);
	}
	row = table->sort.on && table->sort.text ? &order->by : &order->row;
	order->bytes += row->len; /* where they are all wanted, they go to a file */
	if (!table->options.top && order->bytes > lines_most() && !table->lines.failure.code)
		lines_say_full(&table->lines, &table->lines.failure);
	if (!table->lines.failure.code)
		sorter_add(order->sorter, order->key, row->data, row->len, &table->lines.failure);
	buf_reset(&order->row);
	buf_reset(&order->by);
	order->rows++;
}

/* ---- writing -------------------------------------------------------------------------------- */

static const char *read_text(const char **at)
{
	const char *text;

	if (*(*at)++ == TEXT_KEPT) {
		memcpy(&text, *at, sizeof(text));
		*at += sizeof(text);
	} else {
		text = *at;
		*at += strlen(text) + 1;
	}
	return text;
}

static void write_cell(struct table *table, const char **at)
{
	struct table_value value = { .kind = (unsigned char)(*at)[0] };
	struct table_column column = table->columns[table->at];
	uint32_t triple[3];

	column.type = (enum table_type)(unsigned char)(*at)[1];
	*at += 2;
	if (value.kind == VALUE_TEXT) {
		value.text = read_text(at);
	} else if (value.kind == VALUE_TRIPLE) {
		memcpy(triple, *at, sizeof(triple));
		*at += sizeof(triple);
		value.triple = triple;
	} else if (value.kind != VALUE_UNKNOWN) {
		memcpy(&value.u64, *at, sizeof(value.u64));
		*at += sizeof(value.u64);
	}
	table->ops->cell(table, &column, &value);
	table->at++;
}

static int write_row(void *data, const void *record, size_t bytes)
{
	struct table *table = data;
	const char *at = record, *end = at + bytes;

	if (table->sort.on && table->sort.text)
		at += strlen(at) + 1;
	if (table->options.top && !table->whole && table->rows >= table->options.top)
		return 0;
	if (table->ops->begin_row)
		table->ops->begin_row(table);
	table->at = 0;
	while (at < end)
		write_cell(table, &at);
	table_write_row(table);
	return table->lines.failure.code;
}

void table_order_write(struct table *table)
{
	struct table_order *order = table->order;

	table->order = NULL; /* from here on as every table */
	if (!table->lines.failure.code)
		sorter_each(order->sorter, write_row, table, &table->lines.failure);
	if (!table->lines.failure.code) /* else it was not --top that left them out */
		table->left_out = order->rows - table->rows;
	table_order_free(order);
}
