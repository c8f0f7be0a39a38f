// SPDX-License-Identifier: MIT
#include "table/table.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "table/table_form.h"

/* ---- table row ----------------------------------------------------------------------------- */

/* Cells from a row: what its description says stands where. */

static bool has_needs(const struct table *table, const struct table_column *column)
{
	return !(column->needs & ~table->options.has);
}

bool table_shows(const struct table *table, const struct table_column *column)
{
	if (table->options.json || table->options.page)
		return has_needs(table, column) &&
		       (table->options.json ? column->key : column->name) != NULL;
	return column->name != NULL;
}

static struct table_value unsigned_value(uint64_t number)
{
	return (struct table_value){ .kind = number == TABLE_NOT_KNOWN ? VALUE_UNKNOWN : VALUE_U64,
		                     .u64 = number };
}

static struct table_value text_value(const char *text)
{
	return (struct table_value){ .kind = text ? VALUE_TEXT : VALUE_UNKNOWN, .text = text };
}

static struct table_value value_at(enum table_field field, const void *at)
{
	switch (field) {
	case FIELD_U64:
		return unsigned_value(*(const uint64_t *)at);
	case FIELD_U32:
		return unsigned_value(*(const uint32_t *)at);
	case FIELD_S64:
		return (struct table_value){ .kind = VALUE_S64, .s64 = *(const int64_t *)at };
	case FIELD_S32:
		return (struct table_value){ .kind = VALUE_S64, .s64 = *(const int32_t *)at };
	case FIELD_BOOL:
		return (struct table_value){ .kind = VALUE_BOOL, .u64 = *(const bool *)at };
	case FIELD_REAL:
		return (struct table_value){ .kind = isfinite(*(const double *)at) ? VALUE_REAL
			                                                           : VALUE_UNKNOWN,
			                     .real = *(const double *)at };
	case FIELD_TEXT:
		return text_value(*(const char *const *)at);
	case FIELD_CHARS:
		return text_value(at);
	case FIELD_BUF:
		return text_value(((const struct buf *)at)->data);
	case FIELD_TRIPLE:
		return (struct table_value){ .kind = VALUE_TRIPLE, .triple = at };
	default:
		return (struct table_value){ .kind = VALUE_UNKNOWN };
	}
}

static struct table_value value_of(const struct table_column *column, const void *row)
{
	if (column->via)
		memcpy(&row, (const char *)row + column->via - 1, sizeof(row));
	if (!row)
		return (struct table_value){ .kind = VALUE_UNKNOWN };
	return value_at(column->field, (const char *)row + column->offset);
}

static double table_number_of(const struct table_value *value);

double table_number_at(const struct table_column *column, const void *row)
{
	struct table_value value = value_of(column, row);

	return value.kind == VALUE_UNKNOWN || value.kind == VALUE_TEXT ? NAN
	                                                               : table_number_of(&value);
}

static bool is_zero(const struct table_value *value)
{
	return value->kind == VALUE_U64 ? !value->u64 : value->kind == VALUE_TEXT && !*value->text;
}

void table_read(const struct table *table, const struct table_column *column, const void *row,
                struct table_value *value)
{
	*value = value_of(column, row);
	if (!has_needs(table, column))
		value->kind = VALUE_UNKNOWN;
	if (column->flags & TABLE_ZERO && is_zero(value))
		value->kind = VALUE_UNKNOWN;
	if (column->type == TABLE_TIME && value->kind == VALUE_U64)
		value->u64 = value->u64 > table->begin_ns ? value->u64 - table->begin_ns : 0;
}

void table_as_seen(struct table *table, bool as_seen)
{
	table->as_seen = as_seen;
}

void table_scale(const struct table *table, const struct table_column *column,
                 struct table_value *value)
{
	if (table->options.scale <= 1)
		return;
	if (column->flags & TABLE_EXACT) {
		value->kind = VALUE_UNKNOWN;
	} else if (column->flags & TABLE_SCALED && value->kind == VALUE_U64 && !table->as_seen) {
		value->u64 = number_rounded((double)value->u64 * table->options.scale);
		value->scaled = true;
	}
}

