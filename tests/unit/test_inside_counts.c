// SPDX-License-Identifier: MIT
/* Which functions of a process are counted and no longer recorded, and what is believed of counts.
 */
#include "inside_steps.h"

#include <time.h>

#include "capture/inside/inside_private.h"
#include "cuda/api.h"

#define SLOT 1 /* of hooks[1] */

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static const struct capture_plan nothing = { .regs = 4,
	                                     .out = { PLAN_NO_ARG, PLAN_NO_ARG },
	                                     .blob = PLAN_NO_ARG,
	                                     .string = PLAN_NO_ARG,
	                                     .kernel = PLAN_NO_ARG,
	                                     .name_key = PLAN_NO_ARG };

/* A process whose hooks[1] is this function, of that group. */
static struct inside *process_with(const char *name, enum hook_group group, bool counts)
{
	const struct inside_options options = { .target = TARGET_PIDS,
		                                .counts = counts,
		                                .notice = take_notice };
	struct inside *inside = open_inside_with(&options);

	says_counted = told_counted = told_counted_of = 0;
	says_no_counts = false;
	for (size_t i = 0; i < HOOKS; i++)
		hooks[i].plan = nothing;
	hooks[1].name = name;
	hooks[1].api = api_find(name);
	hooks[1].group = group;
	divert_process(inside);
	return inside;
}

static struct inside *process_with_getter(void)
{
	return process_with("cuCtxGetDevice", HOOK_LITTLE, true);
}

static uint64_t ms = 100; /* of the scene's clock */

/* So many calls of hooks[1], and what is due after them. */
static void record_calls(struct inside *inside, int n)
{
	struct {
		struct agent_probed head;
		uint64_t word[WIRE_WORDS];
	} told = { .head = { .head = { .type = AGENT_PROBED, .lane = SLOT },
		             .begin = now() - 1,
		             .tid = PROCESS } };
	struct order_source source = inside_source(inside);
	const struct wire_head *record;

	told.head.head.bytes =
		(uint32_t)(sizeof(told.head) + 8 * cookie_words(hook_cookie(&hooks[1])));
	told.head.end = told.head.begin + 1;
	for (int i = 0; i < n; i++) {
		fake.options.record(fake.options.data, PROCESS, &told.head.head);
		while ((record = source.take(source.data, UINT64_MAX)))
			source.release(source.data, record);
	}
}

static void after(struct inside *inside, uint64_t more_ms)
{
	ms += more_ms;
	inside_turn(inside, START + MS(ms));
}

static bool is_counted(struct inside *inside, int calls)
{
	fake.turns = 0;
	after(inside, 1);
	record_calls(inside, calls);
	after(inside, 260);
	return fake.turns && fake.turned == AGENT_SLOT_COUNT && fake.turned_first == SLOT &&
	       fake.turned_n == 1;
}

/* A hundredth of a thread's time are 33,000 calls a second of 300 ns. */
static void test_what_is_called_all_the_time_is_counted(void **state)
{
	struct inside *inside = process_with_getter();

	assert_false(is_counted(inside, 7000));
	assert_true(is_counted(inside, 10000));
	assert_non_null(strstr(notices, "1 getter that process"));
	says_counted = 123456;
	after(inside, 260);
	assert_int_equal(told_counted, 123456);
	assert_int_equal(told_counted_of, 1);
	inside_finish(inside);
	assert_non_null(strstr(notices, "123456 more calls of functions"));
	inside_free(inside);
}

static bool would_count(const char *name, enum hook_group group, bool counts)
{
	struct inside *inside = process_with(name, group, counts);
	bool is = is_counted(inside, 20000);

	inside_free(inside);
	return is;
}

static void test_only_getters_are_ever_counted(void **state)
{
	assert_true(would_count("cuCtxGetDevice", HOOK_LITTLE, true));
	assert_false(would_count("cuCtxGetDevice", HOOK_LITTLE, false)); /* --all-calls=each */
	assert_false(would_count("cuCtxGetDevice", HOOK_CORE, true));    /* --only names it */
	assert_false(would_count("cuLaunchKernel", HOOK_LITTLE, true));
	assert_false(would_count("cuMemAlloc_v2", HOOK_LITTLE, true));
	assert_false(would_count("cuStreamSynchronize", HOOK_LITTLE, true));
	assert_false(would_count("cuModuleUnload", HOOK_LITTLE, true));
	assert_false(would_count("cudaGetErrorString", HOOK_LITTLE, true)); /* no status */
}

static void test_what_is_called_little_is_recorded_again(void **state)
{
	struct inside *inside = process_with_getter();

	assert_true(is_counted(inside, 20000));
	fake.turns = 0;
	for (int i = 0; i < 7; i++) {
		says_counted += 10;
		after(inside, 260);
	}
	assert_int_equal(fake.turns, 0);
	for (int i = 0; i < 3; i++)
		after(inside, 260);
	assert_int_equal(fake.turns, 1);
	assert_int_equal(fake.turned, AGENT_SLOT_CALL);

	/* and counted again, for twice as long */
	assert_true(is_counted(inside, 20000));
	fake.turns = 0;
	for (int i = 0; i < 14; i++)
		after(inside, 260);
	assert_int_equal(fake.turns, 0);
	for (int i = 0; i < 4; i++)
		after(inside, 260);
	assert_int_equal(fake.turns, 1);
	assert_int_equal(told_counted, 70);
	inside_free(inside);
}

