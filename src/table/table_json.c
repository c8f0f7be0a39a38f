// SPDX-License-Identifier: MIT
/* Tables as arrays of objects, a row a line. */
#include <string.h>

#include "table/table_form.h"

/* A key is the same in every row: it is made once, with its quotes and what divides it. */
static void make_keys(struct table *table)
{
	struct buf plain;
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
	buf_free(&plain);
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
