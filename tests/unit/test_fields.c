// SPDX-License-Identifier: MIT
/* The rows that say what events consist of: where each field is, and that it comes back from a
 * file. */
#include "unit.h"

#include "trace/codec.h"
#include "trace/fields.h"

#define RECORD_MOST 512

static const size_t sizes[FIELDS] = {
	[FIELDS_CALL] = sizeof(struct call),
	[FIELDS_ACTIVITY] = sizeof(struct activity),
	[FIELDS_RANGE] = sizeof(struct range),
	[FIELDS_SAMPLE] = sizeof(struct sample),
	[FIELDS_METRICS] = sizeof(struct gpu_metrics_sample),
	[FIELDS_STALL] = sizeof(struct stall),
};

static size_t field_bytes(const struct field *field)
{
	switch (field->type) {
	case MEMBER_U64:
	case MEMBER_MEASURE:
		return sizeof(uint64_t);
	case MEMBER_TEXT:
	case MEMBER_STACK:
		return sizeof(void *);
	default:
		return sizeof(uint32_t);
	}
}

static void test_each_value_has_a_row(void **state)
{
	for (unsigned of = 0; of < FIELDS; of++) {
		assert_true(fields_of[of].name && fields_of[of].count);
		for (unsigned i = 0; i < fields_of[of].count; i++) {
			const struct field *field = &fields_of[of].field[i];

			assert_non_null(field->name);
			assert_in_range(i, field->number, field->number + field->count - 1);
		}
	}
}

/* Rows follow each other, and have no byte of the struct in common. */
static void test_no_two_fields_are_in_one_place(void **state)
{
	for (unsigned of = 0; of < FIELDS; of++) {
		uint8_t taken[RECORD_MOST] = { 0 };

		assert_true(sizes[of] <= sizeof(taken));
		for (unsigned i = 0; i < fields_of[of].count; i += fields_of[of].field[i].count) {
			const struct field *field = &fields_of[of].field[i];
			size_t bytes = field->count * field_bytes(field);

			assert_int_equal(field->number, i);
			assert_true(field->offset + bytes <= sizes[of]);
			for (size_t at = field->offset; at < field->offset + bytes; at++)
				assert_int_equal(taken[at]++, 0);
		}
	}
}

/* A word is known, so that it is told as it is; texts are numbered as they come; other values are
 * as large as they get. */
static uint64_t some_value(const struct field *field, unsigned i, unsigned *texts)
{
	switch (field->type) {
	case MEMBER_WORD:
		return field->words - 1;
	case MEMBER_U32:
		return 0xfffffff0u + i;
	case MEMBER_S32:
		return (uint64_t)-7 - i;
	case MEMBER_TEXT:
		return ++*texts;
	default:
		return 0xfedcba9876543200u + i;
	}
}

static void test_what_is_filled_is_listed_again(void **state)
{
	struct names *names = names_new();
	struct buf raw = { 0 };

	names_number(names, "one");
	names_number(names, "two");
	names_take(names, &raw);
	assert_true(names_read(names, (const uint8_t *)raw.data, raw.len));
	for (unsigned of = 0; of < FIELDS; of++) {
		uint64_t values[VALUE_CORRELATION] = { 0 }, again[VALUE_CORRELATION] = { 0 };
		uint64_t record[RECORD_MOST / 8] = { 0 };
		struct names *written = names_new();
		unsigned texts = 0;

		for (unsigned i = 0; i < fields_of[of].count; i++) {
			if (fields_of[of].field[i].type != MEMBER_NONE)
				values[i] = some_value(&fields_of[of].field[i], i, &texts);
		}
		assert_true(fields_fill(of, record, names, values));
		fields_list(of, record, written, (uint32_t)values[SAMPLE_VALUE_STACK], again);
		for (unsigned i = 0; i < fields_of[of].count; i++) {
			if (fields_of[of].field[i].type == MEMBER_STACK)
				assert_int_equal(again[i], (uint32_t)values[i]);
			else
				assert_int_equal(again[i], values[i]);
		}
		names_free(written);
	}
	names_free(names);
	buf_free(&raw);
}

static void test_values_are_where_the_model_has_them(void **state)
{
	uint64_t values[KEPT_MOST];
	struct activity activity;
	struct gpu_metrics_sample metrics;

	for (unsigned i = 0; i < KEPT_MOST; i++)
		values[i] = i + 1;
	values[ACTIVITY_DIRECTION] = DIRECTION_D2H;
	values[ACTIVITY_SOURCE] = ACTIVITY_MEMORY_MANAGED_STATIC;
	assert_true(fields_fill(FIELDS_ACTIVITY, &activity, NULL, values));
	assert_int_equal(activity.stream, ACTIVITY_STREAM + 1);
	assert_int_equal(activity.block[2], ACTIVITY_BLOCK + 3);
	assert_int_equal(activity.shmem_dynamic, ACTIVITY_SHMEM_DYNAMIC + 1);
	assert_int_equal(activity.bytes, ACTIVITY_BYTES + 1);
	assert_int_equal(activity.direction, DIRECTION_D2H);
	assert_int_equal(activity.source, ACTIVITY_MEMORY_MANAGED_STATIC);
	assert_int_equal(activity.peer_device, ACTIVITY_PEER + 1);

	values[METRICS_VALUE_FIRST + GPU_METRIC_SM] = 0;
	assert_true(fields_fill(FIELDS_METRICS, &metrics, NULL, values));
	assert_int_equal(metrics.value[GPU_METRIC_SM], GPU_METRIC_UNKNOWN);
	assert_int_equal(metrics.value[GPU_METRIC_DRAM], METRICS_VALUE_FIRST + GPU_METRIC_DRAM);
}

static void test_a_number_without_a_word_is_none(void **state)
{
	uint64_t values[KEPT_MOST] = { [ACTIVITY_DIRECTION] = DIRECTION_COUNT,
		                       [ACTIVITY_SOURCE] = 1ull << 32 | ACTIVITY_MEMORY_PINNED,
		                       [ACTIVITY_DESTINATION] = ACTIVITY_MEMORIES };
	struct activity activity;

	assert_true(fields_fill(FIELDS_ACTIVITY, &activity, NULL, values));
	assert_int_equal(activity.direction, DIRECTION_NONE);
	assert_int_equal(activity.source, ACTIVITY_MEMORY_UNKNOWN);
	assert_int_equal(activity.destination, ACTIVITY_MEMORY_UNKNOWN);
}

static void test_a_name_that_is_not_there_is_told(void **state)
{
	struct names *names = names_new();
	uint64_t values[KEPT_MOST] = { 0 };
	struct range range;
	struct sample sample;

	assert_true(fields_fill(FIELDS_RANGE, &range, names, values));
	assert_null(range.name);
	values[RANGE_VALUE_DOMAIN] = 1;
	assert_false(fields_fill(FIELDS_RANGE, &range, names, values));
	values[RANGE_VALUE_DOMAIN] = 0;
	values[SAMPLE_VALUE_RIVAL] = 1;
	assert_false(fields_fill(FIELDS_SAMPLE, &sample, names, values));
	names_free(names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_value_has_a_row),
		cmocka_unit_test(test_no_two_fields_are_in_one_place),
		cmocka_unit_test(test_what_is_filled_is_listed_again),
		cmocka_unit_test(test_values_are_where_the_model_has_them),
		cmocka_unit_test(test_a_number_without_a_word_is_none),
		cmocka_unit_test(test_a_name_that_is_not_there_is_told),
	};

	return cmocka_run_group_tests_name("fields", tests, NULL, NULL);
}
