// SPDX-License-Identifier: MIT
/* Times are in microseconds. Numbers of calls are those that a process's calls had otherwise. */
#include "unit.h"

#include <malloc.h>
#include <time.h>

#include "capture/gpu/correlate.h"

#define PROCESS 100
#define OTHER   200
#define THREAD  101
#define AGENT   7
#define SECOND  102

#define US(n) ((uint64_t)(n)*1000)

static int make(void **state)
{
	*state = correlate_new();
	return 0;
}

static int destroy(void **state)
{
	correlate_free(*state);
	return 0;
}

/* ---- what the two sides see ---------------------------------------------------------------- */

static struct correlate_span span(uint64_t begin_us, uint64_t end_us)
{
	return (struct correlate_span){
		.pid = PROCESS, .tid = THREAD, .begin_ns = US(begin_us), .end_ns = US(end_us)
	};
}

static uint64_t call(struct correlate *c, uint64_t begin_us, uint64_t end_us, uint64_t next)
{
	struct correlate_span seen = span(begin_us, end_us);

	return correlate_call(c, &seen, next);
}

static uint64_t launch(struct correlate *c, uint64_t begin_us, uint64_t end_us, uint64_t next)
{
	struct correlate_span seen = span(begin_us, end_us);

	seen.work = true;
	return correlate_call(c, &seen, next);
}

static bool agent(struct correlate *c, uint32_t id, uint64_t begin_us, uint64_t end_us)
{
	struct correlate_span told = span(begin_us, end_us);

	return correlate_agent_call(c, &told, (struct correlate_id){ AGENT, id });
}

static void assert_answer(struct correlate *c, uint32_t id, enum correlate_answer answer)
{
	uint64_t number, begin_ns;

	assert_int_equal(correlate_find(c, (struct correlate_id){ AGENT, id }, &number, &begin_ns),
	                 answer);
}

static void assert_number(struct correlate *c, uint32_t id, uint64_t expected)
{
	uint64_t number, begin_ns;

	assert_int_equal(correlate_find(c, (struct correlate_id){ AGENT, id }, &number, &begin_ns),
	                 CORRELATE_KNOWN);
	assert_int_equal(number, expected);
}

/* ---- which call ---------------------------------------------------------------------------- */

static void test_a_call_that_came_before_the_agent_told(void **state)
{
	assert_int_equal(call(*state, 10, 20, 7), 7);
	agent(*state, 1000, 12, 18);
	assert_number(*state, 1000, 7);
}

static void test_a_call_that_comes_after_the_agent_told(void **state)
{
	agent(*state, 1000, 12, 18);
	assert_answer(*state, 1000, CORRELATE_WAITS);
	assert_int_equal(call(*state, 10, 20, 7), 7);
	assert_number(*state, 1000, 7);
}

static void test_a_number_that_nobody_told_of_is_unknown(void **state)
{
	agent(*state, 1000, 12, 18);
	assert_answer(*state, 1001, CORRELATE_UNKNOWN);
}

static void test_calls_one_after_the_other_keep_theirs(void **state)
{
	for (uint64_t i = 0; i < 100; i++)
		agent(*state, (uint32_t)i, 10 * i + 2, 10 * i + 8);
	for (uint64_t i = 0; i < 100; i++)
		call(*state, 10 * i + 1, 10 * i + 9, i + 1);
	for (uint64_t i = 0; i < 100; i++)
		assert_number(*state, (uint32_t)i, i + 1);
}

static void test_threads_are_told_apart(void **state)
{
	struct correlate_span other = span(10, 20);

	other.tid = SECOND;
	agent(*state, 1000, 12, 18);
	assert_int_equal(correlate_call(*state, &other, 1), 1);
	assert_answer(*state, 1000, CORRELATE_WAITS);
	call(*state, 9, 21, 2);
	assert_number(*state, 1000, 2);
}

