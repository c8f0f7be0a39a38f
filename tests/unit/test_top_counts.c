// SPDX-License-Identifier: MIT
/* What `cuscope top` counts of processes, functions, kernels and streams. */
#include "support.h"

#include "table/table.h"

#include "top/top_counts.h"

#define KIB    1024ull
#define A      0x7f0000000000ull
#define SECOND 1000000.0 /* in the microseconds of support.h */

static struct run run;
static struct top_counts *counts;
static struct top_snapshot snapshot;

static int set_up(void **state)
{
	open_run(&run);
	counts = top_counts_new();
	begin_run(&run, top_counts_consumer(counts));
	return 0;
}

static int tear_down(void **state)
{
	top_snapshot_free(&snapshot);
	end_run(&run);
	close_run(&run);
	return 0;
}

/* Ends an interval and looks; returns the first process. */
static const struct top_process *look_at(double us)
{
	top_counts_tick(counts, US(us));
	top_snapshot_free(&snapshot);
	top_counts_snapshot(counts, true, &snapshot);
	return snapshot.n_processes ? &snapshot.processes[0] : NULL;
}

static void assert_rate(const struct top_count *count, uint64_t total, double rate)
{
	assert_int_equal(count->total, total);
	assert_float_equal(count->rate, rate, 1e-6);
}

static void push_launches(const struct kernel *kernel, int n, double at_us)
{
	for (int i = 0; i < n; i++)
		push_call(&run, launch_at("cuLaunchKernel", at_us + i, kernel));
}

/* ---- rates --------------------------------------------------------------------------------- */

static void test_rates_are_those_of_the_last_interval(void **state)
{
	const struct kernel *kernel = new_kernel("tick()", true);
	const struct top_process *process;

	push_launches(kernel, 10, 100);
	process = look_at(2 * SECOND);
	assert_rate(&process->numbers[TOP_COUNT_CALLS], 10, 5);
	push_launches(kernel, 3, 2.1 * SECOND);
	process = look_at(3 * SECOND);
	assert_rate(&process->numbers[TOP_COUNT_CALLS], 13, 3);
	assert_rate(&process->numbers[TOP_COUNT_LAUNCHES], 13, 3);
	assert_rate(&process->items[TOP_KIND_KERNEL].all[0].calls, 13, 3);
	assert_rate(&process->items[TOP_KIND_STREAM].all[0].calls, 13, 3);
	assert_rate(&process->items[TOP_KIND_FUNCTION].all[0].calls, 13, 3);
	process = look_at(4 * SECOND);
	assert_rate(&process->numbers[TOP_COUNT_CALLS], 13, 0);
	assert_int_equal(snapshot.interval_ns, 1000000000);
}

static void test_calls_that_were_counted_only_are_calls_all_the_same(void **state)
{
	const struct top_process *process;
	const struct call call = call_at("cuCtxGetDevice", 100, 1);

	push_call(&run, call);
	top_counts_counted(counts, the_process()->pid, call.function, 9);
	process = look_at(2 * SECOND);
	assert_rate(&process->numbers[TOP_COUNT_CALLS], 10, 5);
	assert_rate(&process->items[TOP_KIND_FUNCTION].all[0].calls, 10, 5);
	assert_int_equal(process->items[TOP_KIND_FUNCTION].all[0].counted, 9);
	assert_int_equal(process->items[TOP_KIND_FUNCTION].all[0].failed, 0);
	top_counts_counted(counts, the_process()->pid + 1, call.function, 9); /* nobody knows it */
	process = look_at(3 * SECOND);
	assert_rate(&process->numbers[TOP_COUNT_CALLS], 10, 0);
}

static void test_a_snapshot_stays_while_counting_goes_on(void **state)
{
	const struct kernel *kernel = new_kernel("tick()", true);
	const struct top_process *process;

	push_launches(kernel, 1, 100);
	process = look_at(SECOND);
	push_launches(kernel, 5, SECOND + 1);
	top_counts_tick(counts, US(2 * SECOND));
	assert_rate(&process->numbers[TOP_COUNT_CALLS], 1, 1);
}

