// SPDX-License-Identifier: MIT
/* Protocol buffers, byte by byte. */
#include "base/array.h"
#include "base/protobuf.h"
#include "unit.h"

static struct buf out;

static void assert_bytes(const char *expected, size_t len)
{
	assert_int_equal(out.len, len);
	assert_memory_equal(out.data, expected, len);
	buf_free(&out);
}

#define ASSERT_BYTES(text) assert_bytes(text, sizeof(text) - 1)

static void test_a_number_takes_seven_bits_a_byte(void **state)
{
	pb_varint(&out, 1, 0);
	ASSERT_BYTES("\x08\x00");
	pb_varint(&out, 1, 127);
	ASSERT_BYTES("\x08\x7f");
	pb_varint(&out, 1, 300);
	ASSERT_BYTES("\x08\xac\x02");
	pb_varint(&out, 1, UINT64_MAX); /* -1 as an int64 */
	ASSERT_BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

static void test_a_field_above_15_has_a_longer_tag(void **state)
{
	pb_varint(&out, 15, 1);
	ASSERT_BYTES("\x78\x01");
	pb_varint(&out, 16, 1);
	ASSERT_BYTES("\x80\x01\x01");
}

static void test_fixed_numbers_are_little_endian(void **state)
{
	pb_fixed64(&out, 47, 0x0102030405060708);
	ASSERT_BYTES("\xf9\x02\x08\x07\x06\x05\x04\x03\x02\x01");
	pb_double(&out, 5, 1.5);
	ASSERT_BYTES("\x29\x00\x00\x00\x00\x00\x00\xf8\x3f");
}

static void test_a_string_has_its_length_before_it(void **state)
{
	pb_string(&out, 2, "abc");
	ASSERT_BYTES("\x12\x03"
	             "abc");
	pb_string(&out, 2, "");
	ASSERT_BYTES("\x12\x00");
}

static void test_messages_nest(void **state)
{
	size_t outer = pb_begin(&out, 1), inner;

	pb_varint(&out, 1, 5);
	inner = pb_begin(&out, 2);
	pb_varint(&out, 3, 6);
	pb_end(&out, inner);
	pb_end(&out, outer);
	ASSERT_BYTES("\x0a\x06\x08\x05\x12\x02\x18\x06");
}

static void test_an_empty_message_has_the_length_0(void **state)
{
	pb_end(&out, pb_begin(&out, 1));
	ASSERT_BYTES("\x0a\x00");
}

/* One byte is reserved for a length: what needs two or three moves up. */
static void test_a_long_message_is_moved_for_its_length(void **state)
{
	static const size_t lengths[] = { 127, 128, 16383, 16384, 70000 };
	static const size_t bytes[] = { 1, 2, 2, 3, 3 };
	char *text = calloc(1, 70000);

	memset(text, 'x', 70000);
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		size_t message = pb_begin(&out, 1), length = 0;

		buf_add(&out, text, lengths[i]);
		pb_end(&out, message);
		assert_int_equal(out.len, 1 + bytes[i] + lengths[i]);
		for (size_t b = 0; b < bytes[i]; b++)
			length |= (size_t)(out.data[1 + b] & 0x7f) << 7 * b;
		assert_int_equal(length, lengths[i]);
		assert_memory_equal(out.data + 1 + bytes[i], text, lengths[i]);
		buf_free(&out);
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_number_takes_seven_bits_a_byte),
		cmocka_unit_test(test_a_field_above_15_has_a_longer_tag),
		cmocka_unit_test(test_fixed_numbers_are_little_endian),
		cmocka_unit_test(test_a_string_has_its_length_before_it),
		cmocka_unit_test(test_messages_nest),
		cmocka_unit_test(test_an_empty_message_has_the_length_0),
		cmocka_unit_test(test_a_long_message_is_moved_for_its_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
