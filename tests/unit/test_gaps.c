// SPDX-License-Identifier: MIT
/* Gaps whose cause is known, since the events around them were made for it. */
#include "support.h"

#include "analysis/work.h"
#include "report/gaps/gaps.h"

#define STREAM_A 0x55d0aa000010
#define STREAM_B 0x55d0aa000020

static struct consumer *gaps;
static uint64_t correlation;
static uint32_t tid;
static const struct process *process;

static void open_gaps(double threshold_us)
{
	gaps = gaps_new(&(struct gaps_options){ .threshold_ns = (uint64_t)(threshold_us * 1000),
	                                        .longest = 10 });
	correlation = 0;
	tid = 1;
	process = the_process();
}

static int set_up(void **state)
{
	open_gaps(20);
	return 0;
}

static int tear_down(void **state)
{
	consumer_free(gaps);
	return 0;
}

/* ---- events -------------------------------------------------------------------------------- */

static uint64_t see(struct call call)
{
	struct event event;

	call.correlation = ++correlation;
	event = call_event(process, tid, &call);
	feed(gaps, &event);
	return correlation;
}

/* From `at_us` on, `duration_us` long. */
static uint64_t ask(const char *function, uint64_t stream, double at_us, double duration_us)
{
	struct call call = call_at(function, at_us, duration_us);

	if (stream)
		set_stream(&call, stream);
	return see(call);
}

static void see_activity(struct activity activity, double begin_us, double end_us)
{
	struct event event;

	activity.begin_ns = US(begin_us);
	activity.end_ns = US(end_us);
	event = activity_event(process, &activity);
	feed(gaps, &event);
}

static void kernel_on(uint32_t stream, uint64_t asked_by, double begin_us, double end_us)
{
	see_activity((struct activity){ .kind = ACTIVITY_KERNEL,
	                                .context = 1,
	                                .stream = stream,
	                                .correlation = asked_by },
	             begin_us, end_us);
}

static void kernel(uint64_t asked_by, double begin_us, double end_us)
{
	kernel_on(7, asked_by, begin_us, end_us);
}

static void copy_on(uint32_t stream, uint64_t asked_by, double begin_us, double end_us)
{
	see_activity((struct activity){ .kind = ACTIVITY_COPY,
	                                .context = 1,
	                                .stream = stream,
	                                .direction = DIRECTION_H2D,
	                                .correlation = asked_by },
	             begin_us, end_us);
}

/* A launch of 5 us, and a kernel 5 us after it: no gap that ends with it has the host's. */
static void launch_and_run(double at_us, double duration_us)
{
	uint64_t asked = ask("cuLaunchKernel", 0, at_us, 5);

	kernel(asked, at_us + 10, at_us + 10 + duration_us);
}

static void not_measured(double begin_us, double end_us)
{
	struct range range = { .kind = RANGE_NOT_MEASURED,
		               .begin_ns = US(begin_us),
		               .end_ns = US(end_us),
		               .name = "between windows" };

	feed(gaps, &(struct event){ .type = EVENT_RANGE,
	                            .time_ns = range.end_ns,
	                            .process = process,
	                            .range = &range });
}

/* ---- what came out ------------------------------------------------------------------------- */

static const struct gap_line *the_gpu(void)
{
	const struct gap_line *const *rows;
	size_t n;

	gaps_finish(gaps);
	rows = gaps_devices(gaps, &n);
	assert_int_equal(n, 1);
	return rows[0];
}

/* There is one gap of the GPU that is long enough, with this cause. */
static const struct gpu_gap *the_gap(enum gap_cause cause, double begin_us, double end_us)
{
	const struct gap_line *gpu = the_gpu();
	const struct gpu_gap *longest;
	size_t n;

	longest = gaps_longest(gaps, &n);
	assert_int_equal(n, 1);
	assert_int_equal(longest->begin_ns, US(begin_us));
	assert_int_equal(longest->end_ns, US(end_us));
	assert_string_equal(gap_cause_name(longest->verdict.cause), gap_cause_name(cause));
	assert_int_equal(gpu->cause[cause].count, 1);
	assert_int_equal(gpu->cause[cause].ns, US(end_us) - US(begin_us));
	return longest;
}

static const struct gap_line *the_stream(uint32_t number)
{
	const struct gap_line *const *rows;
	size_t n;

	gaps_finish(gaps);
	rows = gaps_streams(gaps, &n);
	for (size_t i = 0; i < n; i++) {
		if (rows[i]->stream == number)
			return rows[i];
	}
	fail_msg("no stream %u", number);
	return NULL;
}

/* ---- the host had not asked ---------------------------------------------------------------- */

static void test_the_host_had_not_asked(void **state)
{
	const struct gap_verdict *verdict;

	launch_and_run(0, 90); /* until 100 */
	launch_and_run(500, 10);
	verdict = &the_gap(GAP_HOST, 100, 510)->verdict;
	assert_int_equal(verdict->host_ns, 400000);
	assert_int_equal(verdict->cuda_ns, 0);
	assert_null(verdict->longest);
	assert_int_equal(verdict->tid, 1);
}