/* ---- table --------------------------------------------------------------------------------- */

static const struct table_form_ops *const forms[TABLE_FORM_COUNT] = {
	[TABLE_FORM_TEXT] = &table_text_form,
	[TABLE_FORM_CSV] = &table_csv_form,
	[TABLE_FORM_JSON] = &table_json_form,
	[TABLE_FORM_HTML] = &table_html_form,
};

const char *const table_form_names[] = { "table", "csv", "json", NULL };

const char *table_form_ending(enum table_form form)
{
	return forms[form]->ending;
}

struct table *table_open(const struct table_options *options, bool parts)
{
	struct table *table = xcalloc(1, sizeof(*table));

	table->options = *options;
	table->parts = parts;
	if (options->json)
		table->ops = &table_members_form;
	else
		table->ops = forms[options->page ? TABLE_FORM_TEXT : options->form];
	table->out = options->page ? options->page : &table->lines.pending;
	if (options->page || options->json)
		table->lines.what = "the page";
	else
		lines_init(&table->lines, options->out, "the report");
	table->json = (struct json){ .out = table->out, .lines = parts ? 2 : 1 };
	return table;
}

void table_close(struct table *table)
{
	if (!table)
		return;
	lines_free(&table->lines);
	buf_free(&table->notes);
	buf_free(&table->keys);
	buf_free(&table->layout.cells);
	buf_free(&table->sort.offered);
	table_order_free(table->order);
	free(table);
}

const struct table_options *table_options(const struct table *table)
{
	return &table->options;
}

void table_begin(struct table *table, const char *key, const char *title,
                 const struct table_column *columns, size_t n)
{
	memcpy(table->columns, columns, n * sizeof(*columns));
	table->n_columns = n;
	table->at = 0;
	table->rows = table->left_out = 0;
	table->whole = false;
	if (table_sort_begin(table))
		table_order_by_column(table);
	table->ops->begin(table, key, title);
	table->tables++;
}

void table_whole(struct table *table)
{
	table->whole = true;
}

void table_of_run(struct table *table, unsigned has, uint64_t begin_ns)
{
	table->options.has = has;
	table->begin_ns = begin_ns;
}

void table_fit(struct table *table, size_t width)
{
	if (!table->layout.screen)
		table->layout.screen = width;
}

/* ---- cells --------------------------------------------------------------------------------- */

static bool is_left_out(const struct table *table)
{
	return table->options.top && !table->options.json && !table->whole &&
	       table->rows >= table->options.top;
}

static void add_cell(struct table *table, const struct table_value *given)
{
	struct table_value value = *given;
	struct table_column column;

	if (table->at >= table->n_columns) {
		table->at++; /* told at the row's end */
		return;
	}
	column = table->columns[table->at];
	if (table->as_set)
		column.type = table->as;
	table->as_set = false;
	table_scale(table, &column, &value);
	if (table->order) {
		table_order_cell(table, column.type, &value);
	} else if (!is_left_out(table)) {
		if (!table->at && table->ops->begin_row)
			table->ops->begin_row(table);
		if (table_shows(table, &column))
			table->ops->cell(table, &column, &value);
	}
	table->at++;
}

void table_u64(struct table *table, uint64_t value)
{
	add_cell(table, &(struct table_value){ .kind = VALUE_U64, .u64 = value });
}

void table_s64(struct table *table, int64_t value)
{
	add_cell(table, &(struct table_value){ .kind = VALUE_S64, .s64 = value });
}

void table_difference(struct table *table, int64_t value)
{
	add_cell(table, &(struct table_value){ .kind = VALUE_DIFFERENCE, .s64 = value });
}

void table_real(struct table *table, double value)
{
	if (isfinite(value))
		add_cell(table, &(struct table_value){ .kind = VALUE_REAL, .real = value });
	else
		table_unknown(table);
}

