// SPDX-License-Identifier: MIT
/* What each process did. */
#include "support.h"

#include "analysis/processes.h"

static struct consumer *processes;

static int set_up(void **state)
{
	processes = processes_new();
	return 0;
}

static int tear_down(void **state)
{
	consumer_free(processes);
	return 0;
}

static void see(const struct process *process, struct call call)
{
	struct event event = call_event(process, process->pid, &call);

	feed(processes, &event);
}

static void see_process(enum event_type type, const struct process *process, double at_us)
{
	struct event event = process_event(type, process, at_us);

	feed(processes, &event);
}

static void test_each_process_has_its_own_figures(void **state)
{
	const struct process *one = new_process(1, "one"), *two = new_process(2, "two");
	struct call failed = call_at("cudaMalloc", 60, 5);
	const struct process_row *rows;
	size_t n;

	fail_call(&failed, 2);
	see_process(EVENT_PROCESS, one, 0);
	see_process(EVENT_PROCESS, two, 5);
	see(one, alloc_at("cudaMalloc", 10, 0x1000, 4096));
	see(one, copy_at("cudaMemcpy", 20, DIRECTION_H2D, 100));
	see(one, copy_at("cudaMemcpy", 30, DIRECTION_D2H, 50));
	see(one, launch_at("cuLaunchKernel", 40, NULL));
	see(two, launch_at("cuLaunchKernel", 50, NULL));
	see(one, failed);
	see_process(EVENT_EXIT, one, 100);
	rows = processes_rows(processes, &n);
	assert_int_equal(n, 2);
	assert_ptr_equal(rows[0].process, one);
	assert_int_equal(rows[0].calls, 5);
	assert_int_equal(rows[0].call_ns, 40000); /* 3 of 10 us and 2 of 5 us */
	assert_int_equal(rows[0].failed, 1);
	assert_int_equal(rows[0].launches, 1);
	assert_int_equal(rows[0].copies.count, 2);
	assert_int_equal(rows[0].copies.bytes, 150);
	assert_int_equal(rows[0].live_bytes, 0);
	assert_int_equal(rows[0].peak_bytes, 4096);
	assert_int_equal(rows[0].begin_ns, US(0));
	assert_int_equal(rows[0].end_ns, US(100));
	assert_true(rows[0].ended);
	assert_int_equal(rows[1].launches, 1);
	assert_int_equal(rows[1].begin_ns, US(5));
	assert_int_equal(rows[1].end_ns, US(55)); /* the last that was seen */
	assert_false(rows[1].ended);
}

static void test_processes_without_calls_have_no_row(void **state)
{
	size_t n;

	see_process(EVENT_PROCESS, new_process(3, "sh"), 0);
	processes_rows(processes, &n);
	assert_int_equal(n, 0);
}

static void test_inner_calls_do_not_count(void **state)
{
	struct call nested = launch_at("cuLaunchKernel", 10, NULL);
	const struct process_row *rows;
	size_t n;

	nested.flags |= CALL_NESTED;
	see(the_process(), nested);
	see(the_process(), launch_at("cudaLaunchKernel", 9, NULL));
	rows = processes_rows(processes, &n);
	assert_int_equal(rows[0].calls, 1);
	assert_int_equal(rows[0].launches, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_each_process_has_its_own_figures),
		TEST(test_processes_without_calls_have_no_row),
		TEST(test_inner_calls_do_not_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
