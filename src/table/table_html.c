// SPDX-License-Identifier: MIT
/*
 * Tables for the script of a page (src/page): a list of them, each with its columns and their
 * types, so that a script which knows no report shows and sorts all, its rows, and its notes.
 */
#include <string.h>

#include "table/table_form.h"

static void html_begin_list(struct table *table)
{
	if (!table->tables)
		json_open(&table->json, NULL, '[');
}

static void html_add_columns(struct table *table)
{
	static const char *const types[TABLE_TYPES] = {
		[TABLE_TEXT] = "text",         [TABLE_WORDS] = "text",
		[TABLE_FIGURE] = "text",       [TABLE_NUMBER] = "number",
		[TABLE_TIME] = "time",         [TABLE_BYTES] = "bytes",
		[TABLE_DURATION] = "duration", [TABLE_RATE] = "rate",
		[TABLE_MB] = "real",           [TABLE_MB_RATE] = "real",
		[TABLE_CHANGE] = "real",       [TABLE_PERCENT] = "percent",
		[TABLE_REAL] = "real",         [TABLE_TRIPLE] = "triple",
	};
	const char *key;

	table_make_keys(table);
	key = table->keys.data;
	json_open(&table->json, "columns", '[');
	for (size_t i = 0; i < table->n_columns; i++, key += strlen(key) + 1) {
		json_open(&table->json, NULL, '{');
		json_string(&table->json, "name", key);
		json_string(&table->json, "type", types[table->columns[i].type]);
		json_close(&table->json, '}');
	}
	json_close(&table->json, ']');
}

static void html_begin(struct table *table, const char *key, const char *title)
{
	html_begin_list(table);
	json_open(&table->json, NULL, '{');
	json_string(&table->json, "key", key ? key : "");
	json_string(&table->json, "title", title ? title : "");
	html_add_columns(table);
	json_open(&table->json, "rows", '[');
}

static void html_begin_row(struct table *table)
{
	json_open(&table->json, NULL, '[');
}

static void html_cell(struct table *table, const struct table_column *column,
                      const struct table_value *value)
{
	struct json *json = &table->json;

	switch (value->kind) {
	case VALUE_UNKNOWN:
		json_null(json, NULL);
		break;
	case VALUE_TEXT:
		json_string(json, NULL, value->text);
		break;
	case VALUE_TRIPLE:
		json_open(json, NULL, '[');
		for (int i = 0; i < 3; i++)
			json_u64(json, NULL, value->triple[i]);
		json_close(json, ']');
		break;
	default:
		buf_puts(json->out, json->comma ? ", " : "");
		table_add_number(json->out, column, value);
		json->comma = true;
	}
}

static void html_end_row(struct table *table)
{
	json_close(&table->json, ']');
}

static void html_end(struct table *table)
{
	char *rest = table->notes.data, *line;

	json_close(&table->json, ']');
	json_open(&table->json, "notes", '[');
	while (rest && (line = strsep(&rest, "\n")) && *line)
		json_string(&table->json, NULL, line);
	json_close(&table->json, ']');
	json_close(&table->json, '}');
}

/* What is no table (`why`) has written itself. */
static void html_finish(struct table *table)
{
	if (!table->tables && !table->parts)
		return;
	html_begin_list(table);
	json_close(&table->json, ']');
}

const struct table_form_ops table_html_form = {
	.ending = ".html",
	.begin = html_begin,
	.begin_row = html_begin_row,
	.cell = html_cell,
	.end_row = html_end_row,
	.end = html_end,
	.finish = html_finish,
};
