// SPDX-License-Identifier: MIT
/* Which calls are recorded into a CUDA graph and do not run. */
#include "unit.h"

#include <time.h>

#include "capture/graph_captures.h"

#define PROCESS 100
#define OTHER   200
#define THREAD  101

#define PER_THREAD 2 /* cudaStreamPerThread */

static int make(void **state)
{
	*state = graph_captures_new(NULL);
	return 0;
}

static int destroy(void **state)
{
	graph_captures_free(*state);
	return 0;
}

/* ---- what a process does ------------------------------------------------------------------- */

static void does(struct graph_captures *captures, uint32_t tgid, uint32_t tid, enum api_op op,
                 uint64_t stream, uint64_t event)
{
	const struct call call = { .op = op, .args = { .stream = stream, .event = event } };

	graph_captures_follow(captures, tgid, tid, &call);
}

static void begins(struct graph_captures *captures, uint64_t stream)
{
	does(captures, PROCESS, THREAD, OP_CAPTURE_BEGIN, stream, 0);
}

static void ends(struct graph_captures *captures, uint64_t stream)
{
	does(captures, PROCESS, THREAD, OP_CAPTURE_END, stream, 0);
}

static void records(struct graph_captures *captures, uint64_t event, uint64_t stream)
{
	does(captures, PROCESS, THREAD, OP_EVENT_RECORD, stream, event);
}

static void waits(struct graph_captures *captures, uint64_t stream, uint64_t event)
{
	does(captures, PROCESS, THREAD, OP_EVENT_WAIT, stream, event);
}

static bool captured(const struct graph_captures *captures, uint64_t stream)
{
	return graph_captures_stream(captures, PROCESS, THREAD, stream);
}

/* ---- tests --------------------------------------------------------------------------------- */

static void test_what_targets_capture_is_of_a_budget(void **state)
{
	struct budget *budget = budget_new(64 << 10, 1 << 20);
	struct graph_captures *captures = graph_captures_new(budget);

	(void)state;
	for (uint64_t stream = 10; stream < 10000; stream++)
		begins(captures, stream);
	assert_true(captured(captures, 10));
	assert_false(captured(captures, 9999)); /* there was no room */
	assert_true(budget_refused(budget) > 0);
	assert_true(budget_used(budget) <= 64 << 10);
	ends(captures, 10);
	begins(captures, 9999);
	assert_true(captured(captures, 9999));
	graph_captures_forget(captures, PROCESS);
	assert_int_equal(budget_used(budget), 0);
	graph_captures_free(captures);
	budget_free(budget);
}

/* Anybody may have any number of streams and of short processes. */
static void test_ends_take_the_time_of_what_ends(void **state)
{
	clock_t begin = clock();

	for (uint64_t stream = 10; stream < 100000; stream++)
		begins(*state, stream);
	for (uint32_t tgid = OTHER; tgid < OTHER + 20000; tgid++) {
		does(*state, tgid, tgid, OP_CAPTURE_BEGIN, 10, 0);
		does(*state, tgid, tgid, OP_CAPTURE_END, 10, 0);
		graph_captures_forget(*state, tgid);
	}
	assert_true(clock() - begin < 3 * CLOCKS_PER_SEC);
}

static void test_a_stream_may_go_from_one_capture_to_another(void **state)
{
	begins(*state, 10);
	begins(*state, 20);
	records(*state, 0xe1, 10);
	waits(*state, 20, 0xe1);
	assert_true(captured(*state, 20));
	ends(*state, 10);
	assert_false(captured(*state, 20));
}

static void test_a_stream_is_captured_from_begin_to_end(void **state)
{
	assert_false(captured(*state, 10));
	begins(*state, 10);
	assert_true(captured(*state, 10));
	assert_false(captured(*state, 11));
	ends(*state, 10);
	assert_false(captured(*state, 10));
}

static void test_a_capture_spreads_by_an_event(void **state)
{
	begins(*state, 10);
	records(*state, 0xe1, 10);
	assert_false(captured(*state, 11));
	waits(*state, 11, 0xe1);
	assert_true(captured(*state, 11));
}

static void test_it_spreads_on_from_the_streams_that_joined(void **state)
{
	begins(*state, 10);
	records(*state, 0xe1, 10);
	waits(*state, 11, 0xe1);
	records(*state, 0xe2, 11);
	waits(*state, 12, 0xe2);
	assert_true(captured(*state, 12));
}

static void test_the_end_is_the_end_for_all_that_joined(void **state)
{
	begins(*state, 10);
	records(*state, 0xe1, 10);
	waits(*state, 11, 0xe1);
	ends(*state, 10);
	assert_false(captured(*state, 11));
	waits(*state, 12, 0xe1);
	assert_false(captured(*state, 12));
}

static void test_an_event_of_no_capture_spreads_nothing(void **state)
{
	begins(*state, 10);
	records(*state, 0xe1, 11);
	waits(*state, 12, 0xe1);
	waits(*state, 13, 0xe9);
	assert_false(captured(*state, 12));
	assert_false(captured(*state, 13));
}

static void test_an_event_recorded_elsewhere_leaves_the_capture(void **state)
{
	begins(*state, 10);
	records(*state, 0xe1, 10);
	records(*state, 0xe1, 11);
	waits(*state, 12, 0xe1);
	assert_false(captured(*state, 12));
}