static void test_the_longest_call_of_the_gap_is_named(void **state)
{
	const struct gap_verdict *verdict;

	launch_and_run(0, 90);
	ask("cudaGraphInstantiate", 0, 90, 40); /* 30 of them in the gap */
	ask("cudaMalloc", 0, 200, 20);
	ask("cudaSetDevice", 0, 250, 10);
	ask("cudaMalloc", 0, 300, 25);
	launch_and_run(500, 10);
	verdict = &the_gap(GAP_HOST, 100, 510)->verdict;
	assert_int_equal(verdict->cuda_ns, 85000);
	assert_string_equal(verdict->longest->name, "cudaMalloc");
	assert_int_equal(verdict->longest_ns, 45000);
}

static void test_calls_of_other_threads_are_not_what_the_host_did(void **state)
{
	launch_and_run(0, 90);
	tid = 2;
	ask("cudaMalloc", 0, 200, 200);
	tid = 1;
	launch_and_run(500, 10);
	assert_null(the_gap(GAP_HOST, 100, 510)->verdict.longest);
}

static void test_calls_within_calls_count_once(void **state)
{
	struct call inner = call_at("cuMemcpyHtoD_v2", 210, 80);

	inner.flags |= CALL_NESTED;
	launch_and_run(0, 90);
	see(inner);
	ask("cudaMemcpy", 0, 200, 100);
	launch_and_run(500, 10);
	assert_int_equal(the_gap(GAP_HOST, 100, 510)->verdict.cuda_ns, 100000);
}

static void test_activities_can_come_long_after_their_calls(void **state)
{
	uint64_t first = ask("cuLaunchKernel", 0, 0, 5), second;

	ask("cudaMalloc", 0, 200, 50);
	second = ask("cuLaunchKernel", 0, 500, 5);
	for (int i = 0; i < 200000; i++)
		ask("cudaSetDevice", 0, 1000 + i, 0.5);
	kernel(first, 10, 100);
	kernel(second, 510, 520);
	assert_string_equal(the_gap(GAP_HOST, 100, 510)->verdict.longest->name, "cudaMalloc");
}

static void test_calls_that_are_forgotten_later_were_looked_at(void **state)
{
	uint64_t asked;

	launch_and_run(0, 90);
	asked = correlation + 1;
	copy_on(7, asked, 500, 600); /* before its call is known */
	ask("cudaMemcpy", 0, 490, 120);
	for (int i = 0; i < 1200000; i++)
		ask("cudaSetDevice", 0, 1000 + i, 0.5);
	the_gap(GAP_HOST, 100, 500);
}

static void test_a_call_without_a_return_has_asked_when_it_began(void **state)
{
	struct call call = call_at("cuLaunchKernel", 500, 0);

	launch_and_run(0, 90);
	never_ends(&call, CALL_NO_RETURN);
	kernel(see(call), 510, 520);
	the_gap(GAP_HOST, 100, 510);
}

/* ---- it had waited ------------------------------------------------------------------------- */

static void test_a_host_that_waited_is_synchronisation(void **state)
{
	const struct gpu_gap *gap;

	launch_and_run(0, 90);
	ask("cudaDeviceSynchronize", 0, 20, 88); /* until 108 */
	launch_and_run(150, 10);
	gap = the_gap(GAP_SYNC, 100, 160);
	assert_string_equal(gap->verdict.by->name, "cudaDeviceSynchronize");
	assert_int_equal(gap->verdict.cuda_ns, 8000);
}

static void test_a_wait_that_found_nothing_to_wait_for_is_none(void **state)
{
	launch_and_run(0, 90);
	ask("cudaDeviceSynchronize", 0, 110, 30);
	launch_and_run(200, 10);
	assert_string_equal(the_gap(GAP_HOST, 100, 210)->verdict.longest->name,
	                    "cudaDeviceSynchronize");
}

static void test_what_a_launch_takes_after_a_wait_is_part_of_it(void **state)
{
	launch_and_run(0, 90);
	ask("cudaDeviceSynchronize", 0, 20, 88);
	kernel(ask("cuLaunchKernel", 0, 109, 5), 135, 140); /* asked after 9 us, runs after 35 */
	the_gap(GAP_SYNC, 100, 135);
}

static void test_a_wait_just_before_the_gap_is_why(void **state)
{
	launch_and_run(0, 90);
	ask("cudaEventSynchronize", 0, 20, 70); /* until 90, something else ran until 100 */
	launch_and_run(150, 10);
	the_gap(GAP_SYNC, 100, 160);
}

static void test_a_wait_long_before_the_gap_is_not(void **state)
{
	launch_and_run(0, 90);
	ask("cudaEventSynchronize", 0, 20, 50);
	launch_and_run(150, 10);
	the_gap(GAP_HOST, 100, 160);
}

static void test_a_host_that_was_away_for_long_after_its_wait_is_why_itself(void **state)
{
	const struct gpu_gap *gap;

	launch_and_run(0, 90);
	ask("cudaStreamSynchronize", 0, 20, 88); /* until 108 */
	launch_and_run(10200, 10);
	gap = the_gap(GAP_HOST, 100, 10210);
	assert_null(gap->verdict.by);
}

static void test_a_host_that_came_back_within_what_a_queue_holds_had_waited(void **state)
{
	launch_and_run(0, 90);
	ask("cudaStreamSynchronize", 0, 20, 88);
	launch_and_run(10000, 10);
	the_gap(GAP_SYNC, 100, 10010);
}

static void test_a_wait_that_took_most_of_a_long_gap_is_why(void **state)
{
	launch_and_run(0, 90);
	ask("cudaFree", 0, 20, 15080); /* until 15100 */
	launch_and_run(27000, 10);
	the_gap(GAP_SYNC, 100, 27010);
}

