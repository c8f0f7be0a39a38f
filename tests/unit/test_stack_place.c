// SPDX-License-Identifier: MIT
/* Which frame of a whole stack is the place, by every rule, and what it is called. */
#include "unit.h"

#include "analysis/place.h"
#include "base/array.h"

static const struct stack_frame forward = {
	.kind = FRAME_PYTHON, .function = "Net.forward", .file = "/home/u/train.py", .line = 88
};
static const struct stack_frame linear = {
	.kind = FRAME_PYTHON,
	.function = "Linear.forward",
	.file = "/usr/lib/python3/dist-packages/torch/nn/linear.py",
	.line = 125
};
static const struct stack_frame queue_get = { .kind = FRAME_PYTHON,
	                                      .function = "Queue.get",
	                                      .file = "/usr/lib/python3.12/queue.py",
	                                      .line = 171 };
static const struct stack_frame importing = { .kind = FRAME_PYTHON,
	                                      .function = "_call_with_frames_removed",
	                                      .file = "<frozen importlib._bootstrap>",
	                                      .line = 241 };
static const struct stack_frame lost_python = { .kind = FRAME_PYTHON };
static const struct stack_frame launch = { .kind = FRAME_CUDA,
	                                   .function = "cudaLaunchKernel",
	                                   .module = "libcudart.so.12" };
static const struct stack_frame linked_in = { .kind = FRAME_NATIVE,
	                                      .function = "cudaMalloc",
	                                      .module = "app" };
static const struct stack_frame allocator = {
	.kind = FRAME_NATIVE,
	.function = "c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::malloc(int)",
	.module = "libc10_cuda.so"
};
static const struct stack_frame addmm = { .kind = FRAME_NATIVE,
	                                  .function = "at::addmm(at::Tensor const&)",
	                                  .module = "libtorch_cpu.so" };
static const struct stack_frame grow = {
	.kind = FRAME_NATIVE, .function = "Model::grow(int)", .module = "app", .offset = 0x1234
};
static const struct stack_frame stripped = { .kind = FRAME_NATIVE,
	                                     .module = "app",
	                                     .offset = 0x1234 };
static const struct stack_frame of_the_c_library = { .kind = FRAME_NATIVE,
	                                             .function = "qsort",
	                                             .module = "libc.so.6" };
static const struct stack_frame evaluator = { .kind = FRAME_NATIVE,
	                                      .function = "_PyEval_EvalFrameDefault",
	                                      .module = "python3.12" };
static const struct stack_frame loader = { .kind = FRAME_NATIVE,
	                                   .function = "call_init",
	                                   .module = "ld-linux-x86-64.so.2" };
static const struct stack_frame begin = { .kind = FRAME_NATIVE,
	                                  .function = "_start",
	                                  .module = "app" };
static const struct stack_frame nowhere = { .kind = FRAME_NATIVE };
static const struct stack_frame ioctl = { .kind = FRAME_KERNEL_MODE,
	                                  .function = "__x64_sys_ioctl",
	                                  .module = "[kernel]" };
static const struct stack_frame named_jit = { .kind = FRAME_JIT,
	                                      .function = "kernel_stub",
	                                      .module = "[anon]" };
static const struct stack_frame unnamed_jit = { .kind = FRAME_JIT, .module = "[anon]" };

#define PLACE(...)                                                                                 \
	({                                                                                         \
		const struct stack_frame *frames[] = { __VA_ARGS__ };                              \
		place_of(&(struct stack){ .n_frames = ARRAY_SIZE(frames), .frames = frames });     \
	})

static void assert_label(const struct stack_frame *frame, const char *expected)
{
	struct buf text = { 0 };

	place_label(frame, &text);
	assert_string_equal(text.data, expected);
	buf_free(&text);
}

static void test_users_line_of_python_is_before_all_else(void **state)
{
	assert_ptr_equal(PLACE(&launch, &addmm, &grow, &linear, &forward, &evaluator), &forward);
	assert_ptr_equal(PLACE(&queue_get, &importing, &forward), &forward);
}

static void test_innermost_of_two_users_lines_is_the_place(void **state)
{
	static const struct stack_frame train = { .kind = FRAME_PYTHON,
		                                  .function = "train",
		                                  .file = "train.py" };

	assert_ptr_equal(PLACE(&forward, &train), &forward);
	assert_ptr_equal(PLACE(&train, &forward), &train);
}

static void test_line_of_a_library_is_the_place_where_there_is_no_other(void **state)
{
	assert_ptr_equal(PLACE(&launch, &grow, &linear, &queue_get), &linear);
	assert_ptr_equal(PLACE(&importing, &queue_get), &importing);
}

static void test_python_that_could_not_be_read_is_no_place(void **state)
{
	assert_ptr_equal(PLACE(&launch, &lost_python, &linear), &linear);
	assert_ptr_equal(PLACE(&launch, &grow, &lost_python), &grow);
}

static void test_cuda_and_allocators_are_passed_over(void **state)
{
	assert_ptr_equal(PLACE(&launch, &grow, &begin), &grow);
	assert_ptr_equal(PLACE(&linked_in, &grow, &begin), &grow);
	assert_ptr_equal(PLACE(&launch, &allocator, &grow), &grow);
}

