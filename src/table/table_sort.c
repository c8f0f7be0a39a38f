// SPDX-License-Identifier: MIT
/* The column by which a user wants the rows: which it is, and how its values are put in order. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

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

uint64_t table_sort_key(const struct table *table, const struct table_value *value)
{
	uint64_t key;

	if (value->kind == VALUE_UNKNOWN)
		return LAST;
	if (value->kind == VALUE_TEXT) /* these are compared themselves */
		return 0;
	key = order_of(number_of(value));
	return table->sort.down ? ~key : key;
}
