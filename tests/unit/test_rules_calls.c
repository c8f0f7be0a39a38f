// SPDX-License-Identifier: MIT
/* The flight recorder's rules about calls: errors, and slow steps by launches and by NVTX ranges.
 */
#include "support.h"

#include "node/rules.h"

#define MS(n) ((uint64_t)(n)*1000000)

static const struct process train = { .id = 1, .pid = 77, .comm = "train" };
static const struct function launch_kernel = { .name = "cuLaunchKernel", .layer = LAYER_DRIVER };
static const struct kernel gemm = { .id = 3 };

static unsigned fired[RULE_COUNT];
static char said[RULES_TEXT_MAX];

static void hear(void *data, enum rule rule, uint64_t person, const char *why)
{
	fired[rule]++;
	snprintf(said, sizeof(said), "%s", why);
}

static struct call_rules *make(const char *step_range)
{
	struct rules_settings settings = { .errors = "fatal",
		                           .step_least_ns = 10000000,
		                           .cool_down_ns = 300000000000ull,
		                           .per_hour = 12 };

	settings.slow_step = 3;
	snprintf(settings.step_range, sizeof(settings.step_range), "%s", step_range);
	memset(fired, 0, sizeof(fired));
	said[0] = '\0';
	return call_rules_new(&settings, MS(30000), hear, NULL);
}

static void see_range(struct call_rules *rules, const char *name, enum range_kind kind,
                      uint64_t begin_ns, uint64_t ns)
{
	const struct range range = {
		.kind = kind, .name = name, .begin_ns = begin_ns, .end_ns = begin_ns + ns
	};
	const struct event event = { .type = EVENT_RANGE,
		                     .time_ns = range.end_ns,
		                     .process = &train,
		                     .tid = 77,
		                     .range = &range };

	call_rules_event(rules, &event);
}

static void see_launch(struct call_rules *rules, uint64_t begin_ns, uint32_t flags)
{
	const struct call call = { .function = &launch_kernel,
		                   .op = OP_LAUNCH,
		                   .kernel = &gemm,
		                   .flags = flags,
		                   .begin_ns = begin_ns,
		                   .end_ns = begin_ns + 1000 };
	const struct event event = { .type = EVENT_CALL,
		                     .time_ns = call.end_ns,
		                     .process = &train,
		                     .tid = 77,
		                     .call = &call };

	call_rules_event(rules, &event);
}

static void test_a_slow_range_is_a_slow_step(void **state)
{
	struct call_rules *rules = make("step *");

	for (unsigned i = 0; i < 40; i++)
		see_range(rules, "step 1", i % 2 ? RANGE_PUSHPOP : RANGE_STARTEND, MS(100 * i),
		          MS(20));
	assert_int_equal(fired[RULE_SLOW_STEP], 0);
	see_range(rules, "step 2", RANGE_PUSHPOP, MS(5000), MS(90));
	assert_int_equal(fired[RULE_SLOW_STEP], 1);
	assert_string_equal(said, "a step of process 77 (train) took 90.0 ms, 4.5 times the median "
	                          "of 20.0 ms");
	call_rules_free(rules);
}

static void test_other_ranges_and_launches_are_no_steps(void **state)
{
	struct call_rules *rules = make("step");

	for (unsigned i = 0; i < 40; i++) {
		see_range(rules, "step", RANGE_PUSHPOP, MS(100 * i), MS(20));
		see_range(rules, "load", RANGE_PUSHPOP, MS(100 * i + 30), MS(i == 39 ? 900 : 20));
		see_range(rules, "step", RANGE_MARK, MS(100 * i + 90), 0);
		see_launch(rules, MS(i == 39 ? 90000 : 10 * i), 0);
	}
	assert_int_equal(fired[RULE_SLOW_STEP], 0);
	call_rules_free(rules);
}

static void test_a_slow_period_of_launches_is_a_slow_step(void **state)
{
	struct call_rules *rules = make("");
	uint64_t now_ns = 0;

	for (unsigned i = 0; i < 60; i++) {
		now_ns += MS(i == 50 ? 400 : 50);
		see_launch(rules, now_ns, 0);
		see_launch(rules, now_ns + 100, CALL_NESTED); /* another call made it */
		see_range(rules, "step", RANGE_PUSHPOP, now_ns, MS(900));
	}
	assert_int_equal(fired[RULE_SLOW_STEP], 1);
	assert_string_equal(said,
	                    "a step of 1 launch of process 77 (train) took 400.0 ms, 8.0 times "
	                    "the median of 50.0 ms");
	call_rules_free(rules);
}

static void test_an_error_is_told_once_a_second(void **state)
{
	const struct function alloc = { .name = "cuMemAlloc_v2", .layer = LAYER_DRIVER };
	struct call call = { .function = &alloc, .result = 2, .flags = CALL_FAILED };
	struct event event = {
		.type = EVENT_CALL, .time_ns = MS(1), .process = &train, .call = &call
	};
	struct call_rules *rules = make("");

	for (unsigned i = 0; i < 15; i++, event.time_ns += MS(100))
		call_rules_event(rules, &event);
	assert_int_equal(fired[RULE_ERROR], 2);
	assert_string_equal(said, "cuMemAlloc_v2 of process 77 (train) returned 2 "
	                          "(CUDA_ERROR_OUT_OF_MEMORY)");
	call.result = 1; /* is not fatal */
	event.time_ns += MS(2000);
	call_rules_event(rules, &event);
	assert_int_equal(fired[RULE_ERROR], 2);
	call_rules_free(rules);
}

/* One who makes errors without end hides nobody else's. */
static void test_an_error_of_another_user_is_told_in_the_same_second(void **state)
{
	const struct function alloc = { .name = "cuMemAlloc_v2", .layer = LAYER_DRIVER };
	struct process hostile = { .id = 2, .pid = 78, .comm = "hostile", .person = 1000 };
	struct call call = { .function = &alloc, .result = 2, .flags = CALL_FAILED };
	struct event event = { .type = EVENT_CALL, .time_ns = MS(1), .call = &call };
	struct call_rules *rules = make("");

	for (unsigned i = 0; i < 1000; i++, event.time_ns += MS(1)) {
		event.process = &hostile;
		call_rules_event(rules, &event);
	}
	event.time_ns -= MS(500);
	assert_int_equal(fired[RULE_ERROR], 1);
	event.process = &train;
	call_rules_event(rules, &event);
	assert_int_equal(fired[RULE_ERROR], 2);
	assert_string_equal(said, "cuMemAlloc_v2 of process 77 (train) returned 2 "
	                          "(CUDA_ERROR_OUT_OF_MEMORY)");
	for (unsigned i = 0; i < 1000; i++) { /* however many users: some are told */
		hostile.person = 2000 + i;
		event.process = &hostile;
		call_rules_event(rules, &event);
	}
	assert_in_range(fired[RULE_ERROR], 10, 64);
	call_rules_free(rules);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_slow_range_is_a_slow_step),
		cmocka_unit_test(test_other_ranges_and_launches_are_no_steps),
		cmocka_unit_test(test_a_slow_period_of_launches_is_a_slow_step),
		cmocka_unit_test(test_an_error_is_told_once_a_second),
		cmocka_unit_test(test_an_error_of_another_user_is_told_in_the_same_second),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
