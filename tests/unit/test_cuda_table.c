// SPDX-License-Identifier: MIT
/* The tables of functions: well-formed, found by every variant of a name, with the
 * right defaults. */
#include "unit.h"

#include "base/array.h"
#include "cuda/row.h"

static void each_row(void (*check)(const struct api_row *row))
{
	for (size_t i = 0; i < n_driver_rows; i++)
		check(&driver_rows[i]);
	for (size_t i = 0; i < n_runtime_rows; i++)
		check(&runtime_rows[i]);
}

static void check_parses(const struct api_row *row)
{
	struct api api;

	if (!api_parse(&api, row))
		fail_msg("%s: \"%s\"", row->name, row->spec);
}

static void test_every_spec_parses(void **state)
{
	each_row(check_parses);
}

static void test_wrong_specs_are_refused(void **state)
{
	static const char *const specs[] = {
		"x",
		"x:nothing",
		"x:int/",
		"x:int@",
		"x:int@0",
		":int",
		"x:int y:",
		"x:int,y:int",
		"a_name_of_more_than_23_letters:int",
		"a:int b:int c:int d:int e:int f:int g:int h:int i:int j:int k:int l:int m:int",
	};

	for (size_t i = 0; i < ARRAY_SIZE(specs); i++) {
		struct api_row row = { .name = "cuTest", .spec = specs[i] };
		struct api api;

		if (api_parse(&api, &row))
			fail_msg("\"%s\" was parsed", specs[i]);
	}
}

static void check_found(const struct api_row *row)
{
	const struct api *api = api_find(row->name);

	assert_non_null(api);
	assert_string_equal(api->row->name, row->name);
	if (api->row != row)
		fail_msg("%s is there twice", row->name);
}

static void test_every_row_is_found_by_its_name_once(void **state)
{
	each_row(check_found);
}

static void check_symbol(const struct api_row *row)
{
	if (!api_is_symbol(row->name))
		fail_msg("%s", row->name);
}

static void test_every_row_is_a_symbol(void **state)
{
	each_row(check_symbol);
}

/* Everything that the analyses count must be within reach of the eBPF program on x86-64. */
static void check_reachable(const struct api_row *row)
{
	struct api api;

	assert_true(api_parse(&api, row));
	api_lay_out(&api, ABI_X86_64);
	for (size_t i = 0; i < api.n_pieces; i++) {
		bool set_3d = strstr(row->name, "Memset3D") && api.piece[i].part == PART_FACTOR;

		if (api.layout[ABI_X86_64].at[i].where == NOWHERE && !set_3d &&
		    api.piece[i].part != PART_NONE)
			fail_msg("%s: value %zu of \"%s\"", row->name, i, row->spec);
	}
}

static void test_all_that_is_counted_is_recorded(void **state)
{
	each_row(check_reachable);
}

static bool is_of_memory(enum api_op op)
{
	return op == OP_ALLOC || op == OP_FREE || op == OP_MAP || op == OP_UNMAP || op == OP_RETAIN;
}

/* An op without the values that it promises would be a hole in the analyses. */
static void check_op(const struct api_row *row)
{
	struct api api;
	uint32_t parts = 0;

	assert_true(api_parse(&api, row));
	for (size_t i = 0; i < api.n_pieces; i++)
		parts |= 1u << api.piece[i].part;
	switch (row->op) {
	case OP_ALLOC:
	case OP_FREE:
	case OP_SET:
		if (!(parts & 1u << PART_ADDRESS))
			fail_msg("%s has no address", row->name);
		break;
	case OP_GRAPH_LAUNCH:
	case OP_LAUNCH:
		if (!(parts & 1u << PART_HANDLE))
			fail_msg("%s has no handle", row->name);
		break;
	case OP_STREAM_CREATE:
	case OP_STREAM_DESTROY:
	case OP_CAPTURE_BEGIN:
	case OP_CAPTURE_END:
	case OP_EVENT_WAIT:
	case OP_EVENT_RECORD:
		if (!(parts & 1u << PART_STREAM))
			fail_msg("%s has no stream", row->name);
		break;
	}
	if (is_of_memory(row->op) != (row->memory != MEMORY_NONE))
		fail_msg("%s: memory kind", row->name);
}

