// SPDX-License-Identifier: MIT
/* When the flight recorder is to write: what the machine shows, and how often. */
#include "support.h"

#include <errno.h>

#include "base/array.h"
#include "node/error_patterns.h"
#include "node/rules.h"
#include "probe/person.h"

#define S(n) ((uint64_t)((n)*1e9))
#define GIB  (1ll << 30)

static unsigned fired[RULE_COUNT];
static char said[RULES_TEXT_MAX];
static uint64_t whose;

static void hear(void *data, enum rule rule, uint64_t person, const char *why)
{
	fired[rule]++;
	whose = person;
	snprintf(said, sizeof(said), "%s", why);
}

static struct rules_gpu gpu(void)
{
	return (struct rules_gpu){ .uuid = "GPU-1",
		                   .busy_percent = 50,
		                   .memory_used_bytes = 10 * GIB,
		                   .memory_total_bytes = 100 * GIB,
		                   .processes = 1 };
}

static struct rules *make(double memory_percent, double idle_seconds)
{
	struct rules_settings settings = { .xid = true,
		                           .leak = true,
		                           .errors = "fatal",
		                           .step_least_ns = 10000000,
		                           .cool_down_ns = 300000000000ull,
		                           .per_hour = 12 };

	settings.memory_percent = memory_percent;
	settings.idle_ns = S(idle_seconds);
	memset(fired, 0, sizeof(fired));
	said[0] = '\0';
	return rules_new(&settings);
}

static void judge(struct rules *rules, const struct rules_gpu *gpu, double seconds)
{
	rules_judge(rules, &(struct rules_facts){ .gpus = gpu, .n_gpus = 1 }, S(seconds), hear,
	            NULL);
}

/* ---- what the machine shows ---------------------------------------------------------------- */

static void test_an_xid_fires_once_and_those_before_the_begin_do_not(void **state)
{
	struct rules *rules = make(0, 0);
	struct rules_gpu one = gpu();

	one.xids = 3;
	judge(rules, &one, 1);
	judge(rules, &one, 2);
	assert_int_equal(fired[RULE_XID], 0);
	one.xids = 4;
	one.last_xid = 79;
	judge(rules, &one, 3);
	judge(rules, &one, 4);
	assert_int_equal(fired[RULE_XID], 1);
	assert_string_equal(said, "Xid 79 of GPU GPU-1");
	strcpy(one.uuid, "GPU-2"); /* another one has its place */
	one.xids = 9;
	judge(rules, &one, 5);
	assert_int_equal(fired[RULE_XID], 1);
	rules_free(rules);
}

static void test_full_memory_fires_when_it_becomes_full(void **state)
{
	struct rules *rules = make(90, 0);
	struct rules_gpu one = gpu();

	judge(rules, &one, 1);
	one.memory_used_bytes = 90 * GIB;
	judge(rules, &one, 2);
	judge(rules, &one, 3);
	assert_int_equal(fired[RULE_MEMORY], 1);
	assert_string_equal(said, "90.0 % of the memory of GPU GPU-1 is in use");
	one.memory_used_bytes = 89 * GIB; /* to and fro around the threshold */
	judge(rules, &one, 4);
	one.memory_used_bytes = 90 * GIB;
	judge(rules, &one, 5);
	assert_int_equal(fired[RULE_MEMORY], 1);
	one.memory_used_bytes = 50 * GIB;
	judge(rules, &one, 6);
	one.memory_used_bytes = 95 * GIB;
	judge(rules, &one, 7);
	assert_int_equal(fired[RULE_MEMORY], 2);
	rules_free(rules);
}

static void test_what_is_not_known_fires_nothing(void **state)
{
	struct rules *rules = make(50, 1);
	struct rules_gpu one = gpu();

	one.busy_percent = one.processes = RULES_UNKNOWN;
	one.memory_used_bytes = one.memory_total_bytes = RULES_UNKNOWN;
	for (unsigned i = 0; i < 10; i++)
		judge(rules, &one, 10 * i);
	rules_judge(rules, &(struct rules_facts){ 0 }, S(200), hear, NULL);
	for (enum rule rule = 0; rule < RULE_COUNT; rule++)
		assert_int_equal(fired[rule], 0);
	rules_free(rules);
}

