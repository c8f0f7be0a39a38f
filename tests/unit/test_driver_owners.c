// SPDX-License-Identifier: MIT
/* Whose an event of the driver is that comes when its process may have ended, and when it was. */
#include "records.h"

#include "capture/driver_events.h"

#define SECOND 1000000000ull

static const struct process *owner(struct feed *feed, uint64_t time_ns, bool is_target)
{
	return driver_events_owner(feed->pipeline, CHILD, time_ns, is_target);
}

static void born(struct feed *feed)
{
	feed_process(feed, WIRE_FORK, PROCESS, THREAD, CHILD, "child");
}

static void ended(struct feed *feed)
{
	feed_process(feed, WIRE_EXIT, CHILD, CHILD, 0, "");
}

static void test_what_comes_late_is_of_a_process_that_has_ended(void **state)
{
	struct feed *feed = *state;
	const struct process *child;
	uint64_t time_ns;

	born(feed);
	child = pipeline_process_known(feed->pipeline, CHILD);
	time_ns = feed->now_ns += SECOND;
	ended(feed);
	assert_null(pipeline_process_known(feed->pipeline, CHILD));
	assert_ptr_equal(owner(feed, time_ns, true), child);
	assert_ptr_equal(owner(feed, time_ns, false), child);
	/* what it leaves is cleared away by the kernel afterwards, but not for ever */
	assert_ptr_equal(owner(feed, feed->now_ns + 4 * SECOND, false), child);
	assert_int_equal(owner(feed, feed->now_ns + 6 * SECOND, false)->pid, 0);
}

static void test_who_was_born_after_an_event_is_not_its_owner(void **state)
{
	struct feed *feed = *state;
	const struct process *first, *second;
	uint64_t time_ns;

	born(feed);
	first = pipeline_process_known(feed->pipeline, CHILD);
	time_ns = feed->now_ns += SECOND;
	ended(feed);
	feed->now_ns += SECOND;
	born(feed);
	second = pipeline_process_known(feed->pipeline, CHILD);
	assert_ptr_not_equal(first, second);
	assert_ptr_equal(owner(feed, time_ns, true), first);
	assert_ptr_equal(owner(feed, feed->now_ns - 1, true), first);
	assert_ptr_equal(owner(feed, feed->now_ns, true), second);
}

static void test_of_several_with_one_pid_it_is_the_one_of_that_time(void **state)
{
	struct feed *feed = *state;
	const struct process *all[3];
	uint64_t times[3];

	for (int i = 0; i < 3; i++) {
		born(feed);
		all[i] = pipeline_process_known(feed->pipeline, CHILD);
		times[i] = feed->now_ns += 1000;
		ended(feed);
	}
	for (int i = 0; i < 3; i++)
		assert_ptr_equal(owner(feed, times[i], true), all[i]);
}

static void test_a_program_before_exec_keeps_what_it_caused(void **state)
{
	struct feed *feed = *state;
	const struct process *before;
	uint64_t time_ns;

	born(feed);
	before = pipeline_process_known(feed->pipeline, CHILD);
	time_ns = feed->now_ns += SECOND;
	feed_process(feed, WIRE_EXEC, CHILD, CHILD, 0, "after");
	assert_ptr_equal(owner(feed, time_ns, true), before);
	assert_ptr_equal(owner(feed, feed->now_ns, true),
	                 pipeline_process_known(feed->pipeline, CHILD));
}

/* It was there before anything was heard of it: its birth is not known. */
static void test_who_was_there_before_is_the_owner_from_the_begin_on(void **state)
{
	struct feed *feed = *state;

	feed_call(feed, "cudaMalloc", 0, 0);
	assert_ptr_equal(driver_events_owner(feed->pipeline, PROCESS, 1, false),
	                 pipeline_process_known(feed->pipeline, PROCESS));
}

static void test_a_target_that_nobody_heard_of_is_new_and_others_are_the_drivers(void **state)
{
	struct feed *feed = *state;

	assert_int_equal(owner(feed, 1, false)->pid, 0);
	assert_int_equal(driver_events_owner(feed->pipeline, 0, 1, false)->pid, 0);
	assert_int_equal(owner(feed, 1, true)->pid, CHILD);
}

/* The target of this pid is another one than the event's, of which nothing is known. */
static void test_a_target_that_was_born_later_is_not_asked_for(void **state)
{
	struct feed *feed = *state;
	uint64_t time_ns = feed->now_ns;

	feed->now_ns += SECOND;
	born(feed);
	assert_int_equal(owner(feed, time_ns, true)->pid, 0);
}

static void test_of_many_that_ended_the_last_are_known(void **state)
{
	struct feed *feed = *state;
	const struct process *first, *last = NULL;
	uint64_t times[2];

	born(feed);
	first = pipeline_process_known(feed->pipeline, CHILD);
	times[0] = feed->now_ns;
	for (int i = 0; i < 1024; i++) {
		ended(feed);
		assert_ptr_equal(owner(feed, times[0], false), first);
		born(feed);
		last = pipeline_process_known(feed->pipeline, CHILD);
		feed->recorder.count = 0;
	}
	times[1] = feed->now_ns;
	ended(feed);
	assert_int_equal(owner(feed, times[0], false)->pid, 0);
	assert_ptr_equal(owner(feed, times[1], false), last);
}

static void test_a_process_that_is_forgotten_owns_nothing(void **state)
{
	struct feed *feed = *state;
	const struct process *child;

	born(feed);
	child = pipeline_process_known(feed->pipeline, CHILD);
	ended(feed);
	assert_ptr_equal(owner(feed, feed->now_ns, false), child);
	pipeline_forget_process(feed->pipeline, child);
	assert_int_equal(owner(feed, feed->now_ns, false)->pid, 0);
}

static void test_a_sum_ends_with_its_last_event(void **state)
{
	struct driver_sum sum = { .last_ns = 500 };

	assert_int_equal(driver_sum_end_ns(&sum, 100, 900), 500);
	assert_int_equal(driver_sum_end_ns(&sum, 600, 900), 600);
	assert_int_equal(driver_sum_end_ns(&sum, 100, 400), 400);
	sum.last_ns = 0;
	assert_int_equal(driver_sum_end_ns(&sum, 100, 900), 900);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, feed_open, feed_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_what_comes_late_is_of_a_process_that_has_ended),
		TEST(test_who_was_born_after_an_event_is_not_its_owner),
		TEST(test_of_several_with_one_pid_it_is_the_one_of_that_time),
		TEST(test_a_program_before_exec_keeps_what_it_caused),
		TEST(test_who_was_there_before_is_the_owner_from_the_begin_on),
		TEST(test_a_target_that_nobody_heard_of_is_new_and_others_are_the_drivers),
		TEST(test_a_target_that_was_born_later_is_not_asked_for),
		TEST(test_of_many_that_ended_the_last_are_known),
		TEST(test_a_process_that_is_forgotten_owns_nothing),
		TEST(test_a_sum_ends_with_its_last_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