static void test_every_op_has_its_values(void **state)
{
	each_row(check_op);
}

static void test_symbols_are_told_from_other_names(void **state)
{
	assert_true(api_is_symbol("cuInit"));
	assert_true(api_is_symbol("cudaMalloc"));
	assert_true(api_is_symbol("__cudaRegisterFunction"));
	assert_true(api_is_symbol("cuMemcpyHtoD_v2_ptds"));
	assert_false(api_is_symbol("cuda"));
	assert_false(api_is_symbol("cu"));
	assert_false(api_is_symbol(""));
	assert_false(api_is_symbol("curl_easy_init"));
	assert_false(api_is_symbol("cudart_init"));
	assert_false(api_is_symbol("_cudaMalloc"));
	assert_false(api_is_symbol("cudaFree.cold"));
	assert_false(api_is_symbol("cudaMalloc@@libcudart.so.13"));
	assert_false(api_is_symbol("_Z10cudaMallocPPvm"));
}

static void assert_same_row(const char *symbol, const char *name)
{
	const struct api *api = api_find(symbol);

	if (!api)
		fail_msg("%s has no row", symbol);
	assert_string_equal(api->row->name, name);
}

static void test_variants_share_a_row(void **state)
{
	assert_same_row("cuLaunchKernel_ptsz", "cuLaunchKernel");
	assert_same_row("cudaMemcpyAsync_ptsz", "cudaMemcpyAsync");
	assert_same_row("cudaMemcpy_ptds", "cudaMemcpy");
	assert_same_row("cuEventDestroy_v2", "cuEventDestroy");
	assert_same_row("cuStreamWaitValue32_v2_ptsz", "cuStreamWaitValue32");
	assert_same_row("cuMemcpyHtoDAsync_v2_ptsz", "cuMemcpyHtoDAsync_v2");
	assert_same_row("cudaEventElapsedTime_v2", "cudaEventElapsedTime");
}

static void test_versions_with_other_arguments_have_their_own(void **state)
{
	assert_same_row("cuMemAlloc", "cuMemAlloc");
	assert_same_row("cuMemAlloc_v2", "cuMemAlloc_v2");
	assert_same_row("cuCtxCreate_v2", "cuCtxCreate");
	assert_same_row("cuCtxCreate_v3", "cuCtxCreate_v3");
	assert_same_row("cuMemPrefetchAsync_v2_ptsz", "cuMemPrefetchAsync_v2");
}

static void test_versions_yet_to_come_have_none_but_are_filed(void **state)
{
	assert_null(api_find("cuMemAlloc_v3"));
	assert_null(api_find("cuCtxCreate_v5"));
	assert_null(api_find("cuLaunchKernel_v2_ptsz"));
	assert_int_equal(api_class("cuLaunchKernel_v2_ptsz"), CLASS_LAUNCH);
	assert_true(api_default_on("cuLaunchKernel_v2_ptsz"));
	assert_int_equal(api_class("cuCtxGetDevice_v3"), CLASS_DEVICE);
	assert_false(api_default_on("cuCtxGetDevice_v3"));
}