static void test_a_copy_long_ago_is_not_why(void **state)
{
	uint64_t asked = correlation + 1;

	copy_on(7, asked, 20, 100);
	ask("cudaMemcpy", 0, 10, 95);
	launch_and_run(10200, 10);
	the_gap(GAP_HOST, 100, 10210);
}

static void test_a_wait_for_something_else_that_takes_most_of_the_gap(void **state)
{
	launch_and_run(0, 90);
	ask("cudaStreamSynchronize", STREAM_B, 110, 300);
	launch_and_run(500, 10);
	assert_string_equal(the_gap(GAP_SYNC, 100, 510)->verdict.by->name, "cudaStreamSynchronize");
}

static void test_a_copy_that_takes_most_of_the_gap(void **state)
{
	launch_and_run(0, 90);
	ask("cudaMemcpy", 0, 110, 300);
	launch_and_run(500, 10);
	the_gap(GAP_COPY, 100, 510);
}

static void test_freeing_does_not_wait_when_there_is_nothing_to_wait_for(void **state)
{
	launch_and_run(0, 90);
	ask("cudaFree", 0, 110, 300);
	launch_and_run(500, 10);
	the_gap(GAP_HOST, 100, 510);
}

static void test_freeing_waits(void **state)
{
	launch_and_run(0, 90);
	ask("cudaFree", 0, 20, 100);
	launch_and_run(200, 10);
	assert_string_equal(the_gap(GAP_SYNC, 100, 210)->verdict.by->name, "cudaFree");
}

static void test_a_synchronous_copy_held_the_host(void **state)
{
	uint64_t asked = correlation + 1;

	copy_on(7, asked, 20, 100); /* ended before its call did */
	assert_int_equal(ask("cudaMemcpy", 0, 10, 95), asked);
	launch_and_run(150, 10);
	assert_string_equal(the_gap(GAP_COPY, 100, 160)->verdict.by->name, "cudaMemcpy");
}

static void test_an_asynchronous_copy_that_lasted_until_it_was_done_held_it_too(void **state)
{
	uint64_t asked = ask("cudaMemcpyAsync", 0, 10, 95);

	copy_on(7, asked, 20, 100);
	launch_and_run(150, 10);
	the_gap(GAP_COPY, 100, 160);
}

static void test_a_synchronous_copy_holds_the_host_when_other_work_ends_last(void **state)
{
	uint64_t first = ask("cuLaunchKernel", STREAM_A, 0, 5), asked = first + 1;

	copy_on(7, asked, 20, 60);
	kernel_on(13, first, 10, 100);
	ask("cudaMemcpy", 0, 10, 95);
	launch_and_run(150, 10);
	the_gap(GAP_COPY, 100, 160);
}

static void test_an_asynchronous_copy_of_other_work_did_not(void **state)
{
	launch_and_run(0, 90);
	ask("cudaMemcpyAsync", 0, 98, 5);
	launch_and_run(150, 10);
	the_gap(GAP_HOST, 100, 160);
}

/* ---- it had asked -------------------------------------------------------------------------- */

static void test_the_way_to_the_gpu_is_latency(void **state)
{
	uint64_t asked;

	launch_and_run(0, 90);
	asked = ask("cuLaunchKernel", 0, 99, 25); /* until 124 */
	kernel(asked, 130, 140);
	assert_string_equal(the_gap(GAP_LATENCY, 100, 130)->verdict.ask->name, "cuLaunchKernel");
}

static void test_a_slow_launch_that_began_in_the_gap_is_latency(void **state)
{
	uint64_t asked;

	launch_and_run(0, 90);
	asked = ask("cuLaunchKernel", 0, 110, 900); /* loads the kernel */
	kernel(asked, 1015, 1020);
	assert_int_equal(the_gap(GAP_LATENCY, 100, 1015)->verdict.asking_ns, 900000);
}

static void test_work_that_was_queued_and_came_late_is_not_known(void **state)
{
	uint64_t asked;

	ask("cuLaunchKernel", 0, 0, 5);
	asked = ask("cuLaunchKernel", 0, 6, 5);
	kernel(1, 10, 100);
	kernel(asked, 500, 510);
	the_gap(GAP_UNKNOWN, 100, 500);
	assert_int_equal(gaps_limits(gaps).no_call, 0);
}

static void test_short_gaps_of_queued_work_are_turnaround(void **state)
{
	const struct gap_line *gpu;

	for (int i = 0; i < 10; i++)
		ask("cuLaunchKernel", 0, 6 * i, 5);
	for (int i = 0; i < 10; i++)
		kernel((uint64_t)i + 1, 100 + 12 * i, 110 + 12 * i);
	gpu = the_gpu();
	assert_int_equal(gpu->cause[GAP_TURNAROUND].count, 0);
	assert_int_equal(gpu->cause[GAP_TURNAROUND].short_count, 9);
	assert_int_equal(gpu->cause[GAP_TURNAROUND].short_ns, 9 * 2000);
}

static void test_a_stream_that_waited_for_an_event(void **state)
{
	uint64_t first = ask("cuLaunchKernel", STREAM_A, 0, 5), second;

	ask("cudaStreamWaitEvent", STREAM_A, 10, 2);
	second = ask("cuLaunchKernel", STREAM_A, 15, 5);
	kernel_on(13, first, 20, 100);
	kernel_on(13, second, 300, 310);
	assert_string_equal(the_gap(GAP_WAITING, 100, 300)->verdict.by->name,
	                    "cudaStreamWaitEvent");
}

