// SPDX-License-Identifier: MIT
/* What each thread did. */
#include "support.h"

#include "analysis/thread_ids.h"
#include "report/thread_use.h"

static struct consumer *use;

static int set_up(void **state)
{
	use = thread_use_new();
	return 0;
}

static int tear_down(void **state)
{
	consumer_free(use);
	return 0;
}

static void see(uint32_t tid, struct call call)
{
	struct event event = call_event(the_process(), tid, &call);

	feed(use, &event);
}

static void name(uint32_t tid, const char *comm)
{
	struct thread thread = { 0 };
	struct event event = {
		.type = EVENT_THREAD, .process = the_process(), .tid = tid, .thread = &thread
	};

	snprintf(thread.comm, sizeof(thread.comm), "%s", comm);
	feed(use, &event);
}

static void test_time_in_cuda_and_the_longest_call(void **state)
{
	const struct thread_use_row *rows;
	struct call failed = call_at("cudaMalloc", 95, 5);
	size_t n;

	fail_call(&failed, 2);
	name(1, "worker");
	see(1, launch_at("cuLaunchKernel", 0, NULL));
	see(1, call_at("cudaDeviceSynchronize", 10, 40));
	see(1, failed);
	see(2, launch_at("cuLaunchKernel", 20, NULL));
	rows = thread_use_rows(use, &n);
	assert_int_equal(n, 2);
	assert_int_equal(rows[0].tid, 1);
	assert_string_equal(rows[0].comm, "worker");
	assert_int_equal(rows[0].calls, 3);
	assert_int_equal(rows[0].call_ns, 50000);
	assert_int_equal(rows[0].sync_ns, 40000);
	assert_int_equal(rows[0].launches, 1);
	assert_int_equal(rows[0].failed, 1);
	assert_int_equal(rows[0].last_ns - rows[0].first_ns, 100000); /* half of it in CUDA */
	assert_int_equal(rows[0].longest_ns, 40000);
	assert_string_equal(rows[0].longest->name, "cudaDeviceSynchronize");
	assert_string_equal(rows[1].comm, "");
}

static void test_inner_calls_are_not_counted_twice(void **state)
{
	struct call nested = call_at("cuMemAlloc_v2", 2, 5);
	const struct thread_use_row *rows;
	size_t n;

	nested.flags |= CALL_NESTED;
	see(1, nested);
	see(1, call_at("cudaMalloc", 1, 10));
	rows = thread_use_rows(use, &n);
	assert_int_equal(rows[0].calls, 1);
	assert_int_equal(rows[0].call_ns, 10000);
}

static void test_a_tid_that_is_given_out_again_is_another_thread(void **state)
{
	const struct thread_use_row *rows;
	size_t n;

	name(1, "first");
	see(1, call_at("cudaMalloc", 1, 10));
	name(1, "first"); /* told again: the same */
	see(1, call_at("cudaMalloc", 20, 10));
	name(1, "second");
	see(1, call_at("cudaMalloc", 40, 10));
	rows = thread_use_rows(use, &n);
	assert_int_equal(n, 2);
	assert_string_equal(rows[0].comm, "first");
	assert_int_equal(rows[0].calls, 2);
	assert_string_equal(rows[1].comm, "second");
}

static void test_threads_without_end_share_a_row(void **state)
{
	const struct thread_use_row *rows;
	size_t n;

	for (uint32_t tid = 1; tid <= THREAD_IDS_MAX + 10; tid++)
		see(tid, call_at("cudaMalloc", tid, 1));
	rows = thread_use_rows(use, &n);
	assert_int_equal(n, THREAD_IDS_MAX + 1);
	assert_int_equal(rows[0].tid, 0);
	assert_int_equal(rows[0].calls, 10);
}

static void test_threads_of_one_user_leave_rows_for_those_of_others(void **state)
{
	const struct process ann = { .id = 1, .pid = 1, .person = 1000 };
	const struct process bob = { .id = 2, .pid = 2, .person = 1001 };
	struct call call = call_at("cudaMalloc", 1, 10);
	struct event event = call_event(&ann, 5, &call);
	const struct thread_use_row *rows;
	size_t n, of_bob = 0;

	for (event.tid = 1; event.tid <= THREAD_IDS_MAX; event.tid++)
		feed(use, &event);
	event.process = &bob;
	feed(use, &event);
	rows = thread_use_rows(use, &n);
	for (size_t i = 0; i < n; i++)
		of_bob += rows[i].process == &bob && rows[i].tid == event.tid;
	assert_int_equal(of_bob, 1);
}

static void test_one_tid_of_two_processes_is_two_threads(void **state)
{
	const struct process *one = new_process(1, "one"), *two = new_process(2, "two");
	struct call call = call_at("cudaMalloc", 1, 10);
	struct event event = call_event(one, 5, &call);
	size_t n;

	feed(use, &event);
	event.process = two;
	feed(use, &event);
	thread_use_rows(use, &n);
	assert_int_equal(n, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_time_in_cuda_and_the_longest_call),
		TEST(test_inner_calls_are_not_counted_twice),
		TEST(test_a_tid_that_is_given_out_again_is_another_thread),
		TEST(test_threads_without_end_share_a_row),
		TEST(test_threads_of_one_user_leave_rows_for_those_of_others),
		TEST(test_one_tid_of_two_processes_is_two_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