static void test_unknown_names_are_no_row(void **state)
{
	char longest[300];

	memset(longest, 'A', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	memcpy(longest, "cu", 2);
	assert_null(api_find(longest));
	assert_int_equal(api_class(longest), CLASS_OTHER);
	assert_null(api_find(""));
	assert_null(api_find("_v2"));
	assert_null(api_find("_ptsz"));
	assert_null(api_find("cuMemAlloc_v"));
	assert_null(api_find("cuMemAlloc_v2x"));
	assert_null(api_find("cuMemAlloc_v99999999999999999999"));
}

static void test_getters_and_polls_are_off(void **state)
{
	static const char *const off[] = {
		"cudaGetDevice",
		"cuKernelGetFunction",    /* one for every tenth launch of PyTorch */
		"__cudaRegisterFunction", /* 22,000 when PyTorch loads */
		"cuCtxGetCurrent",
		"cudaGetLastError",
		"cudaPeekAtLastError",
		"cuDevicePrimaryCtxGetState",
		"cuDeviceGetAttribute",
		"cuKernelGetAttribute",
		"cudaEventQuery",
		"cudaStreamQuery",
		"cuEventQuery",
		"cuStreamQuery_ptsz",
		"cuGetProcAddress_v2",
		"cudaStreamIsCapturing",
		"cudaStreamGetCaptureInfo_v2_ptsz",
		"cuPointerGetAttribute",
		"cuPointerGetAttributes",
		"__cudaPushCallConfiguration",
		"__cudaPopCallConfiguration",
		"cuCtxPushCurrent_v2",
		"cuCtxPopCurrent_v2",
		"cuCtxSetCurrent",
		"cudaGetDeviceProperties_v2",
		"cuMemGetInfo_v2",
		"cuThreadExchangeStreamCaptureMode",
		"cudaOccupancyMaxActiveBlocksPerMultiprocessor",
		/* by their names alone */
		"cuFuncIsLoaded",
		"cuModuleGetLoadingMode",
		"cudaArrayGetInfo",
		"cuNewGetThing",
		"cudaNewQuery",
		"cuTensorMapEncodeTiled",
		"__cudaRegisterTexture",
	};

	for (size_t i = 0; i < ARRAY_SIZE(off); i++)
		if (api_default_on(off[i]))
			fail_msg("%s is on", off[i]);
}

static void test_what_tells_something_is_on(void **state)
{
	static const char *const on[] = {
		"cuLaunchKernel",
		"cudaLaunchKernel_ptsz",
		"cuLaunchKernelEx",
		"cudaMalloc",
		"cuMemAlloc_v2",
		"cudaMemcpyAsync",
		"cuStreamSynchronize",
		"cudaDeviceSynchronize",
		"cuModuleGetFunction",
		"cuLibraryGetKernel",
		"cudaGetKernel",
		"__cudaGetKernel",
		"cudaGetSymbolAddress",
		"cuModuleGetGlobal_v2",
		"cuInit",
		"cudaSetDevice",
		"cuGraphLaunch",
		/* by their names alone */
		"cuNewThing",
		"cudaIssueWork",
		"cuWidgetCreate",
		"cudaGraphicsResourceGetMappedPointer",
	};

	for (size_t i = 0; i < ARRAY_SIZE(on); i++)
		if (!api_default_on(on[i]))
			fail_msg("%s is off", on[i]);
}

/* It jumps to cudaLaunchKernel: with both hooked, a launch would be two events. */
static void test_cuda_13_launches_are_hooked_once(void **state)
{
	assert_false(api_default_on("__cudaLaunchKernel"));
	assert_false(api_default_on("__cudaLaunchKernel_ptsz"));
	assert_true(api_default_on("cudaLaunchKernel"));
}

static void test_classes_are_guessed_from_names(void **state)
{
	assert_int_equal(api_class("cuLaunchSomething"), CLASS_LAUNCH);
	assert_int_equal(api_class("cudaMallocSomewhere"), CLASS_MEMORY);
	assert_int_equal(api_class("cudaMemcpyNew_ptsz"), CLASS_TRANSFER);
	assert_int_equal(api_class("cuGreenCtxSynchronize"), CLASS_SYNC);
	assert_int_equal(api_class("cuStreamNew"), CLASS_STREAM);
	assert_int_equal(api_class("cudaEventNew_v7"), CLASS_EVENT);
	assert_int_equal(api_class("cuGraphMemcpyNodeGetParams"), CLASS_GRAPH);
	assert_int_equal(api_class("cuGraphicsMapResources"), CLASS_OTHER);
	assert_int_equal(api_class("__cudaRegisterHostVar"), CLASS_MODULE);
	assert_int_equal(api_class("cuDeviceGetUuid_v2"), CLASS_DEVICE);
	assert_int_equal(api_class("cuProfilerStart"), CLASS_OTHER);
}

static void test_every_class_has_a_name(void **state)
{
	for (int cls = 0; cls < CLASS_COUNT; cls++)
		assert_ptr_equal(api_class_name(cls), api_class_names[cls]);
	assert_null(api_class_names[CLASS_COUNT]);
	assert_string_equal(api_class_name(CLASS_LAUNCH), "launch");
	assert_string_equal(api_class_name(CLASS_COUNT), "other");
}

static void test_every_direction_and_memory_has_a_name(void **state)
{
	for (int i = 0; i < DIRECTION_COUNT; i++)
		assert_non_null(api_direction_name(i));
	for (int i = 0; i < MEMORY_COUNT; i++)
		assert_non_null(api_memory_name(i));
	assert_string_equal(api_direction_name(DIRECTION_H2D), "H2D");
	assert_string_equal(api_memory_name(MEMORY_DEVICE), "device");
}

static void test_functions_without_a_status_are_known(void **state)
{
	assert_true(api_returns_status("cudaMalloc"));
	assert_true(api_returns_status("__cudaGetKernel"));
	assert_false(api_returns_status("__cudaRegisterFunction"));
	assert_false(api_returns_status("__cudaUnregisterFatBinary"));
	assert_false(api_returns_status("cudaGetErrorString"));
}

/* The names in the lines of the log format. */
static void test_arguments_have_the_names_of_the_log_format(void **state)
{
	static const struct {
		const char *symbol;
		const char *names;
	} expected[] = {
		{ "cuMemAlloc_v2", "devPtr size " },
		{ "cuMemFree_v2", "devPtr " },
		{ "cuMemcpyHtoDAsync_v2", "dstDevice srcHost ByteCount hStream " },
		{ "cuMemcpyDtoHAsync_v2", "dstHost srcDevice ByteCount hStream " },
		{ "cuStreamSynchronize", "hStream " },
		{ "cuLaunchKernel",
		  "f gridDim blockDim sharedMemBytes hStream kernelParams extra " },
	};

	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		const struct api_arg *args;
		size_t n = api_args(api_find(expected[i].symbol), &args);
		char names[200] = "";

		for (size_t a = 0; a < n; a++)
			strcat(strcat(names, args[a].name), " ");
		assert_string_equal(names, expected[i].names);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_spec_parses),
		cmocka_unit_test(test_wrong_specs_are_refused),
		cmocka_unit_test(test_every_row_is_found_by_its_name_once),
		cmocka_unit_test(test_every_row_is_a_symbol),
		cmocka_unit_test(test_all_that_is_counted_is_recorded),
		cmocka_unit_test(test_every_op_has_its_values),
		cmocka_unit_test(test_symbols_are_told_from_other_names),
		cmocka_unit_test(test_variants_share_a_row),
		cmocka_unit_test(test_versions_with_other_arguments_have_their_own),
		cmocka_unit_test(test_versions_yet_to_come_have_none_but_are_filed),
		cmocka_unit_test(test_unknown_names_are_no_row),
		cmocka_unit_test(test_getters_and_polls_are_off),
		cmocka_unit_test(test_what_tells_something_is_on),
		cmocka_unit_test(test_cuda_13_launches_are_hooked_once),
		cmocka_unit_test(test_classes_are_guessed_from_names),
		cmocka_unit_test(test_every_class_has_a_name),
		cmocka_unit_test(test_every_direction_and_memory_has_a_name),
		cmocka_unit_test(test_functions_without_a_status_are_known),
		cmocka_unit_test(test_arguments_have_the_names_of_the_log_format),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
