// SPDX-License-Identifier: MIT
/* Which registers, stack words and structs are recorded of the functions that matter most. */
#include "unit.h"

#include "base/array.h"
#include "cuda/row.h"

#define NONE PLAN_NO_ARG

/* A plan in words, so that a failure shows the difference. */
static void describe(const struct capture_plan *p, char *text, size_t size)
{
	int n = snprintf(text, size, "regs %u stack %u", p->regs, p->stack);

	for (int i = 0; i < 2; i++)
		if (p->out[i] != NONE)
			n += snprintf(text + n, size - n, " out %u/%u", p->out[i], p->out_bytes[i]);
	if (p->blob != NONE)
		n += snprintf(text + n, size - n, " blob %u*%u%s", p->blob, p->blob_words,
		              p->blob_on_return ? " on return" : "");
	if (p->string != NONE)
		n += snprintf(text + n, size - n, " string %u", p->string);
	if (p->kernel != NONE)
		n += snprintf(text + n, size - n, " kernel %u", p->kernel);
	if (p->name_key != NONE)
		n += snprintf(text + n, size - n, " key %u", p->name_key);
	if (p->forgets_kernels)
		snprintf(text + n, size - n, " forgets");
}

static void assert_plan(const char *symbol, enum api_abi abi, const char *expected)
{
	const struct api *api = api_find(symbol);
	struct capture_plan plan;
	char text[200];

	if (!api)
		fail_msg("%s has no row", symbol);
	api_plan(api, abi, &plan);
	describe(&plan, text, sizeof(text));
	if (strcmp(text, expected))
		fail_msg("%s: \"%s\", not \"%s\"", symbol, text, expected);
}

struct expectation {
	const char *symbol, *plan;
};

static void assert_plans(enum api_abi abi, const struct expectation *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		assert_plan(list[i].symbol, abi, list[i].plan);
}

#define ASSERT_PLANS(abi, list) assert_plans(abi, list, ARRAY_SIZE(list))

static void test_x86_64_launches(void **state)
{
	static const struct expectation list[] = {
		/* f gx gy gz bx by | bz shmem stream params extra */
		{ "cuLaunchKernel", "regs 6 stack 5 kernel 0" },
		{ "cuLaunchKernel_ptsz", "regs 6 stack 5 kernel 0" },
		{ "cuLaunchCooperativeKernel", "regs 6 stack 4 kernel 0" },
		{ "cuLaunchKernelEx", "regs 4 stack 0 blob 0*5 kernel 1" },
		/* func grid(2) block(2) args | shmem stream */
		{ "cudaLaunchKernel", "regs 6 stack 2 kernel 0" },
		{ "__cudaLaunchKernel", "regs 6 stack 2 kernel 0" },
		{ "cudaLaunchCooperativeKernel", "regs 6 stack 2 kernel 0" },
		{ "cudaLaunchKernelExC", "regs 3 stack 0 blob 0*5 kernel 1" },
		{ "cuLaunchGridAsync", "regs 4 stack 0 kernel 0" },
		{ "cuGraphLaunch", "regs 2 stack 0" },
		{ "cudaLaunchHostFunc", "regs 3 stack 0" },
		{ "cuLaunchCooperativeKernelMultiDevice", "regs 3 stack 0 blob 0*6" },
		/* grid(2) block(2) shmem stream */
		{ "__cudaPushCallConfiguration", "regs 6 stack 0" },
	};

	ASSERT_PLANS(ABI_X86_64, list);
}

static void test_aarch64_launches(void **state)
{
	static const struct expectation list[] = {
		/* f gx gy gz bx by bz shmem | stream params extra */
		{ "cuLaunchKernel", "regs 8 stack 3 kernel 0" },
		{ "cuLaunchCooperativeKernel", "regs 8 stack 2 kernel 0" },
		{ "cuLaunchKernelEx", "regs 4 stack 0 blob 0*5 kernel 1" },
		/* func grid(2) block(2) args shmem stream */
		{ "cudaLaunchKernel", "regs 8 stack 0 kernel 0" },
		{ "cudaLaunchCooperativeKernel_ptsz", "regs 8 stack 0 kernel 0" },
		{ "cudaLaunchKernelExC", "regs 3 stack 0 blob 0*5 kernel 1" },
		{ "cuGraphLaunch", "regs 2 stack 0" },
	};

	ASSERT_PLANS(ABI_AARCH64, list);
}