static void test_copies_are_counted_by_direction_and_stream(void **state)
{
	struct call call = copy_at("cudaMemcpyAsync", 10, DIRECTION_H2D, 4 * KIB);
	const struct top_process *process;

	set_stream(&call, 0x55d0);
	push_call(&run, call);
	push_call(&run, copy_at("cudaMemcpy", 30, DIRECTION_D2H, 1 * KIB));
	process = look_at(2 * SECOND);
	assert_rate(&process->numbers[TOP_COUNT_COPY_BYTES + DIRECTION_H2D], 4 * KIB, 2 * KIB);
	assert_rate(&process->numbers[TOP_COUNT_COPIES + DIRECTION_D2H], 1, 0.5);
	assert_int_equal(process->items[TOP_KIND_STREAM].n, 2);
	assert_int_equal(process->items[TOP_KIND_STREAM].all[0].stream.handle, 0x55d0);
	assert_rate(&process->items[TOP_KIND_STREAM].all[0].bytes, 4 * KIB, 2 * KIB);
	assert_int_equal(process->items[TOP_KIND_STREAM].all[1].stream.handle, 0);
}

static void test_what_failed_or_was_nested_did_no_work(void **state)
{
	struct call failed = launch_at("cuLaunchKernel", 10, new_kernel("tick()", true));
	struct call nested = launch_at("cuLaunchKernel", 20, new_kernel("tick()", true));
	const struct top_process *process;

	fail_call(&failed, 1);
	nested.flags |= CALL_NESTED;
	push_call(&run, failed);
	push_call(&run, nested);
	process = look_at(SECOND);
	assert_rate(&process->numbers[TOP_COUNT_CALLS], 1, 1);
	assert_rate(&process->numbers[TOP_COUNT_ERRORS], 1, 1);
	assert_rate(&process->numbers[TOP_COUNT_LAUNCHES], 0, 0);
	assert_int_equal(process->items[TOP_KIND_FUNCTION].all[0].failed, 1);
}

static void test_percentiles_are_of_the_calls_that_ended(void **state)
{
	struct call call;
	const struct top_process *process;

	for (int i = 1; i <= 100; i++)
		push_call(&run, call_at("cudaDeviceSynchronize", 1000 * i, i));
	call = call_at("cudaDeviceSynchronize", 200000, 0);
	never_ends(&call, CALL_UNFINISHED);
	push_call(&run, call);
	process = look_at(SECOND);
	assert_int_equal(process->items[TOP_KIND_FUNCTION].all[0].calls.total, 101);
	assert_int_equal(process->items[TOP_KIND_FUNCTION].all[0].time_ns, 5050 * 1000);
	assert_float_equal((double)process->items[TOP_KIND_FUNCTION].all[0].p50_ns, 50000,
	                   50000 / 100);
	assert_float_equal((double)process->items[TOP_KIND_FUNCTION].all[0].p99_ns, 99000,
	                   99000 / 100);
}

/* ---- waiting ------------------------------------------------------------------------------- */

static void test_sync_is_the_share_of_threads_that_made_calls(void **state)
{
	struct call wait = call_at("cudaDeviceSynchronize", 0, 0.5 * SECOND);
	struct call other = launch_at("cuLaunchKernel", 10, new_kernel("tick()", true));
	const struct top_process *process;

	push_call_of(&run, the_process(), 1, &wait);
	push_call_of(&run, the_process(), 2, &other);
	process = look_at(SECOND);
	assert_int_equal(process->threads, 2);
	assert_float_equal(process->sync_share, 0.25, 1e-9);
	process = look_at(2 * SECOND);
	assert_int_equal(process->threads, 0);
	assert_float_equal(process->sync_share, 0, 1e-9);
}

static void test_a_wait_from_before_the_interval_counts_from_its_begin(void **state)
{
	look_at(3 * SECOND);
	push_call(&run, call_at("cudaDeviceSynchronize", 0.5 * SECOND, 3 * SECOND));
	assert_float_equal(look_at(4 * SECOND)->sync_share, 0.5, 1e-9);
	assert_int_equal(snapshot.processes[0].numbers[TOP_COUNT_SYNC_NS].total, 3000000000);
}

static void test_a_wait_that_goes_on_counts_and_is_not_counted_twice(void **state)
{
	const struct function *wait = the_function("cudaDeviceSynchronize");
	const uint32_t pid = the_process()->pid;

	push_call(&run, call_at("cudaDeviceSynchronize", 10, 0));
	top_counts_open_call(counts, pid, 4243, wait, US(0.5 * SECOND), US(1 * SECOND));
	assert_float_equal(look_at(1 * SECOND)->sync_share, 0.5, 1e-3);
	top_counts_open_call(counts, pid, 4243, wait, US(0.5 * SECOND), US(2 * SECOND));
	assert_float_equal(look_at(2 * SECOND)->sync_share, 1, 1e-3);
	assert_int_equal(snapshot.processes[0].threads, 1);
	push_call(&run, call_at("cudaDeviceSynchronize", 0.5 * SECOND, 1.75 * SECOND));
	assert_float_equal(look_at(3 * SECOND)->sync_share, 0.25, 1e-3);
	assert_int_equal(snapshot.processes[0].numbers[TOP_COUNT_SYNC_NS].total, 1750000000);
}

