// SPDX-License-Identifier: MIT
/* From hand-made words to what a call did: launches, memory, streams, events, names. */
#include "cuda_words.h"

#include "base/array.h"

static void assert_dims(const uint32_t *dims, uint32_t x, uint32_t y, uint32_t z)
{
	if (dims[0] != x || dims[1] != y || dims[2] != z)
		fail_msg("(%u,%u,%u), not (%u,%u,%u)", dims[0], dims[1], dims[2], x, y, z);
}

static void assert_launch(const struct api_call *call)
{
	assert_int_equal(call->handle, 0xf00);
	assert_dims(call->grid, 196, 2, 3);
	assert_dims(call->block, 256, 4, 5);
	assert_int_equal(call->shmem_bytes, 4096);
	assert_true(call->has_stream);
	assert_int_equal(call->stream, 0x57);
}

static uint64_t xy(uint32_t x, uint32_t y)
{
	return (uint64_t)y << 32 | x;
}

/* ---- launches ------------------------------------------------------------------------------ */

static void test_driver_launch_has_its_tail_on_the_stack(void **state)
{
	struct api_raw raw = {
		.reg = { 0xf00, GARBAGE | 196, GARBAGE | 2, GARBAGE | 3, GARBAGE | 256,
		         GARBAGE | 4 },
		.stack = { GARBAGE | 5, GARBAGE | 4096, 0x57, 0x7ffd0000, 0 },
	};
	struct api_call call = decode_x86("cuLaunchKernel", raw);

	assert_launch(&call);
	assert_int_equal(arg("cuLaunchKernel", &call, "f"), 0xf00);
	assert_int_equal(arg("cuLaunchKernel", &call, "gridDim"), 0);
	assert_int_equal(arg("cuLaunchKernel", &call, "sharedMemBytes"), 4096);
	assert_int_equal(arg("cuLaunchKernel", &call, "hStream"), 0x57);
	assert_int_equal(arg("cuLaunchKernel", &call, "kernelParams"), 0x7ffd0000);
	assert_int_equal(arg("cuLaunchKernel", &call, "extra"), 0);
	call = decode_x86("cuLaunchCooperativeKernel_ptsz", raw);
	assert_launch(&call);
}

static void test_driver_launch_on_aarch64(void **state)
{
	struct api_raw raw = {
		.reg = { 0xf00, GARBAGE | 196, GARBAGE | 2, GARBAGE | 3, GARBAGE | 256, GARBAGE | 4,
		         GARBAGE | 5, GARBAGE | 4096 },
		.stack = { 0x57, 0x7ffd0000, 0 },
	};
	struct api_call call = decode_arm("cuLaunchKernel", raw);

	assert_launch(&call);
	assert_int_equal(arg("cuLaunchKernel", &call, "kernelParams"), 0x7ffd0000);
}

static void test_runtime_launch_has_dims_in_two_registers_each(void **state)
{
	struct api_raw raw = {
		.reg = { 0xf00, xy(196, 2), GARBAGE | 3, xy(256, 4), GARBAGE | 5, 0x7ffd0000 },
		.stack = { 4096, 0x57 },
	};
	static const char *const symbols[] = { "cudaLaunchKernel", "cudaLaunchKernel_ptsz",
		                               "__cudaLaunchKernel",
		                               "cudaLaunchCooperativeKernel" };

	for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
		struct api_call call = decode_x86(symbols[i], raw);

		assert_launch(&call);
	}
}

static void test_runtime_launch_on_aarch64(void **state)
{
	struct api_raw raw = { .reg = { 0xf00, xy(196, 2), GARBAGE | 3, xy(256, 4), GARBAGE | 5,
		                        0x7ffd0000, 4096, 0x57 } };
	struct api_call call = decode_arm("cudaLaunchKernel", raw);

	assert_launch(&call);
}