static void test_frameworks_are_places_only_where_nothing_else_is(void **state)
{
	assert_ptr_equal(PLACE(&launch, &addmm, &grow), &grow);
	assert_ptr_equal(PLACE(&launch, &addmm, &evaluator, &begin), &addmm);
}

static void test_what_jax_is_compiled_to_is_a_framework(void **state)
{
	static const char *const modules[] = { "xla_cuda_plugin.so", "libjax_common.so",
		                               "cuda_plugin_extension.so", "libcublasLt.so.13",
		                               "libcudnn_graph.so.9" };

	for (size_t i = 0; i < ARRAY_SIZE(modules); i++) {
		const struct stack_frame frame = { .kind = FRAME_NATIVE,
			                           .function = "xla::HloModule::Clone()",
			                           .module = modules[i] };

		assert_int_equal(place_rank(&frame), PLACE_FRAMEWORK);
	}
}

static void test_functions_of_library_headers_are_passed_over(void **state)
{
	static const struct stack_frame push_back = {
		.kind = FRAME_NATIVE,
		.inlined = true,
		.function = "std::vector<float>::push_back",
		.module = "app",
		.file = "/usr/include/c++/12/bits/stl_vector.h",
		.line = 1280
	};
	static const struct stack_frame own = { .kind = FRAME_NATIVE,
		                                .inlined = true,
		                                .function = "run_gemm",
		                                .module = "app",
		                                .file = "/home/u/include/ops.cuh",
		                                .line = 17 };

	assert_ptr_equal(PLACE(&launch, &push_back, &own, &grow), &own);
	assert_ptr_equal(PLACE(&push_back, &begin), &push_back);
	assert_label(&own, "run_gemm (ops.cuh:17)");
}

static void test_system_libraries_are_passed_over(void **state)
{
	assert_ptr_equal(PLACE(&of_the_c_library, &grow), &grow);
	assert_ptr_equal(PLACE(&loader, &evaluator, &grow), &grow);
	assert_ptr_equal(PLACE(&nowhere, &grow), &grow);
	assert_ptr_equal(PLACE(&launch, &begin, &of_the_c_library), &begin);
}

static void test_code_made_at_run_time_is_a_place_where_it_has_a_name(void **state)
{
	assert_ptr_equal(PLACE(&launch, &named_jit, &grow), &named_jit);
	assert_ptr_equal(PLACE(&launch, &unnamed_jit, &grow), &grow);
}

static void test_kernel_is_the_last_resort(void **state)
{
	assert_ptr_equal(PLACE(&ioctl, &launch), &launch);
	assert_ptr_equal(PLACE(&ioctl), &ioctl);
	assert_null(place_of(NULL));
}

static void test_labels(void **state)
{
	static const struct stack_frame no_line = { .kind = FRAME_PYTHON,
		                                    .function = "f",
		                                    .file = "a/b.py" };

	assert_label(&forward, "Net.forward (train.py:88)");
	assert_label(&no_line, "f (b.py)");
	assert_label(&grow, "Model::grow(int) (app)");
	assert_label(&stripped, "app+0x1234");
	assert_label(&nowhere, "[unknown]");
	assert_label(NULL, "(no stack)");
}

static uint32_t number(struct stack_places *places, uint32_t id, const struct stack_frame *frame)
{
	const struct stack stack = { .id = id, .n_frames = 1, .frames = &frame };

	return stack_places_number(places, &stack);
}

static void test_stacks_of_one_label_are_one_place(void **state)
{
	static const struct stack_frame elsewhere = { .kind = FRAME_NATIVE,
		                                      .function = "Model::grow(int)",
		                                      .module = "app",
		                                      .offset = 0x5678 };
	struct stack_places *places = stack_places_new();

	assert_int_equal(stack_places_number(places, NULL), 0);
	assert_int_equal(number(places, 900, &grow), 1);
	assert_int_equal(number(places, 0, &forward), 2);
	assert_int_equal(number(places, 1, &elsewhere), 1);
	assert_int_equal(number(places, 900, &grow), 1);
	assert_int_equal(stack_places_count(places), 3);
	assert_string_equal(stack_places_label(places, 0), "(no stack)");
	assert_string_equal(stack_places_label(places, 2), "Net.forward (train.py:88)");
	stack_places_free(places);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_users_line_of_python_is_before_all_else),
		cmocka_unit_test(test_innermost_of_two_users_lines_is_the_place),
		cmocka_unit_test(test_line_of_a_library_is_the_place_where_there_is_no_other),
		cmocka_unit_test(test_python_that_could_not_be_read_is_no_place),
		cmocka_unit_test(test_cuda_and_allocators_are_passed_over),
		cmocka_unit_test(test_frameworks_are_places_only_where_nothing_else_is),
		cmocka_unit_test(test_what_jax_is_compiled_to_is_a_framework),
		cmocka_unit_test(test_functions_of_library_headers_are_passed_over),
		cmocka_unit_test(test_system_libraries_are_passed_over),
		cmocka_unit_test(test_code_made_at_run_time_is_a_place_where_it_has_a_name),
		cmocka_unit_test(test_kernel_is_the_last_resort),
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_stacks_of_one_label_are_one_place),
	};

	return cmocka_run_group_tests_name("places of stacks", tests, NULL, NULL);
}
