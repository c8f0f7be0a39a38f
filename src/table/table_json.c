// SPDX-License-Identifier: MIT
/* Tables as arrays of objects, a row a line. */
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "table/table_form.h"

/* A key is the same in every row: it is made once, with its quotes and what divides it. */
static void make_keys(struct table *table)
{
	AT_END(buf_free) struct buf plain;
	const char *key;

	table_make_keys(table);
	plain = table->keys;
	memset(&table->keys, 0, sizeof(table->keys));
	key = plain.data;
	for (size_t i = 0; i < table->n_columns; i++, key += strlen(key) + 1) {
		buf_puts(&table->keys, i ? ", " : "");
		buf_json_string(&table->keys, key);
		buf_puts(&table->keys, ": ");
		buf_putc(&table->keys, '\0');
	}
}

static void begin_parts(struct table *table)
{
	if (table->parts && !table->tables)
		json_open(&table->json, NULL, '{');
}

static void json_begin(struct table *table, const char *key, const char *title)
{
	begin_parts(table);
	make_keys(table);
	json_open(&table->json, table->parts ? key : NULL, '[');
}

static void json_begin_row(struct table *table)
{
	json_open(&table->json, NULL, '{');
	table->key = table->keys.data;
}

static void json_cell(struct table *table, const struct table_column *column,
                      const struct table_value *value)
{
	struct buf *out = table->json.out;
	size_t len = strlen(table->key);

	buf_add(out, table->key, len);
	table->key += len + 1;
	switch (value->kind) {
	case VALUE_UNKNOWN:
		buf_puts(out, "null");
		break;
	case VALUE_TEXT:
		buf_json_string(out, value->text);
		break;
	case VALUE_TRIPLE:
		for (int i = 0; i < 3; i++) {
			buf_puts(out, i ? ", " : "[");
			buf_u64(out, value->triple[i]);
		}
		buf_putc(out, ']');
		break;
	default:
		table_add_number(out, column, value);
		break;
	}
}

static void json_end_row(struct table *table)
{
	json_close(&table->json, '}');
}

static void json_end(struct table *table)
{
	json_close(&table->json, ']');
	if (!table->parts)
		buf_putc(table->json.out, '\n');
}

static void json_passage(struct table *table, const struct table_passage *passage)
{
	begin_parts(table);
	passage->add(passage->data, &table->json, table->parts ? passage->key : NULL);
}

static void json_finish(struct table *table)
{
	if (!table->parts)
		return;
	begin_parts(table);
	json_close(&table->json, '}');
	buf_putc(table->json.out, '\n');
}

const struct table_form_ops table_json_form = {
	.ending = ".json",
	.begin = json_begin,
	.begin_row = json_begin_row,
	.cell = json_cell,
	.end_row = json_end_row,
	.end = json_end,
	.finish = json_finish,
	.passage = json_passage,
};

/* Tables of a page's json: a list of objects with short keys, or an object of them. */

static void close_group(struct table *table)
{
	if (table->group)
		json_close(table->options.json, '}');
	table->group = 0;
}

/* The key in the object that it belongs to: of "freed.count" count, in "freed". */
static const char *enter_group(struct table *table, const char *key)
{
	const char *point = strchr(key, '.');
	size_t len = point ? (size_t)(point - key) : 0;
	char name[64];

	if (len != table->group || (len && strncmp(key, table->group_key, len))) {
		close_group(table);
		if (len) {
			snprintf(name, sizeof(name), "%.*s", (int)len, key);
			json_open(table->options.json, name, '{');
		}
		table->group = len;
		table->group_key = key;
	}
	return point ? point + 1 : key;
}

static double tens(unsigned decimals)
{
	return pow(10, decimals);
}

static void add_member(struct table *table, const struct table_column *column,
                       const struct table_value *value)
{
	struct json *json = table->options.json;
	const char *key = enter_group(table, column->key);

	if (value->kind == VALUE_UNKNOWN)
		json_null(json, key);
	else if (value->kind == VALUE_TEXT)
		json_string(json, key, value->text);
	else if (value->kind == VALUE_BOOL)
		json_bool(json, key, value->u64);
	else if (value->kind == VALUE_REAL)
		json_fixed(json, key, number_rounded(value->real * tens(column->decimals)),
		           column->decimals);
	else if (value->kind != VALUE_U64)
		json_s64(json, key, value->s64);
	else if (column->decimals)
		json_fixed(json, key, value->u64, column->decimals);
	else
		json_u64(json, key, value->u64);
}

static void members_cell(struct table *table, const struct table_column *column,
                         const struct table_value *value)
{
	if (column->flags & TABLE_MEMBER)
		json_open(table->options.json, value->text, '{');
	else if (value->kind != VALUE_UNKNOWN || !(column->flags & TABLE_ABSENT))
		add_member(table, column, value);
}

void table_members(struct table *table, const struct table_column *columns, size_t n,
                   const void *row)
{
	struct table_value value;

	for (size_t i = 0; table->options.json && i < n; i++) {
		if (!table_shows(table, &columns[i]))
			continue;
		table_read(table, &columns[i], row, &value);
		table_scale(table, &columns[i], &value);
		members_cell(table, &columns[i], &value);
	}
	close_group(table);
}

static bool is_object(const struct table *table)
{
	return table->columns[0].flags & TABLE_MEMBER;
}

static void members_begin(struct table *table, const char *key, const char *title)
{
	json_open(table->options.json, key, is_object(table) ? '{' : '[');
}

static void members_begin_row(struct table *table)
{
	if (!is_object(table))
		json_open(table->options.json, NULL, '{');
}

static void members_end_row(struct table *table)
{
	close_group(table);
	json_close(table->options.json, '}');
}

static void members_end(struct table *table)
{
	json_close(table->options.json, is_object(table) ? '}' : ']');
}

const struct table_form_ops table_members_form = {
	.ending = ".json",
	.begin = members_begin,
	.begin_row = members_begin_row,
	.cell = members_cell,
	.end_row = members_end_row,
	.end = members_end,
};
