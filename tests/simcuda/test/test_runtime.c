// SPDX-License-Identifier: MIT
/*
 * The simulated runtime, linked as nvcc links it: built for CUDA 12 (CUDART_MAJOR) and 13, shared
 * and static. What it registers is what nvcc's constructors register.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "../runtime_api.h"

#ifndef CUDART_MAJOR
#define CUDART_MAJOR 13
#endif

#define N    1000
#define NAME "_Z9vectorAddPKfS0_Pfi"

static const char ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
			  ".global .align 4 .b8 table[64];\n"
			  ".visible .entry " NAME "(.param .u64 a) { ret; }\n";

static const struct {
	uint32_t magic, version;
	const void *data;
	const void *file;
} fatbin = { 0x466243b1, 1, ptx, NULL };

static char table[64];
static void **registered;

/* Only its address matters. */
static void host_stub(void)
{
}

static int register_all(void **state)
{
	registered = __cudaRegisterFatBinary((void *)&fatbin);
	__cudaRegisterFunction(registered, (const char *)host_stub, (char *)NAME, NAME, -1, NULL,
	                       NULL, NULL, NULL, NULL);
	__cudaRegisterVar(registered, table, (char *)"table", "table", 0, sizeof(table), 0, 0);
	__cudaRegisterFatBinaryEnd(registered);
	return 0;
}

static int unregister_all(void **state)
{
	__cudaUnregisterFatBinary(registered);
	return 0;
}

#define OK(...) assert_int_equal(__VA_ARGS__, cudaSuccess)

/* <<<grid, block>>> of a host stub, as code of that version has it. */
static cudaError_t launch(void **args, cudaStream_t stream)
{
	dim3 grid = { 8, 1, 1 }, block = { 128, 1, 1 };
	size_t shared_bytes;
	assert_int_equal(__cudaPushCallConfiguration(grid, block, 0, stream), 0);
	OK(__cudaPopCallConfiguration(&grid, &block, &shared_bytes, &stream));
	assert_int_equal(grid.x, 8);
#if CUDART_MAJOR >= 13
	static cudaKernel_t handle;
	if (!handle)
		OK(__cudaGetKernel(&handle, (const void *)host_stub));
	return __cudaLaunchKernel(handle, grid, block, args, shared_bytes, stream);
#else
	return cudaLaunchKernel((const void *)host_stub, grid, block, args, shared_bytes, stream);
#endif
}

static void test_a_launch_computes(void **state)
{
	float values[N], *a, *b, *c;
	int n = N;
	for (int i = 0; i < N; i++)
		values[i] = (float)i;
	OK(cudaMalloc((void **)&a, sizeof(values)));
	OK(cudaMalloc((void **)&b, sizeof(values)));
	OK(cudaMalloc((void **)&c, sizeof(values)));
	OK(cudaMemcpy(a, values, sizeof(values), cudaMemcpyHostToDevice));
	OK(cudaMemcpy(b, values, sizeof(values), cudaMemcpyHostToDevice));
	void *args[] = { &a, &b, &c, &n };
	OK(launch(args, NULL));
	OK(cudaMemcpy(values, c, sizeof(values), cudaMemcpyDeviceToHost));
	assert_true(values[N - 1] == 2 * (N - 1));
	OK(cudaFree(a));
	OK(cudaFree(b));
	OK(cudaFree(c));
}

#if CUDART_MAJOR >= 13
static void test_a_kernel_handle_holds_its_name_at_byte_8(void **state)
{
	cudaKernel_t handle;
	OK(__cudaGetKernel(&handle, (const void *)host_stub));
	assert_ptr_not_equal(handle, host_stub);
	assert_string_equal(*(char **)((char *)handle + 8), NAME);
}

/* As in the real one: the launch then says what is wrong. */
static void test_a_kernel_that_is_not_registered_is_its_own_handle(void **state)
{
	cudaKernel_t handle;
	assert_int_equal(__cudaGetKernel(&handle, (const void *)launch),
	                 cudaErrorInvalidDeviceFunction);
	assert_ptr_equal(handle, launch);
}
#else
static void test_a_stub_that_is_not_registered_cannot_be_launched(void **state)
{
	dim3 one = { 1, 1, 1 };
	assert_int_equal(cudaLaunchKernel((const void *)launch, one, one, NULL, 0, NULL),
	                 cudaErrorInvalidDeviceFunction);
}
#endif

static void test_a_variable_is_reached_by_its_symbol(void **state)
{
	char text[sizeof(table)] = "on the device", back[sizeof(table)];
	OK(cudaMemcpyToSymbol(table, text, sizeof(text), 0, cudaMemcpyHostToDevice));
	OK(cudaMemcpyFromSymbol(back, table, sizeof(back), 0, cudaMemcpyDeviceToHost));
	assert_memory_equal(text, back, sizeof(text));
	assert_int_equal(cudaMemcpyToSymbol(&registered, text, 1, 0, cudaMemcpyHostToDevice),
	                 cudaErrorInvalidSymbol);
}

static void test_an_error_is_remembered_until_it_is_asked_for(void **state)
{
	void *address;
	cudaGetLastError();
	assert_int_equal(cudaMalloc(&address, (size_t)1 << 50), cudaErrorMemoryAllocation);
	OK(cudaDeviceSynchronize());
	assert_int_equal(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
	assert_int_equal(cudaGetLastError(), cudaErrorMemoryAllocation);
	assert_int_equal(cudaGetLastError(), cudaSuccess);
}

static void test_allocating_nothing_gives_null(void **state)
{
	void *address = &address;
	OK(cudaMalloc(&address, 0));
	assert_null(address);
	OK(cudaFree(NULL));
}

static void test_a_reset_frees_what_was_allocated(void **state)
{
	size_t before, after, total;
	void *address;
	OK(cudaMemGetInfo(&before, &total));
	OK(cudaMalloc(&address, 1 << 20));
	OK(cudaDeviceReset());
	OK(cudaMemGetInfo(&after, &total));
	assert_true(after >= before);
	assert_int_equal(cudaFree(address), cudaErrorInvalidValue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_launch_computes),
#if CUDART_MAJOR >= 13
		cmocka_unit_test(test_a_kernel_handle_holds_its_name_at_byte_8),
		cmocka_unit_test(test_a_kernel_that_is_not_registered_is_its_own_handle),
#else
		cmocka_unit_test(test_a_stub_that_is_not_registered_cannot_be_launched),
#endif
		cmocka_unit_test(test_a_variable_is_reached_by_its_symbol),
		cmocka_unit_test(test_an_error_is_remembered_until_it_is_asked_for),
		cmocka_unit_test(test_allocating_nothing_gives_null),
		cmocka_unit_test(test_a_reset_frees_what_was_allocated),
	};
	return cmocka_run_group_tests_name("runtime", tests, register_all, unregister_all);
}