static void test_outputs_are_read_through_their_registers(void **state)
{
	static const struct expectation list[] = {
		{ "cuMemAlloc_v2", "regs 2 stack 0 out 0/8" },
		{ "cuMemAlloc", "regs 2 stack 0 out 0/4" },
		{ "cudaMalloc", "regs 2 stack 0 out 0/8" },
		{ "cudaMallocPitch", "regs 4 stack 0 out 0/8 out 1/8" },
		{ "cudaGetDevice", "regs 0 stack 0 out 0/4" },
		{ "cudaEventElapsedTime", "regs 3 stack 0 out 0/4" },
		{ "cuStreamCreate", "regs 2 stack 0 out 0/8" },
		{ "cuStreamEndCapture", "regs 1 stack 0 out 1/8" },
		{ "cuMemGetInfo_v2", "regs 0 stack 0 out 0/8 out 1/8" },
	};

	ASSERT_PLANS(ABI_X86_64, list);
	ASSERT_PLANS(ABI_AARCH64, list);
}

static void test_names_of_kernels_are_tied_to_handles(void **state)
{
	static const struct expectation list[] = {
		{ "cuModuleGetFunction", "regs 3 stack 0 out 0/8 string 2" },
		{ "cuLibraryGetKernel", "regs 3 stack 0 out 0/8 string 2" },
		{ "cudaLibraryGetKernel", "regs 3 stack 0 out 0/8 string 2" },
		{ "cuKernelGetFunction", "regs 2 stack 0 out 0/8 kernel 1" },
		{ "__cudaRegisterFunction", "regs 3 stack 0 string 2 key 1" },
		{ "__cudaGetKernel", "regs 2 stack 0 out 0/8" },
		{ "cuModuleUnload", "regs 1 stack 0 forgets" },
		{ "cuLibraryUnload", "regs 1 stack 0 forgets" },
		{ "cudaDeviceReset", "regs 0 stack 0 forgets" },
	};

	ASSERT_PLANS(ABI_X86_64, list);
	ASSERT_PLANS(ABI_AARCH64, list);
}

static void test_copy_structs_are_recorded_whole(void **state)
{
	static const struct expectation list[] = {
		{ "cuMemcpy2D_v2", "regs 1 stack 0 blob 0*16" },
		{ "cuMemcpy3D_v2", "regs 1 stack 0 blob 0*25" },
		{ "cuMemcpy3DPeerAsync", "regs 2 stack 0 blob 0*25" },
		{ "cudaMemcpy3D", "regs 1 stack 0 blob 0*20" },
		{ "cudaMemcpy3DPeer", "regs 1 stack 0 blob 0*21" },
		{ "cuArray3DCreate_v2", "regs 2 stack 0 out 0/8 blob 1*5" },
	};

	ASSERT_PLANS(ABI_X86_64, list);
	ASSERT_PLANS(ABI_AARCH64, list);
}

static void test_later_arguments_are_on_the_stack(void **state)
{
	static const struct expectation x86[] = {
		{ "cudaMemcpy2D", "regs 6 stack 1" },
		{ "cudaMemcpy2DAsync", "regs 6 stack 2" },
		{ "cudaMemcpy2DArrayToArray", "regs 6 stack 3" },
	};
	static const struct expectation arm[] = {
		{ "cudaMemcpy2D", "regs 7 stack 0" },
		{ "cudaMemcpy2DAsync", "regs 8 stack 0" },
		{ "cudaMemcpy2DArrayToArray", "regs 8 stack 1" },
	};

	ASSERT_PLANS(ABI_X86_64, x86);
	ASSERT_PLANS(ABI_AARCH64, arm);
}

/* cudaExtent, cudaPitchedPtr, IPC handles: on the stack here, behind a hidden pointer there. */
static void test_large_structs_by_value(void **state)
{
	static const struct expectation x86[] = {
		{ "cudaMalloc3D", "regs 0 stack 3 out 0/8 blob 0*2 on return" },
		{ "cudaMalloc3DArray", "regs 3 stack 3 out 0/8 blob 1*2" },
		{ "cudaIpcOpenMemHandle", "regs 2 stack 0 out 0/8" },
		{ "cudaMemset3DAsync", "regs 2 stack 6" },
	};
	static const struct expectation arm[] = {
		{ "cudaMalloc3D", "regs 0 stack 0 out 0/8 blob 1*3" },
		{ "cudaMalloc3DArray", "regs 4 stack 0 out 0/8 blob 1*2" },
		{ "cudaIpcOpenMemHandle", "regs 3 stack 0 out 0/8" },
		{ "cudaMemset3DAsync", "regs 4 stack 0 blob 0*1" },
	};

	ASSERT_PLANS(ABI_X86_64, x86);
	ASSERT_PLANS(ABI_AARCH64, arm);
}