static void test_processes_are_told_apart(void **state)
{
	struct correlate_span other = span(10, 20);
	uint64_t number, begin_ns;

	other.pid = OTHER;
	other.tid = SECOND;
	correlate_agent_call(*state, &other, (struct correlate_id){ AGENT + 1, 1000 });
	correlate_call(*state, &other, 5);
	assert_answer(*state, 1000, CORRELATE_UNKNOWN);
	assert_int_equal(correlate_find(*state, (struct correlate_id){ AGENT + 1, 1000 }, &number,
	                                &begin_ns),
	                 CORRELATE_KNOWN);
	assert_int_equal(number, 5);
}

/* The runtime's launches are not hooked where a driver is: the agent's call lies around. */
static void test_the_drivers_launch_within_the_runtimes(void **state)
{
	agent(*state, 1000, 10, 30);
	launch(*state, 12, 25, 4);
	assert_number(*state, 1000, 4);
	launch(*state, 42, 55, 5);
	agent(*state, 1001, 40, 60);
	assert_number(*state, 1001, 5);
}

static void test_a_getter_within_the_runtimes_launch_is_not_it(void **state)
{
	agent(*state, 1000, 10, 30);
	call(*state, 11, 12, 3);
	assert_answer(*state, 1000, CORRELATE_WAITS);
	launch(*state, 14, 25, 4);
	assert_number(*state, 1000, 4);
}

static void test_runtime_and_driver_may_both_tell(void **state)
{
	agent(*state, 1000, 12, 18);
	agent(*state, 1000, 11, 19);
	call(*state, 10, 20, 7);
	assert_number(*state, 1000, 7);
}

static void test_what_later_calls_have_passed_belongs_to_none(void **state)
{
	agent(*state, 1000, 12, 18);
	call(*state, 20, 30, 7);
	assert_answer(*state, 1000, CORRELATE_NONE);
}

static void test_a_copy_may_begin_when_the_call_around_it_did(void **state)
{
	uint64_t number, begin_ns;

	agent(*state, 1000, 12, 18);
	correlate_find(*state, (struct correlate_id){ AGENT, 1000 }, &number, &begin_ns);
	assert_int_equal(begin_ns, US(12));
	call(*state, 10, 20, 7);
	correlate_find(*state, (struct correlate_id){ AGENT, 1000 }, &number, &begin_ns);
	assert_int_equal(begin_ns, US(10));
}

/* ---- calls that were entered only ---------------------------------------------------------- */

static void test_without_returns_it_is_the_latest_that_began_before(void **state)
{
	agent(*state, 1000, 12, 18);
	agent(*state, 1001, 22, 28);
	call(*state, 10, 0, 1);
	call(*state, 20, 0, 2);
	call(*state, 30, 0, 3);
	assert_number(*state, 1000, 1);
	assert_number(*state, 1001, 2);
}

static void test_the_last_one_entered_is_found_when_it_is_asked_for(void **state)
{
	uint64_t number;

	agent(*state, 1000, 12, 18);
	call(*state, 10, 0, 1);
	assert_answer(*state, 1000, CORRELATE_WAITS);
	assert_false(correlate_reserve(*state, (struct correlate_id){ AGENT, 1000 }, 9, &number));
	assert_int_equal(number, 1);
	assert_number(*state, 1000, 1);
}

/* ---- numbers before their calls ------------------------------------------------------------ */

static void test_a_reserved_number_is_the_calls(void **state)
{
	uint64_t number;

	agent(*state, 1000, 12, 18);
	assert_true(correlate_reserve(*state, (struct correlate_id){ AGENT, 1000 }, 5, &number));
	assert_int_equal(number, 5);
	assert_number(*state, 1000, 5);
	assert_int_equal(call(*state, 30, 40, 6), 6);
	agent(*state, 1001, 52, 58);
	correlate_reserve(*state, (struct correlate_id){ AGENT, 1001 }, 7, &number);
	assert_int_equal(call(*state, 50, 900, 8), 7);
}

static void test_what_waits_tells_of_its_thread(void **state)
{
	uint64_t begin_ns;
	uint32_t tid;

	agent(*state, 1000, 12, 18);
	agent(*state, 1001, 22, 28);
	assert_true(correlate_waits(*state, (struct correlate_id){ AGENT, 1001 }, &tid, &begin_ns));
	assert_int_equal(tid, THREAD);
	assert_int_equal(begin_ns, US(22));
	call(*state, 20, 30, 1);
	assert_false(
		correlate_waits(*state, (struct correlate_id){ AGENT, 1001 }, &tid, &begin_ns));
}

