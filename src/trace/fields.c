// SPDX-License-Identifier: MIT
#include "trace/fields.h"

#include "base/array.h"
#include "trace/codec.h"

/* ---- rows ---------------------------------------------------------------------------------- */

#define ROW(record, id, member, type_, ...)                                                        \
	[id... id##_LAST] = { .name = #member,                                                     \
		              .type = MEMBER_##type_,                                              \
		              .number = id,                                                        \
		              .count = FIELD_VALUES(record, member, type_),                        \
		              .offset = offsetof(struct record, member),                           \
		              __VA_ARGS__ },

const struct field call_fields[] = { CALL_FIELDS(ROW) };
const struct field activity_fields[] = { ACTIVITY_FIELDS(ROW) };
const struct field range_fields[] = { RANGE_FIELDS(ROW) };
const struct field sample_fields[] = { SAMPLE_FIELDS(ROW) };
const struct field metrics_fields[] = { METRICS_FIELDS(ROW) };
const struct field stall_fields[] = { STALL_FIELDS(ROW) };

const struct fields_of fields_of[FIELDS] = {
	[FIELDS_CALL] = { "call", call_fields, ARRAY_SIZE(call_fields) },
	[FIELDS_ACTIVITY] = { "activity", activity_fields, ARRAY_SIZE(activity_fields) },
	[FIELDS_RANGE] = { "range", range_fields, ARRAY_SIZE(range_fields) },
	[FIELDS_SAMPLE] = { "sample", sample_fields, ARRAY_SIZE(sample_fields) },
	[FIELDS_METRICS] = { "metrics", metrics_fields, ARRAY_SIZE(metrics_fields) },
	[FIELDS_STALL] = { "stall", stall_fields, ARRAY_SIZE(stall_fields) },
};

/* ---- all of a record ----------------------------------------------------------------------- */

/*
 * The rows are known to the compiler, which makes straight code of a loop over them: it is run for
 * each event.
 */
#define EACH     _Pragma("GCC unroll 32")
#define STRAIGHT static inline __attribute__((always_inline))

STRAIGHT void *place_of(const struct field *field, unsigned value, void *record, size_t size)
{
	return (char *)record + field->offset + (value - field->number) * size;
}

STRAIGHT uint64_t value_of(const struct field *field, unsigned value, void *record,
                           struct names *names, uint32_t stack)
{
	switch (field->type) {
	case MEMBER_U32:
	case MEMBER_WORD:
		return *(uint32_t *)place_of(field, value, record, sizeof(uint32_t));
	case MEMBER_U64:
		return *(uint64_t *)place_of(field, value, record, sizeof(uint64_t));
	case MEMBER_S32:
		return (uint64_t)(int64_t) * (int32_t *)place_of(field, value, record, 0);
	case MEMBER_MEASURE:
		return *(uint64_t *)place_of(field, value, record, sizeof(int64_t)) + 1;
	case MEMBER_TEXT:
		return names_number(names, *(const char **)place_of(field, value, record, 0));
	case MEMBER_STACK:
		return stack;
	case MEMBER_NONE:
		break;
	}
	return 0;
}

STRAIGHT void list_all(const struct field *fields, unsigned count, void *record,
                       struct names *names, uint32_t stack, uint64_t *values)
{
	EACH for (unsigned i = 0; i < count; i++)
	{
		if (fields[i].type != MEMBER_NONE)
			values[i] = value_of(&fields[i], i, record, names, stack);
	}
}

void fields_list(enum fields of, const void *record, struct names *names, uint32_t stack,
                 uint64_t *values)
{
#define LIST(fields) list_all(fields, ARRAY_SIZE(fields), (void *)record, names, stack, values)
	switch (of) {
	case FIELDS_CALL:
		LIST(call_fields);
		break;
	case FIELDS_ACTIVITY:
		LIST(activity_fields);
		break;
	case FIELDS_RANGE:
		LIST(range_fields);
		break;
	case FIELDS_SAMPLE:
		LIST(sample_fields);
		break;
	case FIELDS_METRICS:
		LIST(metrics_fields);
		break;
	case FIELDS_STALL:
		LIST(stall_fields);
		break;
	case FIELDS:
		break;
	}
#undef LIST
}

/* False where a text is not there. */
STRAIGHT bool fill(const struct field *field, unsigned i, void *record, const struct names *names,
                   uint64_t value)
{
	const char **text;

	switch (field->type) {
	case MEMBER_U32:
	case MEMBER_S32:
		*(uint32_t *)place_of(field, i, record, sizeof(uint32_t)) = (uint32_t)value;
		break;
	case MEMBER_WORD:
		*(uint32_t *)place_of(field, i, record, 0) =
			value < field->words ? (uint32_t)value : 0;
		break;
	case MEMBER_U64:
		*(uint64_t *)place_of(field, i, record, sizeof(uint64_t)) = value;
		break;
	case MEMBER_MEASURE:
		*(uint64_t *)place_of(field, i, record, sizeof(int64_t)) = value - 1;
		break;
	case MEMBER_TEXT:
		text = place_of(field, i, record, 0);
		*text = names_text(names, value);
		return *text || !value;
	case MEMBER_STACK:
	case MEMBER_NONE:
		break;
	}
	return true;
}

STRAIGHT bool fill_all(const struct field *fields, unsigned count, void *record,
                       const struct names *names, const uint64_t *values)
{
	bool whole = true;

	EACH for (unsigned i = 0; i < count; i++) whole &=
		fill(&fields[i], i, record, names, values[i]);
	return whole;
}

bool fields_fill(enum fields of, void *record, const struct names *names, const uint64_t *values)
{
#define FILL(fields) fill_all(fields, ARRAY_SIZE(fields), record, names, values)
	switch (of) {
	case FIELDS_CALL:
		return FILL(call_fields);
	case FIELDS_ACTIVITY:
		return FILL(activity_fields);
	case FIELDS_RANGE:
		return FILL(range_fields);
	case FIELDS_SAMPLE:
		return FILL(sample_fields);
	case FIELDS_METRICS:
		return FILL(metrics_fields);
	case FIELDS_STALL:
		return FILL(stall_fields);
	case FIELDS:
		break;
	}
#undef FILL
	return false;
}