static void test_a_wait_of_another_stream_is_not_its(void **state)
{
	uint64_t first = ask("cuLaunchKernel", STREAM_A, 0, 5), second;

	ask("cudaStreamWaitEvent", STREAM_B, 10, 2);
	second = ask("cuLaunchKernel", STREAM_A, 15, 5);
	kernel_on(13, first, 20, 100);
	kernel_on(13, second, 300, 310);
	the_gap(GAP_UNKNOWN, 100, 300);
}

static void test_a_wait_before_other_work_is_over(void **state)
{
	uint64_t first, second;

	ask("cudaStreamWaitEvent", STREAM_A, 0, 2);
	first = ask("cuLaunchKernel", STREAM_A, 5, 5);
	second = ask("cuLaunchKernel", STREAM_A, 15, 5);
	kernel_on(13, first, 20, 100);
	kernel_on(13, second, 300, 310);
	the_gap(GAP_UNKNOWN, 100, 300);
}

static void test_a_host_function_makes_a_stream_wait(void **state)
{
	uint64_t first = ask("cuLaunchKernel", STREAM_A, 0, 5), second;

	ask("cudaLaunchHostFunc", STREAM_A, 10, 2);
	second = ask("cuLaunchKernel", STREAM_A, 15, 5);
	kernel_on(13, first, 20, 100);
	kernel_on(13, second, 300, 310);
	the_gap(GAP_WAITING, 100, 300);
}

static void test_nodes_of_a_graph_wait_for_each_other(void **state)
{
	uint64_t asked = ask("cudaGraphLaunch", STREAM_A, 0, 9);

	kernel_on(13, asked, 20, 100);
	kernel_on(13, asked, 150, 160);
	assert_true(the_gap(GAP_WAITING, 100, 150)->verdict.in_graph);
}

static void test_the_host_fills_a_buffer_before_a_copy(void **state)
{
	uint64_t asked;

	launch_and_run(0, 90);
	asked = correlation + 1;
	copy_on(7, asked, 600, 700);
	ask("cudaMemcpy", 0, 105, 600);
	the_gap(GAP_COPY, 100, 600);
}

static void test_any_call_can_have_asked(void **state)
{
	launch_and_run(0, 90);
	kernel(ask("cudaNotKnownToUs", 0, 500, 5), 510, 520);
	the_gap(GAP_HOST, 100, 510);
}

static void test_work_whose_call_was_not_seen_is_not_known(void **state)
{
	launch_and_run(0, 90);
	kernel(0, 500, 510);
	kernel(99, 510, 520);
	assert_false(the_gap(GAP_UNKNOWN, 100, 500)->verdict.asked);
	assert_int_equal(gaps_limits(gaps).no_call, 1);
}

/* ---- streams ------------------------------------------------------------------------------- */

/* Stream 13 runs until 100; its next, asked for early, comes when another stream is done at 300. */
static const struct gap_line *stream_that_waits(bool for_copy, bool event, uint32_t other)
{
	uint64_t first = ask("cuLaunchKernel", STREAM_A, 0, 5), second, third;

	second = ask(for_copy ? "cudaMemcpyAsync" : "cuLaunchKernel", STREAM_B, 5, 4);
	if (event)
		ask("cudaStreamWaitEvent", STREAM_A, 10, 2);
	third = ask("cuLaunchKernel", STREAM_A, 15, 5);
	kernel_on(13, first, 20, 100);
	if (for_copy)
		copy_on(other, second, 90, 300);
	else
		kernel_on(other, second, 90, 300);
	kernel_on(13, third, 302, 310);
	return the_stream(13);
}

static void test_a_stream_can_be_idle_while_the_gpu_is_not(void **state)
{
	const struct gap_line *stream = stream_that_waits(false, true, 14);

	assert_int_equal(stream->cause[GAP_WAITING].ns, 202000);
	assert_int_equal(stream->idle_ns, 202000);
	assert_int_equal(the_gpu()->idle_ns, 2000);
	assert_true(stream->knows_handle);
	assert_int_equal(stream->handle, STREAM_A);
}

static void test_a_stream_that_waits_for_a_copy(void **state)
{
	assert_int_equal(stream_that_waits(true, true, 14)->cause[GAP_COPY].count, 1);
}

static void test_the_default_stream_goes_in_order_with_others(void **state)
{
	assert_int_equal(stream_that_waits(false, false, 7)->cause[GAP_WAITING].count, 1);
}

static void create_stream(uint64_t handle, uint64_t flags)
{
	struct call call = call_at("cudaStreamCreateWithFlags", 0, 1);

	set_args_of_type(&call, T_STREAM, handle);
	set_args_of_type(&call, T_HEX, flags);
	see(call);
}

static void test_a_non_blocking_stream_does_not_wait_for_the_default_stream(void **state)
{
	create_stream(STREAM_A, 1);
	assert_int_equal(stream_that_waits(false, false, 7)->cause[GAP_OTHER_WORK].count, 1);
}

static void test_the_default_stream_does_not_wait_for_a_non_blocking_stream(void **state)
{
	uint64_t first, second, third;

	create_stream(STREAM_B, 1);
	first = ask("cuLaunchKernel", 0, 0, 5);
	second = ask("cuLaunchKernel", STREAM_B, 5, 4);
	third = ask("cuLaunchKernel", 0, 15, 5);
	kernel_on(7, first, 20, 100);
	kernel_on(14, second, 90, 300);
	kernel_on(7, third, 302, 310);
	assert_int_equal(the_stream(7)->cause[GAP_OTHER_WORK].count, 1);
}