static void test_an_idle_gpu_fires_once_and_only_while_a_process_has_it(void **state)
{
	struct rules *rules = make(0, 30);
	struct rules_gpu one = gpu();
	double now = 0;

	one.busy_percent = 0;
	one.processes = 0;
	for (; now < 100; now += 5)
		judge(rules, &one, now);
	assert_int_equal(fired[RULE_IDLE], 0);
	one.processes = 2;
	for (; now < 128; now += 5)
		judge(rules, &one, now);
	assert_int_equal(fired[RULE_IDLE], 0);
	for (; now < 300; now += 5)
		judge(rules, &one, now);
	assert_int_equal(fired[RULE_IDLE], 1);
	assert_string_equal(said,
	                    "GPU GPU-1 has been idle for 30.0 s while 2 processes had a context");
	one.busy_percent = 1;
	judge(rules, &one, now);
	one.busy_percent = 0;
	for (now += 5; now < 400; now += 5)
		judge(rules, &one, now);
	assert_int_equal(fired[RULE_IDLE], 2);
	rules_free(rules);
}

/* The machine slept, or NVML hung: what was meanwhile nobody knows. */
static void test_a_time_that_nobody_looked_is_not_idle(void **state)
{
	struct rules *rules = make(0, 30);
	struct rules_gpu one = gpu();

	one.busy_percent = 0;
	judge(rules, &one, 10);
	judge(rules, &one, 20);
	judge(rules, &one, 5000);
	assert_int_equal(fired[RULE_IDLE], 0);
	judge(rules, &one, 5031);
	assert_int_equal(fired[RULE_IDLE], 1);
	rules_free(rules);
}

static void test_a_new_suspected_leak_fires(void **state)
{
	struct rules *rules = make(0, 0);
	struct rules_facts facts = { .leaks = 2 };

	rules_judge(rules, &facts, S(1), hear, NULL);
	assert_int_equal(fired[RULE_LEAK], 0);
	facts.leaks = 1;
	rules_judge(rules, &facts, S(2), hear, NULL);
	facts.leaks = 2;
	snprintf(facts.leak[1].text, RULES_TEXT_MAX, "model.py:12");
	rules_judge(rules, &facts, S(3), hear, NULL);
	assert_int_equal(fired[RULE_LEAK], 1);
	assert_string_equal(said, "suspected leak: model.py:12");
	rules_free(rules);
}

/* Or who leaks at each look hides the leaks of all others. */
static void test_each_new_suspected_leak_fires(void **state)
{
	struct rules *rules = make(0, 0);
	struct rules_facts facts = { .leaks = 7 };

	rules_judge(rules, &facts, S(1), hear, NULL);
	facts.leaks = 9;
	facts.leak[7].person = 1000;
	facts.leak[0].person = 1001;
	snprintf(facts.leak[7].text, RULES_TEXT_MAX, "first");
	snprintf(facts.leak[0].text, RULES_TEXT_MAX, "second");
	rules_judge(rules, &facts, S(2), hear, NULL);
	assert_int_equal(fired[RULE_LEAK], 2);
	assert_string_equal(said, "suspected leak: second");
	assert_int_equal(whose, 1001);
	facts.leaks = 1000000;
	rules_judge(rules, &facts, S(3), hear, NULL);
	assert_int_equal(fired[RULE_LEAK], 2 + RULES_LEAKS_MAX);
	rules_free(rules);
}

/* ---- how often ----------------------------------------------------------------------------- */

static enum rules_verdict allow(struct rules *rules, enum rule rule, double seconds)
{
	uint64_t wait_ns;

	return rules_allow(rules, rule, 0, S(seconds), &wait_ns);
}

static void test_a_rule_has_one_recording_in_its_cool_down(void **state)
{
	struct rules *rules = make(0, 0);
	uint64_t wait_ns;

	assert_int_equal(allow(rules, RULE_XID, 0), RULES_ALLOWED);
	assert_int_equal(rules_allow(rules, RULE_XID, 0, S(100), &wait_ns), RULES_COOL_DOWN);
	assert_int_equal(wait_ns, S(200));
	assert_int_equal(allow(rules, RULE_ERROR, 100), RULES_ALLOWED);
	assert_int_equal(allow(rules, RULE_XID, 299.9), RULES_COOL_DOWN);
	assert_int_equal(allow(rules, RULE_XID, 300), RULES_ALLOWED);
	rules_free(rules);
}

/* Or who fires a rule every five minutes has all others' recordings held back. */
static void test_each_user_cools_down_alone(void **state)
{
	struct rules *rules = make(0, 0);
	uint64_t wait_ns;

	assert_int_equal(rules_allow(rules, RULE_ERROR, 1000, S(0), &wait_ns), RULES_ALLOWED);
	assert_int_equal(rules_allow(rules, RULE_ERROR, 1000, S(10), &wait_ns), RULES_COOL_DOWN);
	assert_int_equal(rules_allow(rules, RULE_ERROR, 1001, S(10), &wait_ns), RULES_ALLOWED);
	assert_int_equal(rules_allow(rules, RULE_ERROR, 0, S(20), &wait_ns), RULES_ALLOWED);
	assert_int_equal(rules_allow(rules, RULE_ERROR, 1001, S(100), &wait_ns), RULES_COOL_DOWN);
	assert_int_equal(wait_ns, S(210));
	rules_free(rules);
}

