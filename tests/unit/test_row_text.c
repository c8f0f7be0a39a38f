// SPDX-License-Identifier: MIT
/* Rows of the function tables as text, and made again from it. */
#include "unit.h"

#include "base/array.h"
#include "cuda/row.h"
#include "cuda/api.h"

static struct api_text text_of(const char *function)
{
	struct api_text text;

	api_to_text(api_find(function), &text);
	return text;
}

static void test_every_built_in_row_is_found_again(void **state)
{
	for (size_t i = 0; i < n_driver_rows + n_runtime_rows; i++) {
		const char *name = i < n_driver_rows ? driver_rows[i].name
		                                     : runtime_rows[i - n_driver_rows].name;
		struct api_text text = text_of(name);
		struct api *made;

		assert_ptr_equal(api_from_text(&text, &made), api_find(name));
		assert_null(made);
	}
}

static void test_a_row_that_differs_is_made_anew(void **state)
{
	struct api_text text = text_of("cudaMalloc");
	const struct api_arg *args;
	const struct api *api;
	struct api *made;

	text.spec = "devPtr:*ptr size:bytes flags:hex";
	text.op = OP_FREE;
	api = api_from_text(&text, &made);
	assert_ptr_equal(api, made);
	assert_int_equal(api_args(api, &args), 3);
	assert_string_equal(args[2].name, "flags");
	assert_int_equal(args[2].type, T_HEX);
	assert_int_equal(api_op(api), OP_FREE);
	assert_int_equal(api_memory(api), MEMORY_DEVICE);
	api_free(made);
}

static void assert_made_anew(const struct api_text *text)
{
	struct api *made;

	api_from_text(text, &made);
	assert_non_null(made);
	api_free(made);
}

static void test_a_difference_in_any_field_makes_another_row(void **state)
{
	struct api_text text;
	uint32_t *fields[] = { &text.cls, &text.op, &text.memory, &text.direction, &text.flags };

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		text = text_of("cudaMalloc");
		*fields[i] ^= 1;
		assert_made_anew(&text);
	}
	text = text_of("cudaMalloc");
	text.spec = "devPtr:*ptr";
	assert_made_anew(&text);
	text = text_of("cudaMalloc");
	text.name = "cudaMallocElsewhere";
	assert_made_anew(&text);
}

static void test_what_is_not_known_is_none_and_ends_the_arguments(void **state)
{
	struct api_text text = { .name = "cuFromTheFuture",
		                 .spec = "a:int b:quaternion c:int",
		                 .cls = 99,
		                 .op = 99,
		                 .memory = 99,
		                 .direction = 99 };
	const struct api_arg *args;
	const struct api *api;
	struct api *made;

	api = api_from_text(&text, &made);
	assert_int_equal(api_args(api, &args), 1);
	assert_string_equal(args[0].name, "a");
	assert_int_equal(api_op(api), OP_NONE);
	assert_int_equal(api_memory(api), MEMORY_NONE);
	api_free(made);
}

static void test_a_name_that_would_need_an_escape_ends_the_arguments(void **state)
{
	static const char *const specs[] = { "a:int b\x01:int", "a:int \"b:int",
		                             "a:int \x1b[31m:int" };
	const struct api_arg *args;
	struct api *made;

	for (size_t i = 0; i < ARRAY_SIZE(specs); i++) {
		struct api_text text = { .name = "cuFromElsewhere", .spec = specs[i] };

		assert_int_equal(api_args(api_from_text(&text, &made), &args), 1);
		api_free(made);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_built_in_row_is_found_again),
		cmocka_unit_test(test_a_row_that_differs_is_made_anew),
		cmocka_unit_test(test_a_name_that_would_need_an_escape_ends_the_arguments),
		cmocka_unit_test(test_a_difference_in_any_field_makes_another_row),
		cmocka_unit_test(test_what_is_not_known_is_none_and_ends_the_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
