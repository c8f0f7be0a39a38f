// SPDX-License-Identifier: MIT
/* Which functions --only, --skip, --class and --layer choose. */
#include "unit.h"

#include "base/array.h"
#include "probe/selection.h"

static enum hook_group group_of(const struct selection *selection, const char *name)
{
	enum api_layer layer = strstr(name, "cuda") ? LAYER_RUNTIME : LAYER_DRIVER;
	const char *why;

	return selection_group(selection, name, layer, &why);
}

static const char *why_of(const struct selection *selection, const char *name)
{
	enum api_layer layer = strstr(name, "cuda") ? LAYER_RUNTIME : LAYER_DRIVER;
	const char *why = "never set";

	selection_group(selection, name, layer, &why);
	return why;
}

/* ---- globs --------------------------------------------------------------------------------- */

static void test_a_glob_matches_the_whole_name(void **state)
{
	assert_true(selection_matches("cudaMalloc", "cudaMalloc"));
	assert_true(selection_matches("cuda*", "cudaMalloc"));
	assert_true(selection_matches("*Mal?oc", "cudaMalloc"));
	assert_false(selection_matches("cuda", "cudaMalloc"));
	assert_false(selection_matches("Malloc", "cudaMalloc"));
	assert_false(selection_matches("cudaMalloc", "cudaMallocAsync"));
}

static void test_a_glob_matches_without_variant_suffixes(void **state)
{
	assert_true(selection_matches("cuMemAlloc", "cuMemAlloc_v2"));
	assert_true(selection_matches("cuLaunchKernel", "cuLaunchKernel_ptsz"));
	assert_true(selection_matches("cuMemcpyHtoD", "cuMemcpyHtoD_v2_ptds"));
	assert_true(selection_matches("cuMemcpyHtoD_v2", "cuMemcpyHtoD_v2_ptds"));
	assert_true(selection_matches("cuMemAlloc_v2", "cuMemAlloc_v2"));
}

static void test_a_glob_with_a_suffix_means_that_variant_only(void **state)
{
	assert_false(selection_matches("cuMemAlloc_v2", "cuMemAlloc"));
	assert_false(selection_matches("cuMemAlloc_v2", "cuMemAlloc_v3"));
	assert_false(selection_matches("cuLaunchKernel_ptsz", "cuLaunchKernel"));
}

static void test_what_only_looks_like_a_suffix_stays(void **state)
{
	assert_false(selection_matches("cuMem", "cuMem_vmm"));
	assert_false(selection_matches("", "_ptsz"));
}

/* ---- the defaults -------------------------------------------------------------------------- */

static void test_launches_that_agents_may_tell_of_are_apart(void **state)
{
	const struct selection told = { .agents = true };
	const struct selection runtime = { .agents = true, .layers = LAYERS_BOTH };
	const struct selection none = { 0 };

	assert_int_equal(group_of(&told, "cuLaunchKernel_ptsz"), HOOK_LAUNCH);
	assert_int_equal(group_of(&told, "cuLaunchKernelEx"), HOOK_LAUNCH);
	assert_int_equal(group_of(&told, "cuGraphLaunch"), HOOK_CORE);
	assert_int_equal(group_of(&told, "cuLaunchCooperativeKernelMultiDevice"), HOOK_CORE);
	assert_int_equal(group_of(&runtime, "cuLaunchKernel"), HOOK_CORE);
	assert_int_equal(group_of(&none, "cuLaunchKernel"), HOOK_CORE);
}

static void test_by_default_launches_are_hooked_in_the_driver(void **state)
{
	const struct selection all = { 0 };

	assert_int_equal(group_of(&all, "cuLaunchKernel"), HOOK_CORE);
	assert_int_equal(group_of(&all, "cuGraphLaunch_ptsz"), HOOK_CORE);
	assert_int_equal(group_of(&all, "cudaLaunchKernel"), HOOK_RUNTIME_LAUNCH);
	assert_int_equal(group_of(&all, "cudaGraphLaunch"), HOOK_RUNTIME_LAUNCH);
}

static void test_by_default_the_rest_is_hooked_in_both_layers(void **state)
{
	const struct selection all = { 0 };

	assert_int_equal(group_of(&all, "cuMemAlloc_v2"), HOOK_CORE);
	assert_int_equal(group_of(&all, "cudaMalloc"), HOOK_CORE);
	assert_null(why_of(&all, "cudaMalloc"));
}

static void test_by_default_getters_are_left_alone(void **state)
{
	const struct selection all = { 0 };

	assert_int_equal(group_of(&all, "cuCtxGetCurrent"), HOOK_OFF);
	assert_int_equal(group_of(&all, "cudaGetLastError"), HOOK_OFF);
	assert_non_null(strstr(why_of(&all, "cudaGetLastError"), "--all-calls"));
}

static void test_functions_without_a_row_are_hooked(void **state)
{
	const struct selection all = { 0 };

	assert_null(api_find("cuFrobnicateLater"));
	assert_int_equal(group_of(&all, "cuFrobnicateLater"), HOOK_CORE);
}

static void test_all_calls_hooks_getters_as_what_is_given_up_first(void **state)
{
	const struct selection all = { .all_calls = true };

	assert_int_equal(group_of(&all, "cudaGetLastError"), HOOK_LITTLE);
	assert_int_equal(group_of(&all, "cudaMalloc"), HOOK_CORE);
}

/* ---- what the user asks for ---------------------------------------------------------------- */

