// SPDX-License-Identifier: MIT
/* Which functions only pass calls on, so that they are no place. */
#include "unit.h"

#include "stack/place.h"

static void test_runtime_that_is_linked_in_passes_on(void **state)
{
	assert_true(place_passes_on("libcudart_static_4e1b6bd8"));
	assert_true(place_passes_on("cudaMalloc"));
	assert_true(place_passes_on("cudaError cudaMalloc<float>(float**, unsigned long)"));
	assert_false(place_passes_on("Model::grow()"));
	assert_false(place_passes_on("main"));
}

static void test_allocators_pass_on(void **state)
{
	assert_true(
		place_passes_on("c10::cuda::CUDACachingAllocator::Native::(anonymous namespace)::"
	                        "DeviceCachingAllocator::malloc(unsigned long, CUstream_st*)"));
	assert_true(place_passes_on("std::pair<int, int> rmm::mr::allocate<int>(unsigned long)"));
}

static void test_function_that_only_looks_like_an_allocator_is_a_place(void **state)
{
	assert_false(place_is_wrapper("my::c10::cuda::CUDACachingAllocator::malloc()"));
	assert_false(place_is_wrapper("run(thrust::device_vector<int>&)"));
	assert_false(place_is_wrapper("apply<int, rmm::mr::pool>(int)"));
	assert_true(place_is_wrapper("thrust::device_vector<int>::resize(unsigned long)"));
	assert_true(place_is_wrapper("void* thrust::cuda_cub::get<int>(unsigned long)"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runtime_that_is_linked_in_passes_on),
		cmocka_unit_test(test_allocators_pass_on),
		cmocka_unit_test(test_function_that_only_looks_like_an_allocator_is_a_place),
	};

	return cmocka_run_group_tests_name("functions that pass on", tests, NULL, NULL);
}
