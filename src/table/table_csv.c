// SPDX-License-Identifier: MIT
/*
 * Tables as RFC 4180 has them, but for the lines' ends, which are Unix'. Several are divided by an
 * empty line.
 */
#include <string.h>

#include "base/text.h"
#include "table/table_form.h"

static struct buf *out_of(struct table *table)
{
	return table->out;
}

static void csv_begin(struct table *table, const char *key, const char *title)
{
	const char *name;

	if (table->tables)
		buf_puts(out_of(table), "\n");
	table_make_keys(table);
	name = table->keys.data;
	for (size_t i = 0; i < table->n_columns; i++, name += strlen(name) + 1) {
		if (i)
			buf_putc(out_of(table), ',');
		text_add_csv(out_of(table), name);
	}
	buf_puts(out_of(table), "\n");
}

/* A file that is looked at on a terminal must not command it. */
static void add_text(struct buf *out, const char *text)
{
	AT_END(buf_free) struct buf safe = { 0 };

	text_add_safe(&safe, text);
	text_add_csv(out, safe.data ? safe.data : "");
}

static void csv_cell(struct table *table, const struct table_column *column,
                     const struct table_value *value)
{
	struct buf *out = out_of(table);

	if (table->at)
		buf_putc(out, ',');
	if (value->kind == VALUE_TEXT) {
		add_text(out, value->text);
	} else if (value->kind == VALUE_TRIPLE) {
		for (int i = 0; i < 3; i++) {
			if (i)
				buf_putc(out, ' ');
			buf_u64(out, value->triple[i]);
		}
	} else {
		table_add_number(out, column, value);
	}
}

static void csv_end_row(struct table *table)
{
	buf_puts(out_of(table), "\n");
}

static void csv_end(struct table *table)
{
}

const struct table_form_ops table_csv_form = {
	.ending = ".csv",
	.begin = csv_begin,
	.cell = csv_cell,
	.end_row = csv_end_row,
	.end = csv_end,
};
