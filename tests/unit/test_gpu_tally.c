// SPDX-License-Identifier: MIT
/* What the summary says of GPUs. */
#include "support.h"

#include <time.h>

#include "analysis/gpu_tally.h"

static struct gpu_tally tally;

static int set_up(void **state)
{
	gpu_tally_init(&tally, NULL);
	return 0;
}

static int tear_down(void **state)
{
	gpu_tally_free(&tally);
	return 0;
}

static void see_call(uint64_t correlation, double end_us)
{
	struct call call = launch_at("cuLaunchKernel", end_us - 5, NULL);
	struct event event;

	call.correlation = correlation;
	event = call_event(the_process(), 4243, &call);
	gpu_tally_event(&tally, &event);
}

static void see_work(struct activity activity, uint64_t correlation, double begin_us, double end_us)
{
	struct event event;

	activity.correlation = correlation;
	activity.begin_ns = US(begin_us);
	activity.end_ns = US(end_us);
	event = activity_event(the_process(), &activity);
	gpu_tally_event(&tally, &event);
}

static void see_kernel(uint64_t correlation, double begin_us, double end_us)
{
	see_work((struct activity){ .kind = ACTIVITY_KERNEL, .stream = 7 }, correlation, begin_us,
	         end_us);
}

static void test_work_waits_from_the_end_of_its_call(void **state)
{
	see_call(1, 10);
	see_call(2, 20);
	see_kernel(1, 12, 30);
	see_kernel(2, 40, 50);
	assert_int_equal(tally.queue.count, 2);
	assert_int_equal(tally.queue.min, 2000);
	assert_int_equal(tally.queue.max, 20000);
}

static void test_work_that_began_before_its_call_returned_did_not_wait(void **state)
{
	see_call(1, 10);
	see_kernel(1, 8, 30);
	see_kernel(2, 31, 35); /* known before its call, which waits for it */
	see_call(2, 40);
	assert_int_equal(tally.queue.count, 0);
	assert_int_equal(tally.not_queued, 2);
	assert_int_equal(tally.unmatched, 0);
}

static void test_of_a_graph_the_first_node_waits(void **state)
{
	see_call(1, 10);
	see_kernel(1, 12, 14);
	see_kernel(1, 100, 110);
	see_kernel(0, 120, 130);
	see_kernel(77, 140, 150);
	assert_int_equal(tally.queue.count, 1);
	assert_int_equal(tally.queue.max, 2000);
	assert_int_equal(tally.unmatched, 2);
}

static void test_work_is_known_however_many_calls_came_since(void **state)
{
	for (uint64_t i = 1; i <= 300000; i++)
		see_call(i, 10);
	for (uint64_t i = 1; i <= 300000; i++)
		see_kernel(i, 12, 13);
	assert_int_equal(tally.unmatched, 0);
	assert_int_equal(tally.queue.count, 300000);
}

static void see_not_measured(double begin_us, double end_us)
{
	struct range range = { .kind = RANGE_NOT_MEASURED,
		               .begin_ns = US(begin_us),
		               .end_ns = US(end_us) };
	struct event event = { .type = EVENT_RANGE, .process = the_process(), .range = &range };

	gpu_tally_event(&tally, &event);
}

static void test_a_gpu_is_busy_of_what_was_measured(void **state)
{
	const struct gpu_line *lines;
	size_t n;

	see_not_measured(0, 100); /* before its first work: it does not count anyway */
	see_kernel(0, 100, 110);
	see_kernel(0, 120, 130);
	see_not_measured(140, 1000);
	see_kernel(0, 1000, 1030);
	see_not_measured(1030, 2000);
	lines = gpu_tally_lines(&tally, &n);
	assert_int_equal(n, 1);
	assert_int_equal(lines[0].busy_ns, 50000);
	assert_int_equal(gpu_line_measured_ns(&lines[0]), 70000);
}

static void test_no_gpu_is_busier_than_it_was_measured(void **state)
{
	const struct gpu_line *lines;
	size_t n;

	see_kernel(0, 100, 150);
	see_not_measured(110, 200); /* cuts off the kernel */
	see_kernel(0, 200, 250);
	lines = gpu_tally_lines(&tally, &n);
	assert_int_equal(gpu_line_measured_ns(&lines[0]), lines[0].busy_ns);
}

static void test_communication_is_hidden_where_others_run(void **state)
{
	struct activity nccl = { .kind = ACTIVITY_KERNEL,
		                 .stream = 20,
		                 .kernel = new_kernel("ncclDevKernel_AllReduce()", true) };
	const struct gpu_line *lines;
	size_t n;

	see_kernel(0, 10, 20);
	see_work(nccl, 0, 15, 35);
	see_work((struct activity){ .kind = ACTIVITY_COPY, .device = 1, .bytes = 4096 }, 0, 40, 44);
	lines = gpu_tally_lines(&tally, &n);
	assert_int_equal(n, 2);
	assert_int_equal(lines[0].busy_ns, 25000);
	assert_int_equal(lines[0].communication_ns, 20000);
	assert_int_equal(lines[0].beside_ns, 5000);
	assert_int_equal(lines[1].device, 1);
	assert_int_equal(lines[1].ran[ACTIVITY_COPY], 1);
	assert_true(gpu_copies_rate(&tally.copies[DIRECTION_NONE]) == 1.024);
}

#define RUNS 1000000

/* Its name was read for each run of it, 5 us where it is as long as one can be. */
static void test_a_name_without_symbol_is_read_once(void **state)
{
	static char name[8192];
	struct kernel kernel = { .id = 0, .name = memset(name, 'n', sizeof(name) - 1) };
	struct timespec begin, end;
	const struct gpu_line *lines;
	size_t n;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	for (int i = 0; i < RUNS; i++)
		see_work((struct activity){ .kind = ACTIVITY_KERNEL, .kernel = &kernel }, 0,
		         10.0 * i, 10.0 * i + 5);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	assert_true(end.tv_sec - begin.tv_sec < 3);
	lines = gpu_tally_lines(&tally, &n);
	assert_int_equal(lines[0].communication_ns, 0);
	kernel.name = "ncclDevKernel_AllReduce"; /* now it is known */
	kernel.resolved = true;
	see_work((struct activity){ .kind = ACTIVITY_KERNEL, .kernel = &kernel }, 0, 10.0 * RUNS,
	         10.0 * RUNS + 5);
	lines = gpu_tally_lines(&tally, &n);
	assert_int_equal(lines[0].communication_ns, 5000);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_work_waits_from_the_end_of_its_call),
		TEST(test_work_that_began_before_its_call_returned_did_not_wait),
		TEST(test_of_a_graph_the_first_node_waits),
		TEST(test_work_is_known_however_many_calls_came_since),
		TEST(test_a_gpu_is_busy_of_what_was_measured),
		TEST(test_no_gpu_is_busier_than_it_was_measured),
		TEST(test_communication_is_hidden_where_others_run),
		TEST(test_a_name_without_symbol_is_read_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