static void test_one_user_leaves_others_a_part_of_the_hour(void **state)
{
	struct rules *rules = make(0, 0);
	unsigned allowed = 0;
	uint64_t wait_ns;
	double now = 0;

	for (unsigned i = 0; i < 100; i++, now += 30)
		allowed += rules_allow(rules, i % 2 ? RULE_ERROR : RULE_LEAK, 1000, S(now),
		                       &wait_ns) == RULES_ALLOWED;
	assert_int_equal(allowed, 9);
	assert_int_equal(rules_allow(rules, RULE_ERROR, 1000, S(now), &wait_ns), RULES_PER_HOUR);
	assert_int_equal(wait_ns, S(600)); /* the first was an hour ago then */
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(rules_allow(rules, RULE_ERROR, 1001 + i, S(now), &wait_ns),
		                 RULES_ALLOWED);
	assert_int_equal(rules_allow(rules, RULE_ERROR, 0, S(now), &wait_ns), RULES_PER_HOUR);
	rules_free(rules);
}

/* An Xid every five minutes is twelve an hour: anybody can make them, and fire his own rules. */
static void test_rules_about_gpus_leave_others_a_part_of_the_hour(void **state)
{
	struct rules *rules = make(0, 0);
	unsigned xids = 0, errors = 0;
	uint64_t wait_ns;
	double now = 0;

	for (unsigned i = 0; i < 11; i++, now += 310) {
		xids += allow(rules, RULE_XID, now) == RULES_ALLOWED;
		errors += rules_allow(rules, RULE_ERROR, 1000, S(now), &wait_ns) == RULES_ALLOWED;
	}
	assert_int_equal(xids, 6);
	assert_in_range(errors, 5, 6);
	assert_int_equal(rules_allow(rules, RULE_ERROR, 1001, S(now), &wait_ns), RULES_ALLOWED);
	rules_free(rules);
}

/* Programs that end at once are anybody's, too, and whoever starts them has others that stay. */
static void test_programs_that_have_ended_leave_others_a_part_of_the_hour(void **state)
{
	struct rules *rules = make(0, 0);
	uint64_t wait_ns;
	double now = 0;

	for (unsigned i = 0; i < 11; i++, now += 310) {
		rules_allow(rules, RULE_ERROR, PERSON_UNKNOWN, S(now), &wait_ns);
		rules_allow(rules, RULE_ERROR, 1000, S(now), &wait_ns);
	}
	assert_int_equal(rules_allow(rules, RULE_ERROR, 1001, S(now), &wait_ns), RULES_ALLOWED);
	rules_free(rules);
}

static void test_a_request_cools_down_sooner(void **state)
{
	struct rules *rules = make(0, 0);

	assert_int_equal(allow(rules, RULE_REQUEST, 50), RULES_ALLOWED);
	assert_int_equal(allow(rules, RULE_REQUEST, 59), RULES_COOL_DOWN);
	assert_int_equal(allow(rules, RULE_REQUEST, 60), RULES_ALLOWED);
	rules_free(rules);
}

static void test_an_hour_has_so_many_recordings_of_all_rules(void **state)
{
	struct rules *rules = make(0, 0);
	uint64_t wait_ns;
	double now = 0;

	for (unsigned i = 0; i < 12; i++, now += 100)
		assert_int_equal(allow(rules, i % RULE_REQUEST, now), RULES_ALLOWED);
	assert_int_equal(rules_allow(rules, RULE_XID, 0, S(2000), &wait_ns), RULES_PER_HOUR);
	assert_int_equal(wait_ns, S(1600));
	assert_int_equal(allow(rules, RULE_REQUEST, 2000), RULES_ALLOWED);
	assert_int_equal(allow(rules, RULE_XID, 3601), RULES_ALLOWED);
	assert_int_equal(allow(rules, RULE_ERROR, 3602), RULES_PER_HOUR);
	assert_int_equal(allow(rules, RULE_ERROR, 3701), RULES_ALLOWED);
	rules_free(rules);
}

static void test_what_is_taken_back_may_be_tried_again(void **state)
{
	struct rules *rules = make(0, 0);

	assert_int_equal(allow(rules, RULE_XID, 0), RULES_ALLOWED);
	rules_take_back(rules);
	assert_int_equal(allow(rules, RULE_XID, 1), RULES_ALLOWED);
	assert_int_equal(allow(rules, RULE_XID, 2), RULES_COOL_DOWN);
	rules_free(rules);
}