static void test_what_is_called_on_stays_counted(void **state)
{
	struct inside *inside = process_with_getter();

	assert_true(is_counted(inside, 20000));
	fake.turns = 0;
	for (int i = 0; i < 40; i++) {
		says_counted += 5000;
		after(inside, 260);
	}
	assert_int_equal(fake.turns, 0);
	assert_int_equal(told_counted, 200000);
	inside_free(inside);
}

/* ---- what agents say ---------------------------------------------------------------------------
 */

static uint64_t bad_records(struct inside *inside)
{
	uint64_t lost[LOST_COUNT] = { 0 };

	inside_fill_lost(inside, lost);
	return lost[LOST_GPU_RECORDS];
}

static struct inside *process_that_counted(uint64_t calls)
{
	struct inside *inside = process_with_getter();

	assert_true(is_counted(inside, 20000));
	after(inside, 260);
	says_counted = calls;
	after(inside, 260);
	assert_int_equal(told_counted, calls);
	assert_int_equal(bad_records(inside), 0);
	fake.turns = 0;
	return inside;
}

static void check_disbelieved(struct inside *inside, uint64_t says)
{
	says_counted = says;
	after(inside, 260);
	assert_int_equal(told_counted, 1000);
	assert_int_equal(bad_records(inside), 1);
	assert_int_equal(fake.turned, AGENT_SLOT_CALL);
	says_counted = 2000; /* whatever it says later */
	for (int i = 0; i < 20; i++)
		assert_false(is_counted(inside, 20000));
	assert_int_equal(told_counted, 1000);
	assert_int_equal(bad_records(inside), 1);
	inside_free(inside);
}

static void test_counts_that_cannot_be_are_not_believed(void **state)
{
	check_disbelieved(process_that_counted(1000), 999);
	check_disbelieved(process_that_counted(1000), 1000000000000ull);
	check_disbelieved(process_that_counted(1000), UINT64_MAX);
}

static void test_the_last_number_is_read_when_the_agent_ends(void **state)
{
	struct inside *inside = process_that_counted(1000);

	says_counted = 1234;
	news((struct agent_probes_answer){ .news = AGENT_PROBES_ENDED });
	assert_int_equal(told_counted, 1234);
	says_no_counts = true;
	inside_exit(inside, (pid_t)PROCESS, START + MS(5000));
	assert_int_equal(told_counted, 1234);
	inside_free(inside);
}

/* An agent that is told nothing for a while, as it answers nothing, is told later. */
static void test_what_made_no_sense_is_recorded_again_as_soon_as_that_can_be_told(void **state)
{
	struct inside *inside = process_with_getter();

	assert_true(is_counted(inside, 10000));
	says_counted = 1000;
	after(inside, 260);
	fake.refuses = true;
	says_counted = 10; /* less than before */
	after(inside, 260);
	assert_int_equal(bad_records(inside), 1);
	assert_int_equal(fake.turned, AGENT_SLOT_COUNT);
	fake.refuses = false;
	after(inside, 260);
	assert_int_equal(fake.turned, AGENT_SLOT_CALL);
	inside_free(inside);
}

static void add_row(void *data, const struct inside_counted *counted)
{
	*(uint64_t *)data += counted->calls;
}

static uint64_t over_budget(struct inside *inside)
{
	uint64_t lost[LOST_COUNT] = { 0 };

	inside_fill_lost(inside, lost);
	return lost[LOST_OVER_BUDGET];
}

/* So many rows wait already for who asks what was counted since. */
static void end_beside(size_t rows, uint64_t expected_calls, uint64_t expected_lost)
{
	struct inside *inside = process_with_getter();
	uint64_t calls = 0;

	assert_true(is_counted(inside, 12000));
	says_counted = 1000;
	inside->counted_left = calloc(rows + 1, sizeof(*inside->counted_left));
	inside->n_counted_left = rows;
	inside_exit(inside, (pid_t)PROCESS, START + MS(ms));
	assert_int_equal(over_budget(inside), 0); /* nobody has asked */
	inside_counted(inside, add_row, &calls);
	assert_int_equal(calls, expected_calls);
	assert_int_equal(over_budget(inside), expected_lost);
	assert_int_equal(told_counted, 1000);
	inside_free(inside);
}

static void test_rows_of_processes_that_ended_are_many_at_most(void **state)
{
	end_beside(4095, 1000, 0);
	end_beside(4096, 0, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_called_all_the_time_is_counted),
		cmocka_unit_test(test_only_getters_are_ever_counted),
		cmocka_unit_test(test_what_is_called_little_is_recorded_again),
		cmocka_unit_test(test_what_is_called_on_stays_counted),
		cmocka_unit_test(test_counts_that_cannot_be_are_not_believed),
		cmocka_unit_test(
			test_what_made_no_sense_is_recorded_again_as_soon_as_that_can_be_told),
		cmocka_unit_test(test_the_last_number_is_read_when_the_agent_ends),
		cmocka_unit_test(test_rows_of_processes_that_ended_are_many_at_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
