// SPDX-License-Identifier: MIT
/* Tables as arrays of objects, a row a line. */
#include <string.h>

#include "report/table_form.h"

static void json_begin(struct table *table, const char *key, const char *title)
{
	if (table->parts && !table->tables)
		json_open(&table->json, NULL, '{');
	table_make_keys(table);
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
	const char *key = table->key;

	table->key += strlen(key) + 1;
	if (value->kind == VALUE_UNKNOWN) {
		json_null(&table->json, key);
	} else if (value->kind == VALUE_TEXT) {
		json_string(&table->json, key, value->text);
	} else if (value->kind == VALUE_TRIPLE) {
		json_open(&table->json, key, '[');
		for (int i = 0; i < 3; i++)
			json_u64(&table->json, NULL, value->triple[i]);
		json_close(&table->json, ']');
	} else {
		json_key(&table->json, key);
		table_add_number(table->json.out, column, value);
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

static void json_finish(struct table *table)
{
	if (!table->parts)
		return;
	if (!table->tables)
		json_open(&table->json, NULL, '{');
	json_close(&table->json, '}');
	buf_putc(table->json.out, '\n');
}

const struct table_form_ops table_json_form = {
	.name = "json",
	.ending = ".json",
	.begin = json_begin,
	.begin_row = json_begin_row,
	.cell = json_cell,
	.end_row = json_end_row,
	.end = json_end,
	.finish = json_finish,
};