static void test_extended_launches_have_a_struct(void **state)
{
	struct api_raw driver = {
		.reg = { 0x7ffd1000, 0xf00, 0x7ffd0000, 0 },
		.blob = { xy(196, 2), xy(3, 256), xy(4, 5), xy(4096, 0xdeadbeef), 0x57 },
		.blob_valid = true,
	};
	struct api_raw runtime = driver;
	struct api_call call = decode_x86("cuLaunchKernelEx_ptsz", driver);

	assert_launch(&call);
	assert_int_equal(arg("cuLaunchKernelEx", &call, "config"), 0x7ffd1000);
	runtime.blob[3] = 4096;
	call = decode_arm("cudaLaunchKernelExC", runtime);
	assert_launch(&call);
}

static void test_a_struct_that_could_not_be_read_leaves_zeros(void **state)
{
	struct api_raw raw = {
		.reg = { 0x7ffd1000, 0xf00, 0, 0 },
		.blob = { UNUSED, UNUSED, UNUSED, UNUSED, UNUSED },
	};
	struct api_call call = decode_x86("cuLaunchKernelEx", raw);

	assert_int_equal(call.handle, 0xf00);
	assert_dims(call.grid, 0, 0, 0);
	assert_dims(call.block, 0, 0, 0);
	assert_int_equal(call.shmem_bytes, 0);
	assert_int_equal(call.stream, 0);
}

static void test_old_launches_have_flat_grids(void **state)
{
	struct api_raw raw = { .reg = { 0xf00, 12, 34, 0x57 } };
	struct api_call call = decode_x86("cuLaunchGridAsync", raw);

	assert_dims(call.grid, 12, 34, 1);
	assert_int_equal(call.stream, 0x57);
	call = decode_x86("cuLaunch", raw);
	assert_dims(call.grid, 1, 1, 1);
	assert_false(call.has_stream);
}

static void test_graph_launch_has_its_graph_and_stream(void **state)
{
	struct api_call call =
		decode_x86("cudaGraphLaunch", (struct api_raw){ .reg = { 0xe0, 0x57 } });

	assert_int_equal(call.handle, 0xe0);
	assert_int_equal(call.stream, 0x57);
}

/* ---- memory -------------------------------------------------------------------------------- */

static void test_allocation_has_address_and_bytes(void **state)
{
	struct api_raw raw = { .reg = { 0x7ffd0000, 1 << 20, 0x57 },
		               .out = { 0x7f12c0000000 },
		               .out_valid = true };
	struct api_call call = decode_x86("cuMemAlloc_v2", raw);

	assert_int_equal(call.address, 0x7f12c0000000);
	assert_int_equal(call.bytes, 1 << 20);
	assert_int_equal(arg("cuMemAlloc_v2", &call, "devPtr"), 0x7f12c0000000);
	assert_int_equal(arg("cuMemAlloc_v2", &call, "size"), 1 << 20);
	call = decode_x86("cudaMallocAsync_ptsz", raw);
	assert_int_equal(call.address, 0x7f12c0000000);
	assert_int_equal(call.stream, 0x57);
	assert_int_equal(api_memory(api_find("cudaMallocAsync")), MEMORY_ASYNC);
}

static void test_failed_allocation_has_bytes_and_no_address(void **state)
{
	struct api_raw raw = { .reg = { 0x7ffd0000, 1ull << 40 }, .out = { UNUSED } };
	struct api_call call = decode_x86("cudaMalloc", raw);

	assert_int_equal(call.address, 0);
	assert_int_equal(call.bytes, 1ull << 40);
}

static void test_cuda_3_allocation_is_32_bits_wide(void **state)
{
	struct api_raw raw = { .reg = { 0x7ffd0000, GARBAGE | 512 },
		               .out = { GARBAGE | 0x1000 },
		               .out_valid = true };
	struct api_call call = decode_x86("cuMemAlloc", raw);

	assert_int_equal(call.address, 0x1000);
	assert_int_equal(call.bytes, 512);
}