void table_share(struct table *table, uint64_t part, uint64_t whole)
{
	table_real(table, whole ? 100 * (double)part / (double)whole : NAN);
}

void table_text(struct table *table, const char *text)
{
	if (text)
		add_cell(table, &(struct table_value){ .kind = VALUE_TEXT, .text = text });
	else
		table_unknown(table);
}

void table_triple(struct table *table, const uint32_t value[3])
{
	add_cell(table, &(struct table_value){ .kind = VALUE_TRIPLE, .triple = value });
}

void table_unknown(struct table *table)
{
	add_cell(table, &(struct table_value){ .kind = VALUE_UNKNOWN });
}

void table_known(struct table *table, bool known, uint64_t value)
{
	if (known)
		table_u64(table, value);
	else
		table_unknown(table);
}

void table_maybe(struct table *table, struct table_maybe cell)
{
	table_known(table, cell.known, cell.value);
}

void table_bool(struct table *table, bool value)
{
	add_cell(table, &(struct table_value){ .kind = VALUE_BOOL, .u64 = value });
}

void table_fields(struct table *table, const void *row)
{
	struct table_value value;

	for (; table->at < table->n_columns && table->columns[table->at].field;) {
		table_read(table, &table->columns[table->at], row, &value);
		add_cell(table, &value);
	}
}

void table_row(struct table *table, const void *row)
{
	table_fields(table, row);
	table_end_row(table);
}

void table_rows(struct table *table, const void *rows, size_t n, size_t row_bytes)
{
	for (size_t i = 0; i < n; i++)
		table_row(table, (const char *)rows + i * row_bytes);
}

void table_as(struct table *table, enum table_type type)
{
	table->as = type;
	table->as_set = true;
}

void table_write_row(struct table *table)
{
	table->ops->end_row(table);
	table->rows++;
	if (table->out == &table->lines.pending)
		lines_added(&table->lines, NULL); /* a failure is kept */
}

/* A mistake of the program: a row whose cells stand below others' headings is worse than none. */
static bool is_whole(struct table *table)
{
	if (table->at == table->n_columns)
		return true;
	if (!table->lines.failure.code)
		err_set(&table->lines.failure, EBADMSG,
		        "a row has %zu cells in a table of %zu columns, of which the first is "
		        "'%s': this is a mistake in cuscope",
		        table->at, table->n_columns, table->columns[0].name);
	table->at = 0;
	return false;
}

void table_end_row(struct table *table)
{
	if (!is_whole(table))
		return;
	if (table->order)
		table_order_row(table);
	else if (!is_left_out(table))
		table_write_row(table);
	else
		table->left_out++;
	table->at = 0;
}

/* ---- ends ---------------------------------------------------------------------------------- */

static __attribute__((format(printf, 2, 0))) void note_add(struct table *table, const char *fmt,
                                                           va_list ap)
{
	AT_END(buf_free) struct buf note = { 0 };

	buf_vprintf(&note, fmt, ap);
	text_add_safe(&table->notes, note.data ? note.data : ""); /* names may stand in it */
	buf_putc(&table->notes, '\n');
}

void table_note(struct table *table, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	note_add(table, fmt, ap);
	va_end(ap);
}

void table_note_if(struct table *table, bool is, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (is)
		note_add(table, fmt, ap);
	va_end(ap);
}

int table_failed(const struct table *table, struct err *err)
{
	if (table->lines.failure.code && err)
		*err = table->lines.failure;
	return table->lines.failure.code;
}

static void tell_notes(struct table *table)
{
	char *rest = table->notes.data, *line;

	if (table->options.form == TABLE_FORM_TEXT || !table->options.note)
		return;
	while ((line = strsep(&rest, "\n")) && *line)
		table->options.note(table->options.data, table->options.name, line);
}

/* What goes to a page is written by whoever made the page. */
static int flush(struct table *table, struct err *err)
{
	if (table->out != &table->lines.pending || table->options.json)
		return table_failed(table, err);
	return lines_flush(&table->lines, err);
}

