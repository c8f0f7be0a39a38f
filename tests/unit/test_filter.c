// SPDX-License-Identifier: MIT
/* Which events --failed, --function, --kernel and --max-events let through. */
#include "trace_events.h"

#include "trace/filter.h"

static struct kernel gemm = { .id = 3,
	                      .mangled = "_ZN7cutlass4gemmIfEEvPf",
	                      .name = "void cutlass::gemm<float>(float*)",
	                      .resolved = true };
static struct kernel add = { .id = 900, .name = "add(int)", .resolved = true };

static struct filter *filter;

static void begin(struct filter_choice choice)
{
	assert_true(filter_is_any(&choice));
	filter = filter_new(&choice);
}

static bool wants_call(struct call call)
{
	struct event event = { .type = EVENT_CALL, .time_ns = call.end_ns, .call = &call };

	return filter_wants(filter, &event);
}

static bool wants_failed(const char *name)
{
	struct call call = call_at(name, 1, 1);

	fail_call(&call, 2);
	return wants_call(call);
}

static bool wants_run(const struct kernel *kernel, uint64_t begin_ns)
{
	const struct activity activity = { .kind = kernel ? ACTIVITY_KERNEL : ACTIVITY_COPY,
		                           .begin_ns = begin_ns,
		                           .kernel = kernel };
	const struct event event = { .type = EVENT_ACTIVITY, .activity = &activity };

	return filter_wants(filter, &event);
}

static bool wants_range(uint64_t begin_ns)
{
	const struct range range = { .begin_ns = begin_ns, .name = "step" };
	const struct event event = { .type = EVENT_RANGE, .range = &range };

	return filter_wants(filter, &event);
}

static bool wants_other(enum event_type type)
{
	return filter_wants(filter, &(struct event){ .type = type });
}

static void test_nothing_asked_for_is_everything(void **state)
{
	assert_false(filter_is_any(&(struct filter_choice){ 0 }));
}

static void test_failed_calls_alone(void **state)
{
	begin((struct filter_choice){ .failed = true });
	assert_true(wants_failed("cudaMalloc"));
	assert_false(wants_call(call_at("cudaMalloc", 1, 1)));
	assert_false(wants_run(&gemm, 1));
	assert_false(wants_range(1));
	assert_true(wants_other(EVENT_PROCESS));
	assert_true(wants_other(EVENT_EXIT));
	filter_free(filter);
}

static void test_functions_with_and_without_their_variant(void **state)
{
	begin((struct filter_choice){ .function = "cuMemAlloc" });
	assert_true(wants_call(call_at("cuMemAlloc_v2", 1, 1)));
	assert_true(wants_call(call_at("cuMemAlloc_v2", 2, 1)));
	assert_false(wants_call(call_at("cuMemFree_v2", 3, 1)));
	assert_false(wants_run(&gemm, 1));
	filter_free(filter);
}

static void test_kernels_by_any_of_their_names(void **state)
{
	static const char *const globs[] = { "gemm", "*cutlass::gemm<*", "_ZN7cutlass*" };

	for (size_t i = 0; i < 3; i++) {
		begin((struct filter_choice){ .kernel = globs[i] });
		assert_true(wants_call(launch_at("cuLaunchKernel", 1, &gemm)));
		assert_true(wants_run(&gemm, 1));
		assert_false(wants_call(launch_at("cuLaunchKernel", 1, &add)));
		assert_false(wants_run(&add, 1));
		assert_false(wants_run(NULL, 1));
		assert_false(wants_call(call_at("cudaMalloc", 1, 1)));
		assert_false(wants_range(1));
		filter_free(filter);
	}
}

static void test_all_that_is_asked_for_has_to_be_so(void **state)
{
	struct call launch = launch_at("cuLaunchKernel", 1, &gemm);

	begin((struct filter_choice){ .failed = true, .kernel = "gemm", .function = "cuLaunch*" });
	assert_false(wants_call(launch));
	fail_call(&launch, 1);
	assert_true(wants_call(launch));
	launch.kernel = &add;
	assert_false(wants_call(launch));
	filter_free(filter);
}

static void test_the_first_calls_and_what_ran_until_they_ended(void **state)
{
	struct call call = call_at("cudaMalloc", 1, 1);

	begin((struct filter_choice){ .max_calls = 2, .function = NULL });
	assert_true(wants_call(call));
	assert_true(wants_run(&gemm, call.end_ns + 1)); /* more may come */
	assert_true(wants_call(call));
	assert_false(wants_call(call));
	assert_true(wants_run(&gemm, call.end_ns));
	assert_false(wants_run(&gemm, call.end_ns + 1));
	assert_false(wants_range(call.end_ns + 1));
	filter_free(filter);
}

static void test_calls_within_others_are_not_among_the_first(void **state)
{
	struct call outer = call_at("cudaMalloc", 1, 5), inner = call_at("cuMemAlloc_v2", 2, 1);

	inner.flags = CALL_NESTED;
	begin((struct filter_choice){ .max_calls = 2 });
	for (int i = 0; i < 2; i++) {
		assert_true(wants_call(inner));
		assert_true(wants_call(outer));
	}
	assert_false(wants_call(inner));
	filter_free(filter);
	begin((struct filter_choice){ .max_calls = 2, .function = "cuMemAlloc*" });
	assert_true(wants_call(inner)); /* what was chosen by name counts */
	assert_true(wants_call(inner));
	assert_false(wants_call(inner));
	filter_free(filter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_asked_for_is_everything),
		cmocka_unit_test(test_failed_calls_alone),
		cmocka_unit_test(test_functions_with_and_without_their_variant),
		cmocka_unit_test(test_kernels_by_any_of_their_names),
		cmocka_unit_test(test_all_that_is_asked_for_has_to_be_so),
		cmocka_unit_test(test_the_first_calls_and_what_ran_until_they_ended),
		cmocka_unit_test(test_calls_within_others_are_not_among_the_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