static void test_with_nothing_reserved_it_belongs_to_none(void **state)
{
	uint64_t number;

	agent(*state, 1000, 12, 18);
	assert_false(correlate_reserve(*state, (struct correlate_id){ AGENT, 1000 }, 0, &number));
	assert_int_equal(number, 0);
	assert_answer(*state, 1000, CORRELATE_NONE);
}

/* ---- bounds -------------------------------------------------------------------------------- */

static void test_ids_that_wrap_are_new_calls(void **state)
{
	agent(*state, UINT32_MAX, 12, 18);
	call(*state, 10, 20, 1);
	agent(*state, 0, 22, 28);
	call(*state, 20, 30, 2);
	agent(*state, UINT32_MAX, 9000012, 9000018);
	call(*state, 9000010, 9000020, 3);
	assert_number(*state, 0, 2);
	assert_number(*state, UINT32_MAX, 3);
}

static void test_a_hundred_thousand_calls_are_remembered(void **state)
{
	size_t lost = 0;

	for (uint64_t i = 0; i < 100000; i++) {
		agent(*state, (uint32_t)(i * 21), 10 * i + 2, 10 * i + 8);
		call(*state, 10 * i + 1, 10 * i + 9, i + 1);
	}
	for (uint64_t i = 0; i < 100000; i++) {
		uint64_t number, begin_ns;

		lost += correlate_find(*state, (struct correlate_id){ AGENT, (uint32_t)(i * 21) },
		                       &number, &begin_ns) != CORRELATE_KNOWN;
	}
	assert_in_range(lost, 0, 100);
}

static void test_what_waits_in_vain_makes_room(void **state)
{
	for (uint64_t i = 0; i < 140000; i++)
		agent(*state, (uint32_t)i, 5 * i + 2, 5 * i + 4);
	assert_answer(*state, 0, CORRELATE_NONE);
	assert_answer(*state, 139999, CORRELATE_WAITS);
	call(*state, 5 * 139999 + 1, 5 * 139999 + 5, 1);
	assert_number(*state, 139999, 1);
}

static void test_what_waits_for_a_second_waits_in_vain(void **state)
{
	agent(*state, 1, 12, 18);
	agent(*state, 2, 500012, 500018);
	correlate_passed(*state, US(1000018));
	agent(*state, 3, 1100012, 1100018);
	assert_answer(*state, 1, CORRELATE_WAITS);
	correlate_passed(*state, US(1000019));
	agent(*state, 4, 1100022, 1100028);
	assert_answer(*state, 1, CORRELATE_NONE);
	assert_answer(*state, 2, CORRELATE_WAITS);
}

/* What an agent wrote may be read late, and the calls that it recorded with it. */
static void test_what_is_told_seconds_late_waits_for_its_call(void **state)
{
	correlate_passed(*state, US(5000000));
	for (uint64_t i = 0; i < 1000; i++)
		agent(*state, (uint32_t)i, 1000 * i + 2, 1000 * i + 8);
	for (uint64_t i = 0; i < 1000; i++)
		call(*state, 1000 * i + 1, 1000 * i + 9, i + 1);
	for (uint64_t i = 0; i < 1000; i++)
		assert_number(*state, (uint32_t)i, i + 1);
	agent(*state, 1000, 2000002, 2000008);
	correlate_passed(*state, US(6000001));
	agent(*state, 1001, 6100002, 6100008);
	assert_answer(*state, 1000, CORRELATE_NONE);
}

/* On a busy machine: what agents say is read at once, and calls wait for their order. */
static void test_calls_that_are_seconds_behind_are_waited_for(void **state)
{
	for (uint64_t i = 0; i < 1000; i++)
		agent(*state, (uint32_t)i, 10000 * i + 2, 10000 * i + 8);
	for (uint64_t i = 0; i < 1000; i++) {
		call(*state, 10000 * i + 1, 10000 * i + 9, i + 1);
		correlate_passed(*state, US(10000 * i + 9));
	}
	for (uint64_t i = 0; i < 1000; i++)
		assert_number(*state, (uint32_t)i, i + 1);
}