static void test_pitched_allocation_counts_the_padding(void **state)
{
	struct api_raw raw = { .reg = { 0x7ffd0000, 0x7ffd0008, 1000, 16 },
		               .out = { 0x7f00, 1024 },
		               .out_valid = true };
	struct api_call call = decode_x86("cudaMallocPitch", raw);

	assert_int_equal(call.address, 0x7f00);
	assert_int_equal(call.bytes, 1024 * 16);
	call = decode_x86("cuMemAllocPitch_v2", raw);
	assert_int_equal(call.bytes, 1024 * 16);
	raw.out_valid = false;
	call = decode_x86("cudaMallocPitch", raw);
	assert_int_equal(call.bytes, 1000 * 16);
}

static void test_allocation_in_three_dimensions(void **state)
{
	struct api_raw x86 = { .reg = { 0x7ffd0000 },
		               .stack = { 1000, 16, 4 },
		               .out = { 0x7f00 },
		               .out_valid = true,
		               .blob = { 0x7f00, 1024, 1000, 16 },
		               .blob_valid = true };
	struct api_raw arm = { .reg = { 0x7ffd0000, 0x7ffd0040 },
		               .out = { 0x7f00 },
		               .out_valid = true,
		               .blob = { 1000, 16, 4 },
		               .blob_valid = true };
	struct api_call call = decode_x86("cudaMalloc3D", x86);

	assert_int_equal(call.address, 0x7f00);
	assert_int_equal(call.bytes, 1024 * 16 * 4);
	x86.out_valid = x86.blob_valid = false;
	call = decode_x86("cudaMalloc3D", x86);
	assert_int_equal(call.bytes, 1000 * 16 * 4);
	call = decode_arm("cudaMalloc3D", arm);
	assert_int_equal(call.address, 0x7f00);
	assert_int_equal(call.bytes, 1000 * 16 * 4);
}

static void test_array_bytes_come_from_its_format(void **state)
{
	struct api_raw runtime = { .reg = { 0x7ffd0000, 0x7ffd0040, 64, 32, 0 },
		                   .out = { 0xa0 },
		                   .out_valid = true,
		                   .blob = { xy(32, 32), xy(32, 32) }, /* float4 */
		                   .blob_valid = true };
	struct api_raw driver = { .reg = { 0x7ffd0000, 0x7ffd0040 },
		                  .out = { 0xa0 },
		                  .out_valid = true,
		                  .blob = { 64, 32, xy(0x10, 2) }, /* two halves */
		                  .blob_valid = true };
	struct api_call call = decode_x86("cudaMallocArray", runtime);

	assert_int_equal(call.address, 0xa0);
	assert_int_equal(call.bytes, 64 * 32 * 16);
	runtime.reg[3] = 0; /* one dimension */
	call = decode_x86("cudaMallocArray", runtime);
	assert_int_equal(call.bytes, 64 * 16);
	call = decode_x86("cuArrayCreate_v2", driver);
	assert_int_equal(call.bytes, 64 * 32 * 4);
	driver.blob[2] = xy(0x91, 4); /* block-compressed: not known */
	call = decode_x86("cuArrayCreate_v2", driver);
	assert_int_equal(call.bytes, 0);
}

static void test_mipmaps_add_their_levels(void **state)
{
	struct api_raw raw = { .reg = { 0x7ffd0000, 0x7ffd0040, 3 },
		               .out = { 0xa0 },
		               .out_valid = true,
		               .blob = { 64, 32, 0, xy(0x20, 1), 0 },
		               .blob_valid = true };
	struct api_call call = decode_x86("cuMipmappedArrayCreate", raw);

	assert_int_equal(call.bytes, 4 * (64 * 32 + 32 * 16 + 16 * 8));
	raw.reg[2] = 0xffffffff; /* nonsense: 32 levels at most, one element each from the 7th on */
	call = decode_x86("cuMipmappedArrayCreate", raw);
	assert_int_equal(call.bytes, 4 * (2048 + 512 + 128 + 32 + 8 + 2 + 26));
}

