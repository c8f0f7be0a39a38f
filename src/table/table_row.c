// SPDX-License-Identifier: MIT
/* Cells from a row: what its description says stands where. */
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "table/table_form.h"

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
