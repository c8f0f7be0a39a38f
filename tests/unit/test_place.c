// SPDX-License-Identifier: MIT
/* Which frame of a stack is the place, and whether the stack is whole. */
#include "unit.h"

#include "stack/place.h"

static struct frame frame(const char *function, const char *module)
{
	return (struct frame){ .address = 0x1000, .function = function, .module = module };
}

static size_t named(struct frame first, struct frame second, struct frame third)
{
	const struct frame frames[] = { first, second, third };
	struct place place;

	place_find(frames, 3, false, &place);
	return place.named;
}

static void test_caller_of_the_runtime_is_the_place(void **state)
{
	assert_int_equal(
		named(frame("Model::grow()", "app"), frame("main", "app"), frame("_start", "app")),
		0);
	assert_int_equal(named(frame("cudaMalloc", "libcudart.so.13"),
	                       frame("Model::grow()", "app"), frame("main", "app")),
	                 1);
	assert_int_equal(named(frame(NULL, "libcuda.so.550.54"), frame(NULL, "libcudart.so.12"),
	                       frame("main", "app")),
	                 2);
}

static void test_runtime_that_is_linked_in_is_passed_over(void **state)
{
	assert_int_equal(named(frame("libcudart_static_4e1b6bd8", "app"),
	                       frame("cudaMalloc", "app"), frame("main", "app")),
	                 2);
	assert_int_equal(named(frame("cudaError cudaMalloc<float>(float**, unsigned long)", "app"),
	                       frame("main", "app"), frame("_start", "app")),
	                 1);
}

static void test_allocators_are_passed_over(void **state)
{
	assert_int_equal(
		named(frame("c10::cuda::CUDACachingAllocator::Native::(anonymous namespace)::"
	                    "DeviceCachingAllocator::malloc(unsigned long, CUstream_st*)",
	                    "libc10_cuda.so"),
	              frame("std::pair<int, int> rmm::mr::allocate<int>(unsigned long)", "app"),
	              frame("main", "app")),
		2);
}

static void test_function_that_only_looks_like_an_allocator_is_a_place(void **state)
{
	assert_false(place_is_wrapper("my::c10::cuda::CUDACachingAllocator::malloc()"));
	assert_false(place_is_wrapper("run(thrust::device_vector<int>&)"));
	assert_false(place_is_wrapper("apply<int, rmm::mr::pool>(int)"));
	assert_true(place_is_wrapper("thrust::device_vector<int>::resize(unsigned long)"));
	assert_true(place_is_wrapper("void* thrust::cuda_cub::get<int>(unsigned long)"));
}

static void test_trampoline_of_a_probe_is_passed_over(void **state)
{
	assert_int_equal(
		named(frame(NULL, "[uprobes]"), frame("main", "app"), frame("_start", "app")), 1);
}

static void test_stack_of_cuda_alone_is_named_by_its_first_frame(void **state)
{
	assert_int_equal(named(frame(NULL, "libcudart.so.13"), frame(NULL, "libcuda.so.1"),
	                       frame(NULL, "libcuda.so.1")),
	                 0);
}

static struct place last_is(struct frame last, bool deep)
{
	const struct frame frames[] = { frame("work()", "app"), last };
	struct place place;

	place_find(frames, 2, deep, &place);
	return place;
}

static void test_stack_that_reaches_the_begin_is_whole(void **state)
{
	assert_true(last_is(frame("_start", "app"), false).whole);
	assert_true(last_is(frame("__libc_start_call_main", "libc.so.6"), false).whole);
	assert_true(last_is(frame("start_thread", "libc.so.6"), false).whole);
	assert_true(last_is(frame(NULL, "libc.so.6"), false).whole);
}

static void test_stack_that_does_not_names_the_module_that_ended_it(void **state)
{
	struct place place = last_is(frame("torch::run()", "libtorch_cpu.so"), false);

	assert_false(place.whole);
	assert_string_equal(place.ends_in, "libtorch_cpu.so");
	assert_string_equal(last_is(frame("qsort", "libc.so.6"), false).ends_in, "libc.so.6");
}

static void test_stack_that_is_too_deep_is_not_blamed_on_anybody(void **state)
{
	struct place place = last_is(frame("recurse()", "app"), true);

	assert_true(place.deep);
	assert_false(place.whole);
	assert_null(place.ends_in);
}

static void test_deep_stack_of_which_the_rest_is_no_code_is_not_deep(void **state)
{
	struct place place = last_is(frame(NULL, NULL), true);

	assert_false(place.deep);
	assert_string_equal(place.ends_in, "app");
}

static void test_what_is_no_code_is_cut_off(void **state)
{
	const struct frame frames[] = { frame("work()", "app"), frame(NULL, NULL),
		                        frame("main", "app") };
	struct place place;

	place_find(frames, 3, false, &place);
	assert_int_equal(place.frames, 1);
	assert_string_equal(place.ends_in, "app");
}

static void test_empty_stack_has_no_place(void **state)
{
	struct place place;

	place_find(NULL, 0, false, &place);
	assert_int_equal(place.frames, 0);
	assert_false(place.whole);
	assert_null(place.ends_in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_caller_of_the_runtime_is_the_place),
		cmocka_unit_test(test_runtime_that_is_linked_in_is_passed_over),
		cmocka_unit_test(test_allocators_are_passed_over),
		cmocka_unit_test(test_function_that_only_looks_like_an_allocator_is_a_place),
		cmocka_unit_test(test_trampoline_of_a_probe_is_passed_over),
		cmocka_unit_test(test_stack_of_cuda_alone_is_named_by_its_first_frame),
		cmocka_unit_test(test_stack_that_reaches_the_begin_is_whole),
		cmocka_unit_test(test_stack_that_does_not_names_the_module_that_ended_it),
		cmocka_unit_test(test_stack_that_is_too_deep_is_not_blamed_on_anybody),
		cmocka_unit_test(test_deep_stack_of_which_the_rest_is_no_code_is_not_deep),
		cmocka_unit_test(test_what_is_no_code_is_cut_off),
		cmocka_unit_test(test_empty_stack_has_no_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