static void test_a_structs_depth_that_is_not_recorded_leaves_bytes_unknown(void **state)
{
	struct api_raw raw = { .reg = { 0, 0x57 }, .stack = { 0x7f00, 1024, 1000, 16, 1000, 16 } };
	struct api_call call = decode_x86("cudaMemset3DAsync", raw);

	assert_int_equal(call.address, 0x7f00);
	assert_int_equal(call.bytes, 0);
	assert_int_equal(call.stream, 0x57);
}

static void test_frees_have_the_address(void **state)
{
	struct api_raw raw = { .reg = { 0x7f12c0000000, 0x57 } };
	static const char *const symbols[] = {
		"cudaFree",     "cuMemFree_v2", "cuMemFreeAsync",
		"cudaFreeHost", "cuMemRelease", "cudaHostUnregister"
	};

	for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
		struct api_call call = decode_x86(symbols[i], raw);

		assert_int_equal(call.address, 0x7f12c0000000);
		assert_int_equal(api_op(api_find(symbols[i])), OP_FREE);
	}
}

static void test_registered_host_memory_is_an_allocation(void **state)
{
	struct api_raw raw = { .reg = { 0x7f0012340000, 4096, 0 } };
	struct api_call call = decode_x86("cudaHostRegister", raw);

	assert_int_equal(api_memory(api_find("cudaHostRegister")), MEMORY_HOST);
	assert_int_equal(call.address, 0x7f0012340000);
	assert_int_equal(call.bytes, 4096);
}

static void test_virtual_memory_is_told_from_physical(void **state)
{
	struct api_raw raw = { .reg = { 0x7ffd0000, 2 << 20 }, .out = { 0xb0 }, .out_valid = true };
	struct api_call call = decode_x86("cuMemCreate", raw);

	assert_int_equal(call.address, 0xb0);
	assert_int_equal(call.bytes, 2 << 20);
	assert_int_equal(api_memory(api_find("cuMemCreate")), MEMORY_VMM);
	assert_int_equal(api_memory(api_find("cuMemAddressReserve")), MEMORY_VMM_VA);
	raw = (struct api_raw){ .reg = { 0x7f00, 2 << 20, 0, 0xb0 } };
	call = decode_x86("cuMemMap", raw);
	assert_int_equal(api_op(api_find("cuMemMap")), OP_MAP);
	assert_int_equal(call.address, 0x7f00);
	assert_int_equal(call.source, 0xb0);
	assert_int_equal(call.bytes, 2 << 20);
}

static void test_a_cooperative_launch_is_one_on_each_device(void **state)
{
	struct api_raw raw = { .reg = { 0x7ffd0000, 2 } };

	assert_int_equal(decode_x86("cuLaunchCooperativeKernelMultiDevice", raw).launches, 2);
	assert_int_equal(decode_x86("cudaLaunchCooperativeKernelMultiDevice", raw).launches, 2);
	assert_int_equal(decode_x86("cuLaunchCooperativeKernel", raw).launches, 1);
	assert_int_equal(decode_x86("cuMemFree_v2", raw).launches, 0);
	raw.reg[1] = 0xffffffff; /* whoever says so */
	assert_int_equal(decode_x86("cuLaunchCooperativeKernelMultiDevice", raw).launches,
	                 API_LAUNCHES_MAX);
}