static void test_other_open_calls_are_no_waits(void **state)
{
	push_call(&run, call_at("cudaDeviceSynchronize", 10, 0));
	look_at(SECOND);
	top_counts_open_call(counts, the_process()->pid, 4243, the_function("cuLaunchKernel"),
	                     US(SECOND), US(2 * SECOND));
	top_counts_open_call(counts, 999999, 4243, the_function("cudaDeviceSynchronize"),
	                     US(SECOND), US(2 * SECOND));
	assert_int_equal(look_at(2 * SECOND)->threads, 0);
}

/* ---- memory -------------------------------------------------------------------------------- */

static void test_memory_and_its_peak_by_kind(void **state)
{
	const struct top_process *process;

	push_call(&run, alloc_at("cudaMalloc", 10, A, 8 * KIB));
	push_call(&run, alloc_at("cudaMallocHost", 30, A + 1, 2 * KIB));
	push_call(&run, free_at("cudaFree", 50, A));
	process = look_at(SECOND);
	assert_int_equal(process->memory[MEMORY_NONE].bytes, 2 * KIB);
	assert_int_equal(process->memory[MEMORY_NONE].peak_bytes, 10 * KIB);
	assert_int_equal(process->memory[MEMORY_DEVICE].peak_bytes, 8 * KIB);
	assert_int_equal(process->memory[MEMORY_HOST].bytes, 2 * KIB);
	assert_int_equal(snapshot.total.memory[MEMORY_NONE].bytes, 2 * KIB);
	assert_int_equal(snapshot.total.memory[MEMORY_NONE].peak_bytes, 10 * KIB);
}

static void test_a_reset_begins_anew_but_memory_stays(void **state)
{
	const struct top_process *process;

	push_call(&run, alloc_at("cudaMalloc", 10, A, 8 * KIB));
	push_call(&run, alloc_at("cudaMalloc", 30, A + 8 * KIB, 2 * KIB));
	push_call(&run, free_at("cudaFree", 50, A));
	look_at(SECOND);
	top_counts_reset(counts, US(1.5 * SECOND));
	process = look_at(2.5 * SECOND);
	assert_rate(&process->numbers[TOP_COUNT_CALLS], 0, 0);
	assert_int_equal(process->items[TOP_KIND_FUNCTION].n, 0);
	assert_int_equal(process->memory[MEMORY_NONE].bytes, 2 * KIB);
	assert_int_equal(process->memory[MEMORY_NONE].peak_bytes, 2 * KIB);
	assert_int_equal(snapshot.begin_ns, US(1.5 * SECOND));
}

/* ---- processes that end -------------------------------------------------------------------- */

static void test_a_process_without_calls_has_no_row(void **state)
{
	push_process(&run, new_process(300, "sh"), 0);
	assert_null(look_at(SECOND));
}

static void test_an_ended_process_is_shown_and_then_gone(void **state)
{
	const struct top_process *process;

	push_call(&run, alloc_at("cudaMalloc", 10, A, 8 * KIB));
	push_exit(&run, the_process(), 100);
	process = look_at(SECOND);
	assert_true(process->ended);
	assert_int_equal(process->memory[MEMORY_NONE].bytes, 0);
	assert_int_equal(process->memory[MEMORY_NONE].peak_bytes, 8 * KIB);
	assert_non_null(look_at(5 * SECOND));
	assert_null(look_at(6 * SECOND));
	assert_int_equal(snapshot.n_gone, 1);
	assert_rate(&snapshot.gone.numbers[TOP_COUNT_CALLS], 1, 0);
	assert_rate(&snapshot.total.numbers[TOP_COUNT_CALLS], 1, 0);
}

static void test_a_kept_process_is_not_folded(void **state)
{
	push_call(&run, alloc_at("cudaMalloc", 10, A, 8 * KIB));
	push_exit(&run, the_process(), 100);
	top_counts_keep(counts, &the_process()->id);
	assert_non_null(look_at(60 * SECOND));
	top_counts_keep(counts, NULL);
	assert_null(look_at(61 * SECOND));
}