static void test_the_handle_of_a_non_blocking_stream_can_be_given_out_again(void **state)
{
	struct call destroy = call_at("cudaStreamDestroy", 0, 1);

	create_stream(STREAM_A, 1);
	set_args_of_type(&destroy, T_STREAM, STREAM_A);
	see(destroy);
	assert_int_equal(stream_that_waits(false, false, 7)->cause[GAP_WAITING].count, 1);
}

static void test_a_stream_with_the_handle_of_a_non_blocking_one_waits(void **state)
{
	create_stream(STREAM_A, 1);
	create_stream(STREAM_A, 0);
	assert_int_equal(stream_that_waits(false, false, 7)->cause[GAP_WAITING].count, 1);
}

static void test_a_stream_without_a_reason_to_wait(void **state)
{
	assert_int_equal(stream_that_waits(false, false, 14)->cause[GAP_OTHER_WORK].count, 1);
}

static void test_the_handle_of_a_stream_is_that_of_its_calls(void **state)
{
	uint64_t launch = ask("cuLaunchKernel", STREAM_A, 0, 5);
	uint64_t graph = ask("cudaGraphLaunch", STREAM_B, 10, 5);

	kernel_on(13, launch, 20, 100);
	kernel_on(14, graph, 20, 100);
	kernel_on(7, ask("cuLaunchKernel", 0, 200, 5), 210, 220);
	assert_true(the_stream(13)->knows_handle);
	assert_int_equal(the_stream(13)->handle, STREAM_A);
	assert_false(the_stream(14)->knows_handle);
	assert_true(the_stream(7)->knows_handle);
	assert_int_equal(the_stream(7)->handle, 0);
}

static void test_the_categories_of_hta(void **state)
{
	const struct gap_line *stream;

	for (int i = 0; i < 3; i++)
		ask("cuLaunchKernel", 0, 6 * i, 5);
	kernel(1, 100, 200);
	kernel(2, 210, 300); /* queued, 10 us later */
	kernel(3, 350, 400); /* queued, 50 us later */
	launch_and_run(500, 10);
	kernel(0, 525, 530); /* its call was not seen */
	stream = the_stream(7);
	assert_int_equal(stream->hta_ns[GAP_HTA_KERNEL_WAIT], 10000 + 5000);
	assert_int_equal(stream->hta_ns[GAP_HTA_OTHER], 50000);
	assert_int_equal(stream->hta_ns[GAP_HTA_HOST_WAIT], 110000);
}

/* ---- what counts --------------------------------------------------------------------------- */

static void test_overlapping_kernels_count_once(void **state)
{
	uint64_t a = ask("cuLaunchKernel", STREAM_A, 0, 5),
		 b = ask("cuLaunchKernel", STREAM_B, 6, 5);

	kernel_on(14, b, 50, 150);
	kernel_on(13, a, 20, 160);
	assert_int_equal(the_gpu()->busy_ns, 140000);
	assert_int_equal(the_gpu()->idle_ns, 0);
	assert_int_equal(the_stream(14)->busy_ns, 100000);
}

static void test_a_graph_launch_as_a_whole_covers_its_nodes(void **state)
{
	uint64_t asked = ask("cudaGraphLaunch", STREAM_A, 0, 9);

	kernel_on(13, asked, 20, 30);
	kernel_on(13, asked, 80, 90);
	see_activity((struct activity){ .kind = ACTIVITY_GRAPH_RUN,
	                                .context = 1,
	                                .stream = 13,
	                                .correlation = asked },
	             20, 95);
	assert_int_equal(the_gpu()->busy_ns, 75000);
	assert_int_equal(the_gpu()->idle_ns, 0);
}

static void test_a_gpu_is_busy_with_what_any_process_runs(void **state)
{
	const struct gap_line *const *rows;
	const struct process *other = new_process(99, "other");
	size_t n;

	launch_and_run(0, 100); /* 10 to 110 */
	process = other;
	launch_and_run(50, 100); /* 60 to 160 */
	assert_int_equal(the_gpu()->busy_ns, 150000);
	assert_int_equal(the_gpu()->idle_ns, 0);
	rows = gaps_processes(gaps, &n);
	assert_int_equal(n, 2);
	assert_int_equal(rows[0]->busy_ns, 100000);
	assert_ptr_equal(rows[1]->process, other);
}

static void test_calls_of_processes_are_told_apart(void **state)
{
	const struct process *other = new_process(98, "other");

	launch_and_run(0, 10);
	launch_and_run(5, 85); /* its call 2 */
	process = other;
	kernel(2, 510, 520);
	assert_false(the_gap(GAP_UNKNOWN, 100, 510)->verdict.asked);
}

static void test_gpus_have_their_own_gaps(void **state)
{
	const struct gap_line *const *rows;
	size_t n;

	launch_and_run(0, 90);
	see_activity((struct activity){ .kind = ACTIVITY_KERNEL, .device = 3, .stream = 7 }, 100,
	             200);
	launch_and_run(200, 10);
	gaps_finish(gaps);
	rows = gaps_devices(gaps, &n);
	assert_int_equal(n, 2);
	assert_int_equal(rows[0]->idle_ns, 110000);
	assert_int_equal(rows[1]->device, 3);
	assert_int_equal(rows[1]->idle_ns, 0);
}