static void test_layers(void **state)
{
	struct selection selection = { .layers = LAYERS_DRIVER };

	assert_int_equal(group_of(&selection, "cuLaunchKernel"), HOOK_CORE);
	assert_int_equal(group_of(&selection, "cudaMalloc"), HOOK_OFF);
	assert_string_equal(why_of(&selection, "cudaMalloc"), "--layer");
	selection.layers = LAYERS_RUNTIME;
	assert_int_equal(group_of(&selection, "cuLaunchKernel"), HOOK_OFF);
	assert_int_equal(group_of(&selection, "cudaLaunchKernel"), HOOK_CORE);
	selection.layers = LAYERS_BOTH;
	assert_int_equal(group_of(&selection, "cuLaunchKernel"), HOOK_CORE);
	assert_int_equal(group_of(&selection, "cudaLaunchKernel"), HOOK_CORE);
}

static void test_classes(void **state)
{
	const struct selection selection = { .classes = 1u << CLASS_MEMORY | 1u << CLASS_SYNC };

	assert_int_equal(group_of(&selection, "cuMemAlloc_v2"), HOOK_CORE);
	assert_int_equal(group_of(&selection, "cudaDeviceSynchronize"), HOOK_CORE);
	assert_int_equal(group_of(&selection, "cuLaunchKernel"), HOOK_OFF);
	assert_string_equal(why_of(&selection, "cuLaunchKernel"), "--class");
}

static void test_only_hooks_what_it_names_whatever_else_is_said(void **state)
{
	const char *only[] = { "cudaLaunchKernel", "cudaGet*" };
	const struct selection selection = {
		.only = only, .n_only = 2, .classes = 1u << CLASS_MEMORY, .layers = LAYERS_DRIVER
	};

	assert_int_equal(group_of(&selection, "cudaLaunchKernel"), HOOK_CORE);
	assert_int_equal(group_of(&selection, "cudaLaunchKernel_ptsz"), HOOK_CORE);
	assert_int_equal(group_of(&selection, "cudaGetLastError"), HOOK_CORE);
	assert_int_equal(group_of(&selection, "cudaMalloc"), HOOK_OFF);
	assert_string_equal(why_of(&selection, "cudaMalloc"), "--only");
}

static void test_skip_wins_over_only(void **state)
{
	const char *only[] = { "cudaM*" }, *skip[] = { "cudaMemset*" };
	const struct selection selection = { .only = only, .n_only = 1, .skip = skip, .n_skip = 1 };

	assert_int_equal(group_of(&selection, "cudaMalloc"), HOOK_CORE);
	assert_int_equal(group_of(&selection, "cudaMemsetAsync"), HOOK_OFF);
	assert_string_equal(why_of(&selection, "cudaMemsetAsync"), "--skip");
}

/* ---- what is needed to understand the rest ------------------------------------------------- */

static void test_graph_capture_is_followed_whatever_is_asked_for(void **state)
{
	static const char *const needed[] = { "cuStreamBeginCapture_v2", "cudaStreamEndCapture",
		                              "cuEventRecord", "cudaStreamWaitEvent_ptsz",
		                              "cuModuleUnload" };
	const char *skip[] = { "cu*" };
	const struct selection launches = { .classes = 1u << CLASS_LAUNCH };
	const struct selection nothing = { .skip = skip, .n_skip = 1 };

	for (size_t i = 0; i < ARRAY_SIZE(needed); i++) {
		assert_int_equal(group_of(&launches, needed[i]), HOOK_SUPPORT);
		assert_int_equal(group_of(&nothing, needed[i]), HOOK_SUPPORT);
	}
}

static void test_registering_of_kernels_is_followed_where_stubs_must_be_named(void **state)
{
	const char *only[] = { "cudaLaunchKernel" };
	struct selection selection = { .layers = LAYERS_AUTO };

	assert_int_equal(group_of(&selection, "__cudaRegisterFunction"), HOOK_OFF);
	selection.layers = LAYERS_RUNTIME;
	assert_int_equal(group_of(&selection, "__cudaRegisterFunction"), HOOK_SUPPORT);
	selection.layers = LAYERS_BOTH;
	assert_int_equal(group_of(&selection, "__cudaRegisterFunction"), HOOK_SUPPORT);
	selection = (struct selection){ .only = only, .n_only = 1 };
	assert_int_equal(group_of(&selection, "__cudaRegisterFunction"), HOOK_SUPPORT);
	selection.layers = LAYERS_DRIVER; /* no launch of the runtime is told */
	assert_int_equal(group_of(&selection, "__cudaRegisterFunction"), HOOK_OFF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_glob_matches_the_whole_name),
		cmocka_unit_test(test_a_glob_matches_without_variant_suffixes),
		cmocka_unit_test(test_a_glob_with_a_suffix_means_that_variant_only),
		cmocka_unit_test(test_what_only_looks_like_a_suffix_stays),
		cmocka_unit_test(test_launches_that_agents_may_tell_of_are_apart),
		cmocka_unit_test(test_by_default_launches_are_hooked_in_the_driver),
		cmocka_unit_test(test_by_default_the_rest_is_hooked_in_both_layers),
		cmocka_unit_test(test_by_default_getters_are_left_alone),
		cmocka_unit_test(test_functions_without_a_row_are_hooked),
		cmocka_unit_test(test_all_calls_hooks_getters_as_what_is_given_up_first),
		cmocka_unit_test(test_layers),
		cmocka_unit_test(test_classes),
		cmocka_unit_test(test_only_hooks_what_it_names_whatever_else_is_said),
		cmocka_unit_test(test_skip_wins_over_only),
		cmocka_unit_test(test_graph_capture_is_followed_whatever_is_asked_for),
		cmocka_unit_test(test_registering_of_kernels_is_followed_where_stubs_must_be_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