static void test_the_sum_is_of_all_and_details_of_what_is_kept(void **state)
{
	const struct process *other = new_process(500, "other");
	struct call call = call_at("cuInit", 10, 1);

	push_call_of(&run, the_process(), 1, &call);
	push_call_of(&run, other, 2, &call);
	push_call_of(&run, other, 3, &call);
	top_counts_tick(counts, US(SECOND));
	top_counts_keep(counts, &other->id);
	top_counts_snapshot(counts, false, &snapshot);
	assert_int_equal(snapshot.n_processes, 2);
	assert_int_equal(snapshot.total.threads, 3);
	assert_rate(&snapshot.total.numbers[TOP_COUNT_CALLS], 3, 3);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(snapshot.processes[i].items[TOP_KIND_FUNCTION].n,
		                 snapshot.processes[i].process == other);
}

static void test_an_exec_ends_what_ran_before(void **state)
{
	const struct process *before = new_process(400, "sh"), *after = new_process(400, "app");
	struct call call = call_at("cuInit", 10, 1);

	push_call_of(&run, before, 400, &call);
	push_process(&run, after, 20);
	assert_true(look_at(25)->ended); /* before it has called anything */
	call = call_at("cuInit", 30, 1);
	push_call_of(&run, after, 400, &call);
	look_at(SECOND);
	assert_int_equal(snapshot.n_processes, 2);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(snapshot.processes[i].ended,
		                 snapshot.processes[i].process == before);
}

static void test_an_end_that_was_not_reported_can_be_told(void **state)
{
	push_call(&run, alloc_at("cudaMalloc", 10, A, 8 * KIB));
	top_counts_end(counts, the_process()->id, US(100));
	assert_true(look_at(SECOND)->ended);
	assert_int_equal(snapshot.total.memory[MEMORY_NONE].bytes, 0);
}

/* ---- bounds -------------------------------------------------------------------------------- */

static void test_streams_beyond_the_limit_are_one_row(void **state)
{
	const struct kernel *kernel = new_kernel("tick()", true);
	const struct top_process *process;

	for (int i = 1; i <= TOP_STREAMS_MAX + 50; i++) {
		struct call call = launch_at("cuLaunchKernel", i, kernel);

		set_stream(&call, 0x1000ull * (uint64_t)i);
		push_call(&run, call);
	}
	process = look_at(SECOND);
	assert_int_equal(process->items[TOP_KIND_STREAM].n, TOP_STREAMS_MAX + 1);
	assert_true(process->items[TOP_KIND_STREAM].all[TOP_STREAMS_MAX].others);
	assert_int_equal(process->items[TOP_KIND_STREAM].all[TOP_STREAMS_MAX].calls.total, 50);
}

/* Whatever thread: but each has a stream of its own, too. */
static void test_streams_are_one_row_for_all_threads_but_those_of_threads(void **state)
{
	const struct top_items *streams;
	struct call call = launch_at("cuLaunchKernel", 10, new_kernel("tick()", true));

	for (uint32_t tid = 1; tid <= 3; tid++)
		push_call_of(&run, the_process(), tid, &call);
	call.args.has_stream = true;
	call.args.stream = STREAM_PER_THREAD;
	for (uint32_t tid = 1; tid <= 2; tid++)
		push_call_of(&run, the_process(), tid, &call);
	streams = &look_at(SECOND)->items[TOP_KIND_STREAM];
	assert_int_equal(streams->n, 3);
	assert_int_equal(streams->all[0].calls.total, 3);
	assert_int_equal(streams->all[0].stream.tid, 0);
	assert_int_equal(streams->all[1].stream.tid, 1);
	assert_int_equal(streams->all[2].stream.tid, 2);
}

static void test_a_thread_that_was_forgotten_comes_back(void **state)
{
	push_call(&run, call_at("cuInit", 10, 1));
	for (int second = 1; second < 20; second++)
		assert_int_equal(look_at(second * SECOND)->threads, second == 1);
	push_call(&run, call_at("cuInit", 19.5 * SECOND, 1));
	assert_int_equal(look_at(20 * SECOND)->threads, 1);
}