static void test_time_between_windows_is_not_idle(void **state)
{
	const struct gap_line *gpu;
	size_t n;

	launch_and_run(0, 90);
	not_measured(120, 1000);
	launch_and_run(1100, 50);
	launch_and_run(1200, 50);
	gpu = the_gpu();
	assert_int_equal(gpu->not_measured_ns, 1010000);
	assert_int_equal(gpu->idle_ns, 50000);
	assert_int_equal(gap_line_span_ns(gpu), 90000 + 50000 + 50000 + 50000);
	gaps_longest(gaps, &n);
	assert_int_equal(n, 1);
}

static void test_any_number_of_windows(void **state)
{
	for (int i = 0; i < 5000; i++) {
		launch_and_run(1000 * (double)i, 90);
		not_measured(1000 * (double)i + 200, 1000 * (double)i + 900);
	}
	launch_and_run(5000000, 90);
	assert_int_equal(the_gpu()->idle_ns, 0);
	assert_int_equal(the_gpu()->busy_ns, 5001 * 90000ull);
	assert_int_equal(the_gpu()->not_measured_ns, 5000 * 910000ull);
}

static void test_windows_of_others_do_not_matter(void **state)
{
	launch_and_run(0, 90);
	process = new_process(97, "elsewhere");
	not_measured(120, 400);
	process = the_process();
	launch_and_run(500, 10);
	the_gap(GAP_HOST, 100, 510);
}

static void test_gaps_below_the_threshold_are_summed_up(void **state)
{
	size_t n;

	launch_and_run(0, 20);  /* until 30 */
	launch_and_run(32, 20); /* from 42 */
	gaps_finish(gaps);
	gaps_longest(gaps, &n);
	assert_int_equal(n, 0);
	assert_int_equal(the_gpu()->idle_ns, 12000);
}

static void test_the_ten_longest_are_in_order(void **state)
{
	const struct gpu_gap *longest;
	size_t n;

	for (int i = 0; i < 20; i++)
		launch_and_run(1000 * i, 100 + 10 * (i * 7 % 20));
	gaps_finish(gaps);
	longest = gaps_longest(gaps, &n);
	assert_int_equal(n, 10);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(longest[i].end_ns - longest[i].begin_ns, 900000 - 10000 * i);
}

static void test_a_single_activity_has_no_gaps(void **state)
{
	launch_and_run(0, 90);
	assert_int_equal(the_gpu()->busy_ns, 90000);
	assert_int_equal(the_gpu()->idle_ns, 0);
}

static void test_nothing_is_nothing(void **state)
{
	size_t n;

	ask("cuLaunchKernel", 0, 0, 5);
	gaps_finish(gaps);
	gaps_devices(gaps, &n);
	assert_int_equal(n, 0);
}

static void test_an_activity_of_no_length_and_one_that_ends_before_it_begins(void **state)
{
	launch_and_run(0, 90);
	kernel(ask("cuLaunchKernel", 0, 102, 5), 115, 115);
	kernel(ask("cuLaunchKernel", 0, 116, 5), 125, 119);
	assert_int_equal(the_gpu()->busy_ns, 90000);
	assert_int_equal(the_gpu()->idle_ns, 25000);
}

static void test_order_that_is_damaged_is_survived(void **state)
{
	launch_and_run(1000, 50);
	launch_and_run(0, 50);
	launch_and_run(500, 50);
	assert_int_equal(the_gpu()->busy_ns, 150000);
	assert_int_equal(the_gpu()->idle_ns, 900000);
}

static void test_streams_beyond_those_told_apart_count_for_the_gpu(void **state)
{
	const struct gap_line *gpu;
	size_t n;

	for (uint32_t i = 0; i < GAPS_STREAMS + 50; i++)
		kernel_on(i, 0, 10 * i, 10 * i + 10);
	gpu = the_gpu();
	gaps_streams(gaps, &n);
	assert_int_equal(n, GAPS_STREAMS);
	assert_int_equal(gaps_limits(gaps).left_out, 50);
	assert_int_equal(gpu->busy_ns, (GAPS_STREAMS + 50) * 10000);
	assert_int_equal(gpu->idle_ns, 0);
}

static void test_a_long_run_keeps_its_sums(void **state)
{
	const struct gap_line *gpu;

	for (int i = 0; i < 100000; i++)
		launch_and_run(100 * (double)i, 40);
	gpu = the_gpu();
	assert_int_equal(gpu->busy_ns, 100000 * 40000ull);
	assert_int_equal(gpu->idle_ns, 99999 * 60000ull);
	assert_int_equal(gpu->cause[GAP_HOST].count, 99999);
	assert_int_equal(gaps_limits(gaps).late, 0);
}

/* ---- damage -------------------------------------------------------------------------------- */

static uint64_t random_state = 88172645463325252ull;

static uint64_t random_below(uint64_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % n;
}

static uint64_t random_time(uint64_t around)
{
	static const uint64_t edges[] = { 0, 1, UINT64_MAX - 1, UINT64_MAX };

	return random_below(50) ? US(around) + random_below(300000) : edges[random_below(4)];
}

static struct call random_call(uint64_t at)
{
	static const char *const names[] = { "cuLaunchKernel",  "cudaMemcpy",
		                             "cudaMemcpyAsync", "cudaStreamWaitEvent",
		                             "cudaGraphLaunch", "cudaDeviceSynchronize",
		                             "cudaFree",        "cudaMemset" };
	struct call call = call_at(names[random_below(8)], 0, 0);

