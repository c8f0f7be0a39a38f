// SPDX-License-Identifier: MIT
/* From hand-made words to what a call did: copies and sets. */
#include "cuda_words.h"

#include "base/array.h"

static void test_copies_have_the_direction_of_their_names(void **state)
{
	static const struct {
		const char *symbol;
		enum api_direction direction;
		bool async;
	} list[] = {
		{ "cuMemcpyHtoD_v2_ptds", DIRECTION_H2D, false },
		{ "cuMemcpyDtoHAsync_v2", DIRECTION_D2H, true },
		{ "cuMemcpyDtoD_v2", DIRECTION_D2D, false },
		{ "cuMemcpyAsync_ptsz", DIRECTION_DEFAULT, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(list); i++) {
		struct api_raw raw = { .reg = { 0x1000, 0x2000, 4096, 0x57 } };
		struct api_call call = decode_x86(list[i].symbol, raw);

		assert_int_equal(call.address, 0x1000);
		assert_int_equal(call.source, 0x2000);
		assert_int_equal(call.bytes, 4096);
		assert_int_equal(call.direction, list[i].direction);
		assert_int_equal(api_is_async(api_find(list[i].symbol)), list[i].async);
		assert_int_equal(call.has_stream, list[i].async);
	}
}

static void test_runtime_copies_have_the_direction_of_their_kind(void **state)
{
	static const enum api_direction directions[] = { DIRECTION_H2H,     DIRECTION_H2D,
		                                         DIRECTION_D2H,     DIRECTION_D2D,
		                                         DIRECTION_DEFAULT, DIRECTION_NONE };

	for (uint64_t kind = 0; kind < 6; kind++) {
		struct api_raw raw = { .reg = { 0x1000, 0x2000, 4096, GARBAGE | kind, 0x57 } };
		struct api_call call = decode_x86("cudaMemcpyAsync", raw);

		assert_int_equal(call.direction, directions[kind]);
		assert_int_equal(call.stream, 0x57);
	}
}

static void test_copies_between_devices(void **state)
{
	struct api_raw raw = { .reg = { 0x1000, 1, 0x2000, 0, 4096, 0x57 } };
	struct api_call call = decode_x86("cudaMemcpyPeerAsync", raw);

	assert_int_equal(call.direction, DIRECTION_P2P);
	assert_int_equal(call.address, 0x1000);
	assert_int_equal(call.source, 0x2000);
	assert_int_equal(call.bytes, 4096);
}

static void test_copies_in_two_dimensions(void **state)
{
	struct api_raw raw = { .reg = { 0x1000, 1024, 0x2000, 2048, 1000, 16 },
		               .stack = { 1, 0x57 } };
	struct api_call call = decode_x86("cudaMemcpy2DAsync", raw);

	assert_int_equal(call.bytes, 1000 * 16);
	assert_int_equal(call.direction, DIRECTION_H2D);
	assert_int_equal(call.stream, 0x57);
	raw.reg[6] = 1;
	raw.reg[7] = 0x57;
	call = decode_arm("cudaMemcpy2DAsync", raw);
	assert_int_equal(call.direction, DIRECTION_H2D);
	assert_int_equal(call.stream, 0x57);
}

enum { HOST = 1, DEVICE, ARRAY, UNIFIED };

static struct api_call decode_memcpy2d(uint64_t from, uint64_t to)
{
	struct api_raw raw = {
		.reg = { 0x7ffd0000, 0x57 },
		.blob = { 0, 0, from, 0x11, 0x12, 0x13, 0, 0, 0, to, 0x21, 0x22, 0x23, 0, 1000,
		          16 },
		.blob_valid = true,
	};

	return decode_x86("cuMemcpy2DAsync_v2", raw);
}

static void test_driver_structs_say_which_end_is_where(void **state)
{
	struct api_call call = decode_memcpy2d(HOST, DEVICE);

	assert_int_equal(call.direction, DIRECTION_H2D);
	assert_int_equal(call.source, 0x11);
	assert_int_equal(call.address, 0x22);
	assert_int_equal(call.bytes, 1000 * 16);
	assert_int_equal(call.stream, 0x57);
	call = decode_memcpy2d(ARRAY, HOST);
	assert_int_equal(call.direction, DIRECTION_D2H);
	assert_int_equal(call.source, 0x13);
	assert_int_equal(call.address, 0x21);
	assert_int_equal(decode_memcpy2d(DEVICE, ARRAY).direction, DIRECTION_D2D);
	assert_int_equal(decode_memcpy2d(HOST, HOST).direction, DIRECTION_H2H);
	assert_int_equal(decode_memcpy2d(UNIFIED, DEVICE).direction, DIRECTION_DEFAULT);
	assert_int_equal(decode_memcpy2d(UNIFIED, DEVICE).source, 0x12);
}

static void test_driver_copies_in_three_dimensions(void **state)
{
	struct api_raw raw = { .reg = { 0x7ffd0000 }, .blob_valid = true };
	struct api_call call;

	raw.blob[4] = DEVICE;
	raw.blob[6] = 0x1000; /* srcDevice */
	raw.blob[15] = HOST;
	raw.blob[16] = 0x2000; /* dstHost */
	raw.blob[22] = 100;
	raw.blob[23] = 20;
	raw.blob[24] = 3;
	call = decode_x86("cuMemcpy3D_v2", raw);
	assert_int_equal(call.direction, DIRECTION_D2H);
	assert_int_equal(call.source, 0x1000);
	assert_int_equal(call.address, 0x2000);
	assert_int_equal(call.bytes, 6000);
	call = decode_x86("cuMemcpy3DPeer", raw);
	assert_int_equal(call.direction, DIRECTION_P2P);
	assert_int_equal(call.bytes, 6000);
}

static void test_runtime_copies_in_three_dimensions(void **state)
{
	struct api_raw raw = { .reg = { 0x7ffd0000, 0x57 }, .blob_valid = true };
	struct api_call call;

	raw.blob[4] = 0x1000;  /* srcPtr.ptr */
	raw.blob[12] = 0x2000; /* dstPtr.ptr */
	raw.blob[16] = 100;
	raw.blob[17] = 20;
	raw.blob[18] = 3;
	raw.blob[19] = GARBAGE | 2;
	call = decode_x86("cudaMemcpy3DAsync", raw);
	assert_int_equal(call.direction, DIRECTION_D2H);
	assert_int_equal(call.source, 0x1000);
	assert_int_equal(call.address, 0x2000);
	assert_int_equal(call.bytes, 6000);
	assert_false(call.size_unknown);
	raw.blob[0] = 0xa0; /* srcArray: the width counts elements of unknown size */
	call = decode_x86("cudaMemcpy3DAsync", raw);
	assert_int_equal(call.source, 0xa0);
	assert_int_equal(call.bytes, 0);
	assert_true(call.size_unknown);
}

static void test_a_copy_struct_that_could_not_be_read_has_no_direction(void **state)
{
	struct api_call call =
		decode_x86("cuMemcpy2D_v2", (struct api_raw){ .reg = { 0x7ffd0000 } });

	assert_int_equal(call.direction, DIRECTION_NONE);
	assert_int_equal(call.bytes, 0);
	assert_true(call.size_unknown);
}

static void test_a_batch_does_not_say_how_many_bytes(void **state)
{
	struct api_call call = decode_x86("cuMemcpyBatchAsync",
	                                  (struct api_raw){ .reg = { 0x1000, 0x2000, 0x3000, 4 } });

	assert_int_equal(call.bytes, 0);
	assert_true(call.size_unknown);
	call = decode_x86("cuMemcpyHtoD_v2", (struct api_raw){ .reg = { 0x1000, 0x2000, 0 } });
	assert_int_equal(call.bytes, 0);
	assert_false(call.size_unknown); /* it says so */
}

static void test_sets_count_words_of_their_width(void **state)
{
	struct api_raw raw = { .reg = { 0x1000, 0xff, 100, 0x57 } };
	struct api_raw raw_2d = { .reg = { 0x1000, 512, 0xff, 100, 8 } };

	assert_int_equal(decode_x86("cudaMemset", raw).bytes, 100);
	assert_int_equal(decode_x86("cuMemsetD8Async", raw).bytes, 100);
	assert_int_equal(decode_x86("cuMemsetD16_v2_ptds", raw).bytes, 200);
	assert_int_equal(decode_x86("cuMemsetD32Async", raw).bytes, 400);
	assert_int_equal(decode_x86("cuMemsetD32Async", raw).stream, 0x57);
	assert_int_equal(decode_x86("cuMemsetD2D32_v2", raw_2d).bytes, 100 * 4 * 8);
	assert_int_equal(decode_x86("cudaMemset2D", raw_2d).bytes, 100 * 8);
	assert_int_equal(decode_x86("cudaMemset2D", raw_2d).address, 0x1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copies_have_the_direction_of_their_names),
		cmocka_unit_test(test_runtime_copies_have_the_direction_of_their_kind),
		cmocka_unit_test(test_copies_between_devices),
		cmocka_unit_test(test_copies_in_two_dimensions),
		cmocka_unit_test(test_driver_structs_say_which_end_is_where),
		cmocka_unit_test(test_driver_copies_in_three_dimensions),
		cmocka_unit_test(test_runtime_copies_in_three_dimensions),
		cmocka_unit_test(test_a_copy_struct_that_could_not_be_read_has_no_direction),
		cmocka_unit_test(test_a_batch_does_not_say_how_many_bytes),
		cmocka_unit_test(test_sets_count_words_of_their_width),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