static void test_calls_without_returns_say_nothing_of_times(void **state)
{
	struct call call = call_at("cuInit", 10, 1);
	const struct top_process *process;

	never_ends(&call, CALL_NO_RETURN);
	push_call(&run, call);
	process = look_at(SECOND);
	assert_true(process->entries_only);
	assert_true(process->items[TOP_KIND_FUNCTION].all[0].p50_ns == TABLE_NOT_KNOWN);
	push_call(&run, call_at("cuInit", 2 * SECOND, 1));
	assert_false(look_at(3 * SECOND)->entries_only);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* ---- GPUs ---------------------------------------------------------------------------------- */

static void push_kernel_on(uint32_t device, const struct kernel *kernel, double begin_us,
                           double end_us)
{
	push_work(&run, (struct activity){ .kind = ACTIVITY_KERNEL,
	                                   .kernel = kernel,
	                                   .device = device,
	                                   .begin_ns = US(begin_us),
	                                   .end_ns = US(end_us) });
}

/* They come late and many at a time: the share is of the time that they tell of. */
static void test_gpus_are_as_busy_as_what_came_says(void **state)
{
	const struct kernel *kernel = new_kernel("gemm()", true);
	const struct top_process *process;

	push_launches(kernel, 2, 100);
	process = look_at(1 * SECOND);
	assert_true(process->gpu_share < 0);
	assert_false(snapshot.gpu_times);
	push_kernel_on(0, kernel, 0.1 * SECOND, 0.2 * SECOND);
	push_kernel_on(0, kernel, 0.15 * SECOND, 0.3 * SECOND); /* overlaps */
	push_kernel_on(0, kernel, 0.4 * SECOND, 0.5 * SECOND);
	process = look_at(2 * SECOND);
	assert_true(snapshot.gpu_times);
	assert_float_equal(process->gpu_share, 0.75, 1e-6);
	assert_int_equal(process->gpu_ns, 300000000);
	assert_int_equal(process->items[TOP_KIND_KERNEL].all[0].gpu_runs, 3);
	assert_int_equal(process->items[TOP_KIND_KERNEL].all[0].gpu_ns, 350000000);
	process = look_at(3 * SECOND); /* nothing new is known yet */
	assert_float_equal(process->gpu_share, 0.75, 1e-6);
	push_kernel_on(1, kernel, 0.5 * SECOND, 1.5 * SECOND); /* of two GPUs one */
	process = look_at(4 * SECOND);
	assert_float_equal(process->gpu_share, 0.5, 1e-6);
	process = look_at(8 * SECOND); /* long enough */
	assert_float_equal(process->gpu_share, 0, 1e-6);
}

static void test_what_a_process_ran_may_be_known_when_it_is_forgotten(void **state)
{
	push_call(&run, call_at("cuInit", 1, 1));
	push_exit(&run, the_process(), 10);
	assert_non_null(look_at(1 * SECOND));
	assert_null(look_at(7 * SECOND));
	push_kernel_on(0, NULL, 5, 9);
	assert_null(look_at(8 * SECOND));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_rates_are_those_of_the_last_interval),
		TEST(test_gpus_are_as_busy_as_what_came_says),
		TEST(test_what_a_process_ran_may_be_known_when_it_is_forgotten),
		TEST(test_calls_that_were_counted_only_are_calls_all_the_same),
		TEST(test_a_snapshot_stays_while_counting_goes_on),
		TEST(test_copies_are_counted_by_direction_and_stream),
		TEST(test_what_failed_or_was_nested_did_no_work),
		TEST(test_percentiles_are_of_the_calls_that_ended),
		TEST(test_sync_is_the_share_of_threads_that_made_calls),
		TEST(test_a_wait_from_before_the_interval_counts_from_its_begin),
		TEST(test_a_wait_that_goes_on_counts_and_is_not_counted_twice),
		TEST(test_other_open_calls_are_no_waits),
		TEST(test_memory_and_its_peak_by_kind),
		TEST(test_a_reset_begins_anew_but_memory_stays),
		TEST(test_a_process_without_calls_has_no_row),
		TEST(test_an_ended_process_is_shown_and_then_gone),
		TEST(test_a_kept_process_is_not_folded),
		TEST(test_the_sum_is_of_all_and_details_of_what_is_kept),
		TEST(test_an_exec_ends_what_ran_before),
		TEST(test_an_end_that_was_not_reported_can_be_told),
		TEST(test_streams_beyond_the_limit_are_one_row),
		TEST(test_streams_are_one_row_for_all_threads_but_those_of_threads),
		TEST(test_a_thread_that_was_forgotten_comes_back),
		TEST(test_calls_without_returns_say_nothing_of_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