static struct api parse(const char *spec)
{
	static struct api_row row;
	struct api api;

	row = (struct api_row){ .name = "cuTest", .spec = spec };
	assert_true(api_parse(&api, &row));
	for (enum api_abi abi = 0; abi < ABI_COUNT; abi++)
		api_lay_out(&api, abi);
	return api;
}

static void assert_place(const struct api *api, enum api_abi abi, size_t i, enum where where,
                         unsigned offset)
{
	assert_int_equal(api->layout[abi].at[i].where, where);
	assert_int_equal(api->layout[abi].at[i].offset, offset);
}

/* No CUDA function does this, but the two ABIs part here. */
static void test_a_dim3_that_does_not_fit_goes_to_the_stack_whole(void **state)
{
	struct api x86 = parse("a:int b:int c:int d:int e:int g:grid z:int");
	struct api arm = parse("a:int b:int c:int d:int e:int h:int i:int g:grid z:int");

	assert_place(&x86, ABI_X86_64, 5, IN_STACK, 0);
	assert_place(&x86, ABI_X86_64, 7, IN_STACK, 8);
	assert_place(&x86, ABI_X86_64, 8, IN_REG, 8 * 5); /* takes the register that was left */
	assert_place(&arm, ABI_AARCH64, 7, IN_STACK, 0);
	assert_place(&arm, ABI_AARCH64, 9, IN_STACK, 8);
	assert_place(&arm, ABI_AARCH64, 10, IN_STACK, 16); /* no register after that */
}

static void test_a_dim3_lies_in_two_registers(void **state)
{
	struct api api = parse("a:addr g:grid z:int");

	assert_place(&api, ABI_X86_64, 1, IN_REG, 8);
	assert_place(&api, ABI_X86_64, 2, IN_REG, 12);
	assert_place(&api, ABI_X86_64, 3, IN_REG, 16);
	assert_place(&api, ABI_X86_64, 4, IN_REG, 24);
}

static void test_what_is_out_of_reach_is_nowhere(void **state)
{
	struct api many = parse("a:int b:int c:int d:int e:int f:int g:int h:int i:int j:int k:int "
	                        "l:int");
	struct api outs = parse("a:*int b:*int c:*int");
	struct api late = parse("a:int b:int c:int d:int e:int f:int g:int h:int i:*ptr");

	assert_place(&many, ABI_X86_64, 11, IN_STACK, 8 * 5);
	assert_place(&outs, ABI_X86_64, 1, IN_OUT, 8);
	assert_place(&outs, ABI_X86_64, 2, NOWHERE, 0);
	assert_place(&late, ABI_X86_64, 8, NOWHERE, 0);
	assert_place(&late, ABI_AARCH64, 8, NOWHERE, 0);
}

/* The fields of a hook's cookie have no more bits than this. */
static void test_every_plan_is_within_the_limits(void **state)
{
	const struct api_row *tables[] = { driver_rows, runtime_rows };
	const size_t counts[] = { n_driver_rows, n_runtime_rows };
	struct capture_plan plan;

	for (int t = 0; t < 2; t++)
		for (size_t i = 0; i < counts[t]; i++)
			for (enum api_abi abi = 0; abi < ABI_COUNT; abi++) {
				api_plan(api_find(tables[t][i].name), abi, &plan);
				assert_true(plan.regs <= (abi == ABI_X86_64 ? 6 : 8));
				assert_true(plan.stack <= 6);
				assert_true(plan.blob_words <= 31);
				assert_true((plan.blob == NONE) == (plan.blob_words == 0));
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_x86_64_launches),
		cmocka_unit_test(test_aarch64_launches),
		cmocka_unit_test(test_outputs_are_read_through_their_registers),
		cmocka_unit_test(test_names_of_kernels_are_tied_to_handles),
		cmocka_unit_test(test_copy_structs_are_recorded_whole),
		cmocka_unit_test(test_later_arguments_are_on_the_stack),
		cmocka_unit_test(test_large_structs_by_value),
		cmocka_unit_test(test_a_dim3_that_does_not_fit_goes_to_the_stack_whole),
		cmocka_unit_test(test_a_dim3_lies_in_two_registers),
		cmocka_unit_test(test_what_is_out_of_reach_is_nowhere),
		cmocka_unit_test(test_every_plan_is_within_the_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