static void test_a_process_that_ended_is_forgotten(void **state)
{
	agent(*state, 1000, 12, 18);
	call(*state, 10, 20, 7);
	agent(*state, 1001, 32, 38);
	correlate_forget(*state, PROCESS, UINT64_MAX);
	assert_int_equal(call(*state, 30, 40, 8), 8);
	assert_answer(*state, 1001, CORRELATE_WAITS);
}

static void test_what_a_new_program_did_is_kept(void **state)
{
	agent(*state, 1000, 12, 18);
	call(*state, 10, 20, 7);
	agent(*state, 999, 32, 38);
	agent(*state, 1001, 52, 58);
	correlate_forget(*state, PROCESS, US(40));
	call(*state, 50, 60, 1);
	assert_number(*state, 1001, 1);
}

#define EVE 1003

/* What one user's agent tells of calls, however many, leaves another's a place in each set. */
static void test_no_flood_of_one_user_forgets_anothers(void **state)
{
	struct correlate_span flood = { .pid = 78, .tid = 78, .person = EVE };
	uint32_t lost = 0;
	uint64_t number, begin_ns;

	for (uint32_t i = 1; i <= 1000; i++) {
		call(*state, 10 * i, 10 * i + 5, i);
		agent(*state, i, 10 * i + 1, 10 * i + 2);
	}
	for (uint32_t i = 0; i < 4000000; i++) {
		flood.begin_ns = flood.end_ns = US(20000) + i;
		correlate_agent_call(*state, &flood, (struct correlate_id){ 6, i * 2654435769u });
	}
	for (uint32_t i = 1; i <= 1000; i++)
		lost += correlate_find(*state, (struct correlate_id){ AGENT, i }, &number,
		                       &begin_ns) != CORRELATE_KNOWN;
	assert_int_equal(lost, 0);
}