	call.begin_ns = random_time(at);
	call.end_ns = random_time(at + 20);
	call.flags = random_below(8) ? 0 : (uint32_t)random_below(32);
	call.correlation = random_below(100) ? correlation++ : random_below(UINT64_MAX);
	if (random_below(2))
		set_stream(&call, random_below(4));
	return call;
}

static struct activity random_activity(uint64_t at)
{
	return (struct activity){
		.kind = (enum activity_kind)random_below(ACTIVITY_COUNT),
		.begin_ns = random_time(at),
		.end_ns = random_time(at + 50),
		.correlation = correlation - random_below(200),
		.device = (uint32_t)random_below(random_below(100) ? 3 : UINT32_MAX),
		.context = (uint32_t)random_below(2),
		.stream = (uint32_t)random_below(random_below(10) ? 10 : 3000),
	};
}

static void test_whatever_comes_is_survived(void **state)
{
	const struct process *processes[] = { the_process(), new_process(96, "a"),
		                              new_process(95, "b") };

	for (uint64_t i = 0; i < 300000; i++) {
		process = processes[random_below(3)];
		tid = (uint32_t)random_below(5);
		if (random_below(3)) {
			struct call call = random_call(i);
			struct event event = call_event(process, tid, &call);

			feed(gaps, &event);
		} else if (random_below(1000)) {
			struct activity activity = random_activity(i);
			struct event event = activity_event(process, &activity);

			feed(gaps, &event);
		} else {
			not_measured((double)i, (double)(i + random_below(1000)));
		}
	}
	gaps_finish(gaps);
}

/* ---- the calls ----------------------------------------------------------------------------- */

static void test_the_last_million_of_calls_is_kept(void **state)
{
	struct work *work = work_new(1 << 20);
	struct gap_calls *calls = gap_calls_new(work);
	struct call call = call_at("cuLaunchKernel", 0, 5);
	struct event event = call_event(the_process(), 1, &call);
	const struct gap_call_kept *last;
	uint64_t n = GAP_CALLS_KEPT + 5000;

	for (uint64_t i = 1; i <= n; i++) {
		call.correlation = i;
		work_event(work, &event);
		gap_calls_event(calls, &event);
	}
	assert_null(gap_calls_find(calls, 5000));
	assert_int_equal(gap_calls_find(calls, 5001)->number, 5001);
	last = gap_calls_find(calls, n);
	for (uint64_t i = n; i > 5001; i--) {
		assert_int_equal(last->number, i);
		last = gap_calls_before(calls, last);
	}
	assert_null(gap_calls_before(calls, last));
	gap_calls_free(calls);
	work_free(work);
}

/* ---- gaps that are apart ------------------------------------------------------------------- */

#define MS(ms) ((ms)*1000.0)

/* Kernels of 90 us with gaps of 110 us between; until when. */
static double steps(double at_us, int n)
{
	for (int i = 0; i < n; i++, at_us += 200)
		launch_and_run(at_us, 90);
	return at_us;
}

static void test_a_single_giant_gap_is_apart(void **state)
{
	const struct gap_line *gpu;

	steps(steps(0, 1) + MS(50), 101);
	gpu = the_gpu();
	assert_int_equal(gpu->n_apart, 1);
	assert_int_equal(gpu->apart_ns, 50110000);
	assert_int_equal(gpu->apart[0].begin_ns, US(100));
	assert_int_equal(gpu->cause[GAP_HOST].count, 101);
	assert_int_equal(gpu->steady[GAP_HOST].count, 100);
	assert_int_equal(gpu->steady[GAP_HOST].ns, gpu->cause[GAP_HOST].ns - 50110000);
	assert_int_equal(gpu->steady[GAP_HOST].host_ns, gpu->cause[GAP_HOST].host_ns - 50100000);
}

static void test_calls_in_gaps_that_are_apart_are_not_of_the_steady_state(void **state)
{
	const struct gap_line *gpu;
	double at_us = steps(0, 1);

	ask("cuModuleLoadData", 0, at_us, MS(20));
	at_us += MS(50);
	for (int i = 0; i < 101; i++) {
		at_us = steps(at_us, 1);
		ask("cudaMalloc", 0, at_us - 90, 30);
	}
	gpu = the_gpu();
	assert_string_equal(gpu->cause[GAP_HOST].most->name, "cuModuleLoadData");
	assert_string_equal(gpu->steady[GAP_HOST].most->name, "cudaMalloc");
	assert_int_equal(gpu->steady[GAP_HOST].most_ns, 100 * 30000);
}

static void test_nothing_is_apart_with_few_other_gaps(void **state)
{
	const struct gap_line *gpu;

	steps(steps(0, 1) + MS(50), 100); /* 99 others */
	gpu = the_gpu();
	assert_int_equal(gpu->n_apart, 0);
	assert_int_equal(gpu->steady[GAP_HOST].ns, gpu->cause[GAP_HOST].ns);
}

static size_t apart_of(int pauses, double pause_us, int steps_between)
{
	double at_us = steps(0, steps_between);

	for (int i = 0; i < pauses; i++)
		at_us = steps(at_us + pause_us, steps_between);
	return the_gpu()->n_apart;
}

static void test_what_happens_often_is_not_apart(void **state)
{
	assert_int_equal(apart_of(9, MS(100), 50), 0);
}