static void test_a_captured_stream_that_waits_for_another_event_stays(void **state)
{
	begins(*state, 10);
	waits(*state, 10, 0xe1);
	assert_true(captured(*state, 10));
}

static void test_captures_end_each_for_itself(void **state)
{
	begins(*state, 10);
	begins(*state, 20);
	records(*state, 0xe1, 10);
	waits(*state, 11, 0xe1);
	records(*state, 0xe2, 20);
	waits(*state, 21, 0xe2);
	ends(*state, 10);
	assert_false(captured(*state, 10));
	assert_false(captured(*state, 11));
	assert_true(captured(*state, 20));
	assert_true(captured(*state, 21));
}

static void test_the_end_of_nothing_is_nothing(void **state)
{
	begins(*state, 10);
	ends(*state, 20);
	assert_true(captured(*state, 10));
}

/* An end that was not seen: its process was not yet traced, or its hook was given up. */
static void test_a_new_capture_of_a_stream_ends_its_last(void **state)
{
	begins(*state, 10);
	records(*state, 0xe1, 10);
	waits(*state, 11, 0xe1);
	begins(*state, 10);
	assert_true(captured(*state, 10));
	assert_false(captured(*state, 11));
}

static void test_runtime_and_driver_may_both_tell_of_one_capture(void **state)
{
	begins(*state, 10);
	begins(*state, 10);
	records(*state, 0xe1, 10);
	records(*state, 0xe1, 10);
	waits(*state, 11, 0xe1);
	ends(*state, 10);
	ends(*state, 10);
	assert_false(captured(*state, 10));
	assert_false(captured(*state, 11));
}

static void test_each_thread_has_a_stream_of_its_own(void **state)
{
	does(*state, PROCESS, 101, OP_CAPTURE_BEGIN, PER_THREAD, 0);
	assert_true(graph_captures_stream(*state, PROCESS, 101, PER_THREAD));
	assert_false(graph_captures_stream(*state, PROCESS, 102, PER_THREAD));
	does(*state, PROCESS, 102, OP_CAPTURE_END, PER_THREAD, 0);
	assert_true(graph_captures_stream(*state, PROCESS, 101, PER_THREAD));
	does(*state, PROCESS, 101, OP_CAPTURE_END, PER_THREAD, 0);
	assert_false(graph_captures_stream(*state, PROCESS, 101, PER_THREAD));
}

static void test_other_streams_belong_to_all_threads(void **state)
{
	does(*state, PROCESS, 101, OP_CAPTURE_BEGIN, 10, 0);
	assert_true(graph_captures_stream(*state, PROCESS, 102, 10));
}

static void test_handles_of_two_processes_may_be_equal(void **state)
{
	begins(*state, 10);
	assert_false(graph_captures_stream(*state, OTHER, 201, 10));
	records(*state, 0xe1, 10);
	does(*state, OTHER, 201, OP_EVENT_WAIT, 11, 0xe1);
	assert_false(graph_captures_stream(*state, OTHER, 201, 11));
	does(*state, OTHER, 201, OP_CAPTURE_END, 10, 0);
	assert_true(captured(*state, 10));
}

static void test_a_process_that_is_gone_is_forgotten(void **state)
{
	begins(*state, 10);
	records(*state, 0xe1, 10);
	does(*state, OTHER, 201, OP_CAPTURE_BEGIN, 10, 0);
	graph_captures_forget(*state, PROCESS);
	assert_false(captured(*state, 10));
	waits(*state, 11, 0xe1);
	assert_false(captured(*state, 11));
	assert_true(graph_captures_stream(*state, OTHER, 201, 10));
}

static void test_other_calls_change_nothing(void **state)
{
	begins(*state, 10);
	does(*state, PROCESS, THREAD, OP_LAUNCH, 10, 0);
	does(*state, PROCESS, THREAD, OP_SYNC, 10, 0);
	assert_true(captured(*state, 10));
	assert_false(captured(*state, 0));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, destroy)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_stream_is_captured_from_begin_to_end),
		TEST(test_a_capture_spreads_by_an_event),
		TEST(test_it_spreads_on_from_the_streams_that_joined),
		TEST(test_the_end_is_the_end_for_all_that_joined),
		TEST(test_an_event_of_no_capture_spreads_nothing),
		TEST(test_an_event_recorded_elsewhere_leaves_the_capture),
		TEST(test_a_captured_stream_that_waits_for_another_event_stays),
		TEST(test_captures_end_each_for_itself),
		TEST(test_the_end_of_nothing_is_nothing),
		TEST(test_a_new_capture_of_a_stream_ends_its_last),
		TEST(test_runtime_and_driver_may_both_tell_of_one_capture),
		TEST(test_each_thread_has_a_stream_of_its_own),
		TEST(test_other_streams_belong_to_all_threads),
		TEST(test_handles_of_two_processes_may_be_equal),
		TEST(test_a_process_that_is_gone_is_forgotten),
		TEST(test_other_calls_change_nothing),
		TEST(test_a_stream_may_go_from_one_capture_to_another),
		TEST(test_what_targets_capture_is_of_a_budget),
		TEST(test_ends_take_the_time_of_what_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