/* CLOCK_MONOTONIC does not go back; if it ever did, nothing must be allowed for that. */
static void test_a_clock_that_goes_back_allows_nothing_more(void **state)
{
	struct rules *rules = make(0, 30);
	struct rules_gpu one = gpu();

	assert_int_equal(allow(rules, RULE_XID, 1000), RULES_ALLOWED);
	assert_int_equal(allow(rules, RULE_XID, 10), RULES_COOL_DOWN);
	one.busy_percent = 0;
	judge(rules, &one, 1000);
	judge(rules, &one, 10);
	assert_int_equal(fired[RULE_IDLE], 0);
	rules_free(rules);
}

/* ---- errors -------------------------------------------------------------------------------- */

static struct error_patterns parsed(const char *text)
{
	struct error_patterns patterns;
	struct err err = { 0 };

	if (error_patterns_parse(&patterns, text, &err))
		fail_msg("%s", err.text);
	return patterns;
}

static void test_patterns_name_functions_and_codes(void **state)
{
	struct error_patterns p = parsed(" cudaMalloc*:2, *:CUDA_ERROR_INVALID_* ,cuInit:100");

	assert_int_equal(p.n, 3);
	assert_true(error_patterns_match(&p, "cudaMallocAsync", LAYER_RUNTIME, 2));
	assert_false(error_patterns_match(&p, "cudaMalloc", LAYER_RUNTIME, 1));
	assert_true(error_patterns_match(&p, "cuMemAlloc_v2", LAYER_DRIVER, 1));
	assert_false(error_patterns_match(&p, "cuMemAlloc_v2", LAYER_DRIVER, 2));
	assert_true(error_patterns_match(&p, "cuInit", LAYER_DRIVER, 100));
	p = parsed("");
	assert_false(error_patterns_match(&p, "cuInit", LAYER_DRIVER, 700));
}

static void test_fatal_is_what_ends_a_context_but_not_the_end_of_a_program(void **state)
{
	struct error_patterns p = parsed("fatal");

	assert_true(error_patterns_match(&p, "cuLaunchKernel", LAYER_DRIVER, 700));
	assert_true(error_patterns_match(&p, "cudaMalloc", LAYER_RUNTIME, 2));
	assert_false(error_patterns_match(&p, "cudaMalloc", LAYER_RUNTIME, 1));
	p = parsed("*:*");
	assert_false(error_patterns_match(&p, "cudaFree", LAYER_RUNTIME, 4)); /* shut down */
	assert_true(error_patterns_match(&p, "cudaFree", LAYER_RUNTIME, 1));
}

static void test_what_is_no_pattern_is_refused(void **state)
{
	static const char *const bad[] = {
		"x",
		":2",
		"cuInit:",
		"fatall",
		"a b:2",
		"a:2:3",
		"fatal,,x",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaaaaaaaaaaaa:2"
	};
	struct error_patterns patterns;
	struct err err = { 0 };
	char many[ERROR_PATTERNS_MAX * 4 + 8] = "";

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(error_patterns_parse(&patterns, bad[i], &err), -EINVAL);
		assert_non_null(strstr(err.text, "is no pattern of errors"));
	}
	for (size_t i = 0; i <= ERROR_PATTERNS_MAX; i++)
		strcat(many, "*:1,");
	assert_int_equal(error_patterns_parse(&patterns, many, &err), -EINVAL);
	assert_non_null(strstr(err.text, "more than 32 patterns"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_user_cools_down_alone),
		cmocka_unit_test(test_one_user_leaves_others_a_part_of_the_hour),
		cmocka_unit_test(test_rules_about_gpus_leave_others_a_part_of_the_hour),
		cmocka_unit_test(test_programs_that_have_ended_leave_others_a_part_of_the_hour),
		cmocka_unit_test(test_an_xid_fires_once_and_those_before_the_begin_do_not),
		cmocka_unit_test(test_full_memory_fires_when_it_becomes_full),
		cmocka_unit_test(test_what_is_not_known_fires_nothing),
		cmocka_unit_test(test_an_idle_gpu_fires_once_and_only_while_a_process_has_it),
		cmocka_unit_test(test_a_time_that_nobody_looked_is_not_idle),
		cmocka_unit_test(test_a_new_suspected_leak_fires),
		cmocka_unit_test(test_each_new_suspected_leak_fires),
		cmocka_unit_test(test_a_rule_has_one_recording_in_its_cool_down),
		cmocka_unit_test(test_a_request_cools_down_sooner),
		cmocka_unit_test(test_an_hour_has_so_many_recordings_of_all_rules),
		cmocka_unit_test(test_what_is_taken_back_may_be_tried_again),
		cmocka_unit_test(test_a_clock_that_goes_back_allows_nothing_more),
		cmocka_unit_test(test_patterns_name_functions_and_codes),
		cmocka_unit_test(test_fatal_is_what_ends_a_context_but_not_the_end_of_a_program),
		cmocka_unit_test(test_what_is_no_pattern_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