int table_end(struct table *table, struct err *err)
{
	if (table->order)
		table_order_write(table);
	if (table->left_out && !table->options.page)
		table_note(table, "rows left out by --top: %zu", table->left_out);
	table->ops->end(table);
	tell_notes(table);
	buf_reset(&table->notes);
	return flush(table, err);
}

static void write_lines(struct table *table, const struct table_passage *passage)
{
	const struct table_column column = { passage->column, TABLE_WORDS };
	const char *at = passage->lines;
	AT_END(buf_free) struct buf line = { 0 };

	table_begin(table, passage->key, passage->title, &column, 1);
	table_whole(table);
	for (size_t len; *at; at += len + (at[len] == '\n')) {
		len = strcspn(at, "\n");
		buf_reset(&line);
		if (!len) /* between tables alone */
			continue;
		buf_add(&line, at, len);
		table_text(table, line.data);
		table_end_row(table);
	}
}

int table_passage(struct table *table, const struct table_passage *passage, struct err *err)
{
	if (!table->ops->passage) {
		write_lines(table, passage);
		return table_end(table, err);
	}
	table->ops->passage(table, passage);
	table->tables++;
	return flush(table, err);
}

int table_finish(struct table *table, struct err *err)
{
	table_sort_end(table);
	if (table->ops->finish)
		table->ops->finish(table);
	return flush(table, err);
}

/* ---- what csv and json share ----------------------------------------------------------------- */

void table_make_keys(struct table *table)
{
	static const char *const unit[TABLE_TYPES] = {
		[TABLE_DURATION] = " (ns)", [TABLE_TIME] = " (ns)",
		[TABLE_BYTES] = " (bytes)", [TABLE_RATE] = " (bytes/s)",
		[TABLE_PERCENT] = " (%)",   [TABLE_CHANGE] = " (%)",
		[TABLE_MB] = " (MB)",       [TABLE_MB_RATE] = " (MB/s)",
	};

	buf_reset(&table->keys);
	for (size_t i = 0; i < table->n_columns; i++) {
		const struct table_column *column = &table->columns[i];

		buf_puts(&table->keys, column->name);
		if (unit[column->type])
			buf_puts(&table->keys, unit[column->type]);
		buf_putc(&table->keys, '\0');
	}
}

void table_add_real(struct buf *out, double value, unsigned decimals)
{
	static const double scale[] = { 1, 10, 100, 1000 };

	if (fabs(value) > 1e15) { /* beyond what fits below */
		buf_printf(out, "%.*f", (int)decimals, value);
		return;
	}
	if (value < 0 && -value * scale[decimals] >= 0.5)
		buf_putc(out, '-');
	buf_fixed(out, number_rounded(fabs(value) * scale[decimals]), decimals);
}

void table_add_significant(struct buf *out, double value, int digits)
{
	if (fabs(value) >= pow(10, digits) - 0.5 && fabs(value) < 1e15)
		buf_printf(out, "%.0f", value);
	else
		buf_printf(out, "%.*g", digits, value);
}

static double table_number_of(const struct table_value *value)
{
	if (value->kind == VALUE_U64)
		return (double)value->u64;
	return value->kind == VALUE_REAL ? value->real : (double)value->s64;
}

void table_add_number(struct buf *out, const struct table_column *column,
                      const struct table_value *value)
{
	if (value->kind != VALUE_UNKNOWN &&
	    (column->type == TABLE_MB || column->type == TABLE_MB_RATE)) {
		table_add_real(out, table_number_of(value) / 1e6, 3);
		return;
	}
	switch (value->kind) {
	case VALUE_U64:
		buf_u64(out, value->u64);
		break;
	case VALUE_S64:
	case VALUE_DIFFERENCE:
		buf_s64(out, value->s64);
		break;
	case VALUE_BOOL:
		buf_puts(out, value->u64 ? "true" : "false");
		break;
	case VALUE_REAL:
		if (column->type == TABLE_REAL)
			table_add_significant(out, value->real, 6);
		else
			table_add_real(out, value->real, 1);
		break;
	default:
		break;
	}
}