static void test_a_few_can_be_apart(void **state)
{
	assert_int_equal(apart_of(8, MS(100), 50), 8);
}

static void test_gaps_of_a_step_are_not_apart(void **state)
{
	assert_int_equal(apart_of(1, MS(9.5), 60), 0);
}

static void test_a_small_part_of_the_time_is_not_apart(void **state)
{
	assert_int_equal(apart_of(1, MS(15), 1000), 0);
}

static void test_more_than_a_second_is_apart_whatever_the_share(void **state)
{
	assert_int_equal(apart_of(1, MS(1001), 60000), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_the_host_had_not_asked),
		TEST(test_the_longest_call_of_the_gap_is_named),
		TEST(test_calls_of_other_threads_are_not_what_the_host_did),
		TEST(test_calls_within_calls_count_once),
		TEST(test_activities_can_come_long_after_their_calls),
		TEST(test_calls_that_are_forgotten_later_were_looked_at),
		TEST(test_a_call_without_a_return_has_asked_when_it_began),
		TEST(test_a_host_that_waited_is_synchronisation),
		TEST(test_a_wait_that_found_nothing_to_wait_for_is_none),
		TEST(test_what_a_launch_takes_after_a_wait_is_part_of_it),
		TEST(test_a_wait_just_before_the_gap_is_why),
		TEST(test_a_wait_long_before_the_gap_is_not),
		TEST(test_a_host_that_was_away_for_long_after_its_wait_is_why_itself),
		TEST(test_a_host_that_came_back_within_what_a_queue_holds_had_waited),
		TEST(test_a_wait_that_took_most_of_a_long_gap_is_why),
		TEST(test_a_copy_long_ago_is_not_why),
		TEST(test_a_wait_for_something_else_that_takes_most_of_the_gap),
		TEST(test_a_copy_that_takes_most_of_the_gap),
		TEST(test_freeing_does_not_wait_when_there_is_nothing_to_wait_for),
		TEST(test_freeing_waits),
		TEST(test_a_synchronous_copy_held_the_host),
		TEST(test_an_asynchronous_copy_that_lasted_until_it_was_done_held_it_too),
		TEST(test_a_synchronous_copy_holds_the_host_when_other_work_ends_last),
		TEST(test_an_asynchronous_copy_of_other_work_did_not),
		TEST(test_the_way_to_the_gpu_is_latency),
		TEST(test_a_slow_launch_that_began_in_the_gap_is_latency),
		TEST(test_work_that_was_queued_and_came_late_is_not_known),
		TEST(test_short_gaps_of_queued_work_are_turnaround),
		TEST(test_a_stream_that_waited_for_an_event),
		TEST(test_a_wait_of_another_stream_is_not_its),
		TEST(test_a_wait_before_other_work_is_over),
		TEST(test_a_host_function_makes_a_stream_wait),
		TEST(test_nodes_of_a_graph_wait_for_each_other),
		TEST(test_the_host_fills_a_buffer_before_a_copy),
		TEST(test_any_call_can_have_asked),
		TEST(test_work_whose_call_was_not_seen_is_not_known),
		TEST(test_a_stream_can_be_idle_while_the_gpu_is_not),
		TEST(test_a_stream_that_waits_for_a_copy),
		TEST(test_the_default_stream_goes_in_order_with_others),
		TEST(test_a_stream_without_a_reason_to_wait),
		TEST(test_a_non_blocking_stream_does_not_wait_for_the_default_stream),
		TEST(test_the_default_stream_does_not_wait_for_a_non_blocking_stream),
		TEST(test_the_handle_of_a_non_blocking_stream_can_be_given_out_again),
		TEST(test_a_stream_with_the_handle_of_a_non_blocking_one_waits),
		TEST(test_the_handle_of_a_stream_is_that_of_its_calls),
		TEST(test_the_categories_of_hta),
		TEST(test_overlapping_kernels_count_once),
		TEST(test_a_graph_launch_as_a_whole_covers_its_nodes),
		TEST(test_a_gpu_is_busy_with_what_any_process_runs),
		TEST(test_calls_of_processes_are_told_apart),
		TEST(test_gpus_have_their_own_gaps),
		TEST(test_time_between_windows_is_not_idle),
		TEST(test_any_number_of_windows),
		TEST(test_windows_of_others_do_not_matter),
		TEST(test_gaps_below_the_threshold_are_summed_up),
		TEST(test_the_ten_longest_are_in_order),
		TEST(test_a_single_activity_has_no_gaps),
		TEST(test_nothing_is_nothing),
		TEST(test_an_activity_of_no_length_and_one_that_ends_before_it_begins),
		TEST(test_order_that_is_damaged_is_survived),
		TEST(test_streams_beyond_those_told_apart_count_for_the_gpu),
		TEST(test_a_long_run_keeps_its_sums),
		TEST(test_whatever_comes_is_survived),
		TEST(test_the_last_million_of_calls_is_kept),
		TEST(test_a_single_giant_gap_is_apart),
		TEST(test_calls_in_gaps_that_are_apart_are_not_of_the_steady_state),
		TEST(test_nothing_is_apart_with_few_other_gaps),
		TEST(test_what_happens_often_is_not_apart),
		TEST(test_a_few_can_be_apart),
		TEST(test_gaps_of_a_step_are_not_apart),
		TEST(test_a_small_part_of_the_time_is_not_apart),
		TEST(test_more_than_a_second_is_apart_whatever_the_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