static void test_memory_of_graphs(void **state)
{
	struct api_raw raw = { .reg = { 0x7ffd0000, 0x6a, 0, 0, 0x7ffe0000 },
		               .out = { 0x90de },
		               .out_valid = true,
		               .blob_valid = true };
	struct api_call call;

	raw.blob[13] = 4096;   /* bytesize, at 104 */
	raw.blob[14] = 0x7f00; /* dptr */
	call = decode_x86("cuGraphAddMemAllocNode", raw);
	assert_int_equal(call.source, 0x6a);
	assert_int_equal(call.bytes, 4096);
	assert_int_equal(call.address, 0x7f00);
	raw = (struct api_raw){ .reg = { 0x7ffd0000, 0x6a, 0, 0, 0x7f00 } };
	call = decode_x86("cudaGraphAddMemFreeNode", raw);
	assert_int_equal(call.source, 0x6a);
	assert_int_equal(call.address, 0x7f00);
	raw = (struct api_raw){ .reg = { 0x7ffd0000, 0x6a }, .out = { 0xe8ec }, .out_valid = true };
	call = decode_x86("cudaGraphInstantiate", raw);
	assert_int_equal(call.source, 0x6a);
	assert_int_equal(call.handle, 0xe8ec);
}

/* ---- the rest ------------------------------------------------------------------------------ */

static void test_streams_and_events(void **state)
{
	struct api_raw made = { .reg = { 0x7ffd0000, 1 }, .out = { 0x57 }, .out_valid = true };
	struct api_raw raw = { .reg = { 0xe1, 0x57 } };
	struct api_raw wait = { .reg = { 0x57, 0xe1, 0 } };
	struct api_call call = decode_x86("cudaStreamCreateWithFlags", made);

	assert_int_equal(call.stream, 0x57);
	call = decode_x86("cuEventRecord_ptsz", raw);
	assert_int_equal(call.event, 0xe1);
	assert_int_equal(call.stream, 0x57);
	call = decode_x86("cudaStreamWaitEvent", wait);
	assert_int_equal(call.event, 0xe1);
	assert_int_equal(call.stream, 0x57);
	assert_int_equal(api_op(api_find("cudaStreamWaitEvent")), OP_EVENT_WAIT);
	call = decode_x86("cudaStreamSynchronize", (struct api_raw){ .reg = { 0 } });
	assert_true(call.has_stream);
	assert_int_equal(call.stream, 0);
}

static void test_captures_begin_and_end_on_a_stream(void **state)
{
	struct api_raw raw = { .reg = { 0x57, 0x7ffd0000 }, .out = { 0x9a }, .out_valid = true };
	struct api_call call = decode_x86("cudaStreamEndCapture", raw);

	assert_int_equal(call.stream, 0x57);
	assert_int_equal(arg("cudaStreamEndCapture", &call, "pGraph"), 0x9a);
	assert_int_equal(api_op(api_find("cuStreamBeginCapture_v2")), OP_CAPTURE_BEGIN);
	assert_int_equal(api_op(api_find("cudaStreamBeginCaptureToGraph_ptsz")), OP_CAPTURE_BEGIN);
	assert_int_equal(decode_x86("cuStreamBeginCapture_v2", raw).stream, 0x57);
}

static void test_names_of_kernels_go_to_handles(void **state)
{
	struct api_raw named = { .reg = { 0x7ffd0000, 0x3d, 0x4000 },
		                 .out = { 0xf00 },
		                 .out_valid = true };
	struct api_raw alias = { .reg = { 0x7ffd0000, 0xc0de },
		                 .out = { 0xf00 },
		                 .out_valid = true };
	struct api_call call = decode_x86("cuModuleGetFunction", named);

	assert_int_equal(call.handle, 0xf00);
	call = decode_x86("__cudaRegisterFunction",
	                  (struct api_raw){ .reg = { 0x3d, 0xc0de, 0x4000 } });
	assert_int_equal(call.handle, 0xc0de);
	call = decode_x86("__cudaGetKernel", alias); /* the new handle is the stub's kernel */
	assert_int_equal(call.handle, 0xc0de);
	assert_int_equal(call.arg[0], 0xf00);
	call = decode_x86("cuKernelGetFunction", alias);
	assert_int_equal(call.handle, 0xc0de);
}