/* Nor do threads, nor those that have another's number. */
static void test_no_threads_of_one_user_forget_anothers(void **state)
{
	struct correlate_span flood = { .pid = 78, .person = EVE };

	agent(*state, 1000, 11, 12);
	for (uint32_t i = 0; i < 20000; i++) {
		flood.tid = i;
		flood.begin_ns = flood.end_ns = US(1) + i;
		correlate_agent_call(*state, &flood, (struct correlate_id){ 6, i });
	}
	call(*state, 10, 15, 1);
	assert_number(*state, 1000, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, destroy)

/* A process can tell of calls that never come, in all its threads. */
static void test_what_waits_has_a_bound(void **state)
{
	struct correlate *c = *state;
	size_t before = mallinfo2().uordblks;
	uint64_t number, begin_ns;

	for (uint32_t i = 0; i < 64u * 20000; i++) {
		const struct correlate_span call = { .pid = 77,
			                             .tid = 1000 + i % 64,
			                             .begin_ns = 1000000 + i,
			                             .end_ns = 1000001 + i };

		correlate_agent_call(c, &call, (struct correlate_id){ 5, i + 1 });
	}
	assert_true(mallinfo2().uordblks - before < 12 << 20);

	/* another's thread still has its calls */
	correlate_agent_call(c,
	                     &(struct correlate_span){
				     .pid = 78, .tid = 78, .begin_ns = 2000100, .end_ns = 2000200 },
	                     (struct correlate_id){ 6, 1 });
	correlate_call(c,
	               &(struct correlate_span){ .pid = 78,
	                                         .tid = 78,
	                                         .begin_ns = 2000000,
	                                         .end_ns = 2000300,
	                                         .work = true },
	               9);
	assert_int_equal(correlate_find(c, (struct correlate_id){ 6, 1 }, &number, &begin_ns),
	                 CORRELATE_KNOWN);
	assert_int_equal(number, 9);
}

/* An agent says what it likes: calls that began long ago and end in a while wait for good. */
static void test_calls_do_not_look_at_all_that_waits(void **state)
{
	const clock_t begin = clock();

	for (uint32_t i = 0; i < 131072; i++)
		agent(*state, i + 1, 1 + i / 1000, 100000000);
	for (uint32_t i = 0; i < 100000; i++)
		assert_int_equal(call(*state, 1000 + 2 * i, 1001 + 2 * i, i + 1), i + 1);
	assert_true((clock() - begin) / CLOCKS_PER_SEC < 2);
}

/* As many that began within each of the calls, and end in a while. */
static void test_calls_do_not_look_at_all_that_goes_on(void **state)
{
	const clock_t begin = clock();

	for (uint32_t i = 0; i < 131072; i++)
		agent(*state, i + 1, 1000, 2500000);
	for (uint32_t i = 0; i < 50000; i++)
		assert_int_equal(call(*state, 999, 2000 + i, i + 1), i + 1);
	assert_answer(*state, 1, CORRELATE_WAITS);
	assert_true((clock() - begin) / CLOCKS_PER_SEC < 2);
}

/* They end within the calls and began before: all are settled by the first. */
static void test_no_call_crosses_another_of_its_thread(void **state)
{
	for (uint32_t i = 0; i < 1000; i++)
		agent(*state, i + 1, 1000, 2000 + i);
	agent(*state, 1001, 3500, 3600);
	call(*state, 1500, 3000, 1);
	for (uint32_t i = 0; i < 1000; i++)
		assert_answer(*state, i + 1, CORRELATE_NONE);
	call(*state, 3400, 3700, 2);
	assert_number(*state, 1001, 2);
}

static void test_an_end_that_goes_back_is_nonsense(void **state)
{
	assert_true(agent(*state, 1, 1000, 2000));
	assert_true(agent(*state, 2, 1000, 2000));
	assert_false(agent(*state, 3, 1100, 1999));
	assert_answer(*state, 3, CORRELATE_UNKNOWN);
	assert_true(agent(*state, 4, 900, 2001));
	call(*state, 899, 2002, 7);
	assert_number(*state, 1, 7);
	assert_number(*state, 4, 7);
	assert_true(agent(*state, 3, 1100, 1999)); /* nothing waits */
	assert_number(*state, 3, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_call_that_came_before_the_agent_told),
		TEST(test_a_call_that_comes_after_the_agent_told),
		TEST(test_a_number_that_nobody_told_of_is_unknown),
		TEST(test_calls_one_after_the_other_keep_theirs),
		TEST(test_threads_are_told_apart),
		TEST(test_processes_are_told_apart),
		TEST(test_the_drivers_launch_within_the_runtimes),
		TEST(test_a_getter_within_the_runtimes_launch_is_not_it),
		TEST(test_runtime_and_driver_may_both_tell),
		TEST(test_what_later_calls_have_passed_belongs_to_none),
		TEST(test_a_copy_may_begin_when_the_call_around_it_did),
		TEST(test_without_returns_it_is_the_latest_that_began_before),
		TEST(test_the_last_one_entered_is_found_when_it_is_asked_for),
		TEST(test_a_reserved_number_is_the_calls),
		TEST(test_what_waits_tells_of_its_thread),
		TEST(test_with_nothing_reserved_it_belongs_to_none),
		TEST(test_ids_that_wrap_are_new_calls),
		TEST(test_a_hundred_thousand_calls_are_remembered),
		TEST(test_what_waits_in_vain_makes_room),
		TEST(test_what_waits_for_a_second_waits_in_vain),
		TEST(test_what_is_told_seconds_late_waits_for_its_call),
		TEST(test_calls_that_are_seconds_behind_are_waited_for),
		TEST(test_a_process_that_ended_is_forgotten),
		TEST(test_what_a_new_program_did_is_kept),
		TEST(test_what_waits_has_a_bound),
		TEST(test_calls_do_not_look_at_all_that_waits),
		TEST(test_calls_do_not_look_at_all_that_goes_on),
		TEST(test_no_call_crosses_another_of_its_thread),
		TEST(test_an_end_that_goes_back_is_nonsense),
		TEST(test_no_flood_of_one_user_forgets_anothers),
		TEST(test_no_threads_of_one_user_forget_anothers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