static void test_small_values_are_cut_and_signed(void **state)
{
	struct api_raw raw = { .reg = { 0x7ffd0000, 1, GARBAGE | 0xfffffffb }, /* priority -5 */
		               .out = { 0x57 },
		               .out_valid = true };
	struct api_raw time = { .reg = { 0x7ffd0000, 0xe1, 0xe2 },
		                .out = { GARBAGE | 0x3f800000 }, /* 1.0f */
		                .out_valid = true };
	struct api_call call = decode_x86("cudaStreamCreateWithPriority", raw);

	assert_int_equal((int64_t)arg("cudaStreamCreateWithPriority", &call, "priority"), -5);
	call = decode_x86("cudaEventElapsedTime_v2", time);
	assert_int_equal(call.arg[0], 0x3f800000);
}

/* A class of calls that moves nothing must not look as if it did. */
static void test_hints_move_no_bytes(void **state)
{
	struct api_raw raw = { .reg = { 0x1000, 4096, 0, 0x57 } };
	struct api_call call = decode_x86("cuMemPrefetchAsync", raw);

	assert_int_equal(call.bytes, 0);
	assert_int_equal(call.address, 0);
	assert_int_equal(call.direction, DIRECTION_NONE);
	assert_int_equal(arg("cuMemPrefetchAsync", &call, "count"), 4096);
}

static void test_any_words_decode(void **state)
{
	const struct api_row *tables[] = { driver_rows, runtime_rows };
	const size_t counts[] = { n_driver_rows, n_runtime_rows };
	struct api_raw raw;
	struct api_call call;

	memset(&raw, 0xff, sizeof(raw));
	raw.out_valid = raw.blob_valid = true;
	for (int t = 0; t < 2; t++)
		for (size_t i = 0; i < counts[t]; i++)
			for (enum api_abi abi = 0; abi < ABI_COUNT; abi++) {
				call = decode(tables[t][i].name, abi, &raw);
				assert_true(call.n_args <= API_ARGS_MAX);
				assert_true(call.direction < DIRECTION_COUNT);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_driver_launch_has_its_tail_on_the_stack),
		cmocka_unit_test(test_driver_launch_on_aarch64),
		cmocka_unit_test(test_runtime_launch_has_dims_in_two_registers_each),
		cmocka_unit_test(test_runtime_launch_on_aarch64),
		cmocka_unit_test(test_extended_launches_have_a_struct),
		cmocka_unit_test(test_a_struct_that_could_not_be_read_leaves_zeros),
		cmocka_unit_test(test_old_launches_have_flat_grids),
		cmocka_unit_test(test_graph_launch_has_its_graph_and_stream),
		cmocka_unit_test(test_allocation_has_address_and_bytes),
		cmocka_unit_test(test_failed_allocation_has_bytes_and_no_address),
		cmocka_unit_test(test_cuda_3_allocation_is_32_bits_wide),
		cmocka_unit_test(test_pitched_allocation_counts_the_padding),
		cmocka_unit_test(test_allocation_in_three_dimensions),
		cmocka_unit_test(test_array_bytes_come_from_its_format),
		cmocka_unit_test(test_mipmaps_add_their_levels),
		cmocka_unit_test(test_a_structs_depth_that_is_not_recorded_leaves_bytes_unknown),
		cmocka_unit_test(test_frees_have_the_address),
		cmocka_unit_test(test_registered_host_memory_is_an_allocation),
		cmocka_unit_test(test_virtual_memory_is_told_from_physical),
		cmocka_unit_test(test_a_cooperative_launch_is_one_on_each_device),
		cmocka_unit_test(test_memory_of_graphs),
		cmocka_unit_test(test_streams_and_events),
		cmocka_unit_test(test_captures_begin_and_end_on_a_stream),
		cmocka_unit_test(test_names_of_kernels_go_to_handles),
		cmocka_unit_test(test_small_values_are_cut_and_signed),
		cmocka_unit_test(test_hints_move_no_bytes),
		cmocka_unit_test(test_any_words_decode),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
