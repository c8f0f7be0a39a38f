// SPDX-License-Identifier: MIT
/* Overlap of copies, of communication, low use, and the default stream. */
#include "finding_events.h"

#include "analysis/gpu_windows.h"
#include "analysis/gpu_work.h"

#define STREAM_A 0x55d010
#define STREAM_B 0x55d020

static const struct kernel *nccl(void)
{
	static const struct kernel *kernel;

	if (!kernel)
		kernel = new_kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgs)",
		                    true);
	return kernel;
}

static void copied(double begin_us, double duration_us)
{
	ran(copy_of(DIRECTION_H2D, ACTIVITY_MEMORY_PINNED, 4096), 0, begin_us, duration_us);
}

static void computed(double begin_us, double duration_us)
{
	ran(kernel_of(the_kernel()), 0, begin_us, duration_us);
}

static void communicated(double begin_us, double duration_us)
{
	ran(kernel_of(nccl()), 0, begin_us, duration_us);
}

static void test_copies_that_nothing_hides_could_be_hidden_at_best(void **state)
{
	const struct finding *finding;

	copied(0, 300);
	computed(300, 500);
	copied(800, 200);
	finding = found("copy_overlap");
	assert_non_null(finding);
	assert_int_equal(finding->count, 2);
	assert_int_equal(finding->lost_ns, 500000);
	assert_true(finding->of_device);
	assert_has(finding->evidence, "for 500.00 us, and during 0.0 % of that a kernel ran");
	assert_has(finding->evidence, "kernels alone ran for 500.00 us");
}

static void test_no_more_copies_can_be_hidden_than_kernels_run(void **state)
{
	copied(0, 900);
	computed(900, 100);
	assert_int_equal(found("copy_overlap")->lost_ns, 100000);
}

static void test_copies_below_kernels_are_hidden(void **state)
{
	copied(0, 300); /* a third of it */
	computed(200, 1000);
	assert_null(found("copy_overlap"));
}

static void test_copies_within_a_device_and_sets_are_not_to_be_hidden(void **state)
{
	struct activity set = { .kind = ACTIVITY_SET, .context = 1, .stream = 7, .bytes = 64 };
	struct activity copy = copy_of(DIRECTION_D2D, ACTIVITY_MEMORY_DEVICE, 4096);

	ran(set, 0, 0, 300);
	ran(copy, 0, 300, 300);
	computed(600, 500);
	assert_null(found("copy_overlap"));
}

static void test_communication_that_nothing_hides_is_told(void **state)
{
	const struct finding *finding;

	computed(0, 400);
	communicated(300, 400); /* a quarter is hidden */
	computed(700, 300);
	finding = found("communication");
	assert_non_null(finding);
	assert_int_equal(finding->count, 1);
	assert_int_equal(finding->lost_ns, 300000);
	assert_has(finding->evidence, "1 kernel of NCCL ran on GPU 0 for 400.00 us, and during "
	                              "25.0 % of that another kernel ran as well");
}

static void test_communication_below_computing_is_hidden(void **state)
{
	computed(0, 600);
	communicated(300, 500); /* three fifths of it */
	computed(900, 400);
	assert_null(found("communication"));
}

static void test_communication_beside_many_short_kernels_is_hidden_by_them(void **state)
{
	for (unsigned i = 0; i < 500; i++)
		computed(10.0 * i, 8);
	communicated(0, 5100); /* ends after them all */
	assert_null(found("communication"));
}

static void test_a_program_without_nccl_does_not_communicate(void **state)
{
	computed(0, 600);
	assert_null(found("communication"));
	assert_null(why_not_judged("communication"));
}

static void test_names_of_communication(void **state)
{
	assert_true(kernel_name_is_communication("ncclKernel_AllGather_RING_LL_Sum_int8_t"));
	assert_true(kernel_name_is_communication("ncclDevKernel_SendRecv(ncclDevKernelArgs)"));
	assert_true(kernel_name_is_communication("ncclSymDevKernel_AllReduce"));
	assert_true(kernel_name_is_communication("void ncclKernel<3>(int)"));
	assert_true(kernel_name_is_communication("_Z22ncclDevKernel_SendRecv"));
	assert_false(kernel_name_is_communication("void gemm<float>(nccl)"));
	assert_false(kernel_name_is_communication("vectorAdd(float*)"));
}

static void test_idle_time_of_windows_below_half_is_low_use(void **state)
{
	const struct finding *finding;

	computed(0, 960); /* windows are 128 us long: the first 15 are full, */
	computed(960, 960);
	for (unsigned i = 0; i < 14; i++)
		computed(1920 + 128 * i, 32); /* 14 are used for a quarter, */
	computed(3776, 64);                   /* and the last is half full */
	finding = found("low_use");
	assert_non_null(finding);
	assert_int_equal(finding->count, 14);
	assert_in_range(finding->lost_ns, 1340000, 1348000); /* 14 of 96 us */
}

/* The start of a program that is GPU-bound afterwards is no low use of the GPU. */
static void test_windows_in_which_nothing_ran_are_not_low_use(void **state)
{
	computed(0, 0.1);
	computed(1920, 960); /* windows are 128 us long: 14 are empty, but for their begin */
	computed(2880, 960);
	assert_null(found("low_use"));
}

static void test_a_gpu_that_hardly_does_anything_is_in_low_use(void **state)
{
	computed(0, 128); /* windows are 128 us long: the first and the last are full */
	computed(3840 - 128, 128);
	assert_int_equal(found("low_use")->count, 28);
	assert_has(found("low_use")->evidence, "next to nothing ran in 28 of them (3.58");
}

static void not_measured(double begin_us, double end_us)
{
	struct range range = { .kind = RANGE_NOT_MEASURED,
		               .begin_ns = US(begin_us),
		               .end_ns = US(end_us),
		               .name = "not measured" };

	feed(findings, &(struct event){ .type = EVENT_RANGE,
	                                .time_ns = range.end_ns,
	                                .process = the_process(),
	                                .range = &range });
}

/* Of 30 windows of 100 us 10 are empty, 10 are used for 10 to 19 %, and 10 for 40 to 49 %. */
static void test_the_example_of_low_use_is_what_it_is_like_most_of_the_time(void **state)
{
	const struct finding *finding;

	for (unsigned i = 0; i < 10; i++)
		computed(1000 + 100 * i, 10 + i);
	for (unsigned i = 0; i < 10; i++)
		computed(2000 + 100 * i, 40 + i);
	computed(4000 - 0.1, 0.1);
	finding = found("low_use");
	assert_non_null(finding);
	assert_int_equal(finding->count, 20);
	assert_in_range(finding->example.begin_ns, US(1999), US(2001));
	assert_has(finding->evidence, "next to nothing ran in 10 more, which do not count (99");
}

static void test_what_was_not_measured_is_not_taken_for_idle(void **state)
{
	computed(0, 1000);
	not_measured(1000, 29000);
	computed(29000, 1000);
	assert_null(found("low_use"));
}

/* 30 windows of 128 us: the first 15 are full, 14 were not measured, nor was half of the last. */
static void mostly_not_measured(double busy_us)
{
	computed(0, 1920);
	not_measured(1920, 3776);
	computed(3840 - busy_us, busy_us);
}

static void test_of_a_window_that_was_measured_in_part_that_part_is_judged(void **state)
{
	const struct finding *finding;

	mostly_not_measured(16);
	finding = found("low_use");
	assert_non_null(finding);
	assert_int_equal(finding->count, 1);
	assert_in_range(finding->lost_ns, 47000, 49000);
}

static void test_of_an_empty_window_the_part_that_was_measured_counts(void **state)
{
	computed(0, 1920);
	not_measured(1920, 3648); /* half of the last window but one */
	computed(3776, 16);       /* an eighth of the last */
	computed(3840 - 16, 16);
	assert_has(found("low_use")->evidence,
	           "next to nothing ran in 1 more, which do not count (64.");
}

static void test_half_of_a_part_that_was_measured_is_enough(void **state)
{
	mostly_not_measured(40);
	assert_null(found("low_use"));
}

static void test_a_gpu_that_is_busy_has_no_low_use(void **state)
{
	for (unsigned i = 0; i < 300; i++)
		computed(10.0 * i, 8);
	assert_null(found("low_use"));
}

static void test_what_runs_at_the_same_time_is_used_once(void **state)
{
	struct consumer *windows = gpu_windows_new();
	const struct gpu_windows_row *rows;
	size_t n;

	for (unsigned i = 0; i < 2; i++) {
		struct activity activity = kernel_of(the_kernel());
		struct event event;

		activity.begin_ns = US(0);
		activity.end_ns = US(1920);
		event = activity_event(the_process(), &activity);
		feed(windows, &event);
	}
	rows = gpu_windows_rows(windows, &n);
	assert_int_equal(n, 1);
	for (size_t i = 0; i < GPU_WINDOWS; i++) {
		assert_true(rows[0].sum[i] > 1.99 && rows[0].sum[i] < 2.01);
		assert_true(rows[0].used[i] > 0.99 && rows[0].used[i] <= 1);
	}
	consumer_free(windows);
}

/* ---- the default stream -------------------------------------------------------------------- */

static void create_stream(const char *function, uint64_t stream, uint64_t flags)
{
	struct call call = call_at(function, 0, 5);

	set_args_of_type(&call, T_STREAM, stream);
	set_args_of_type(&call, T_HEX, flags);
	see(call);
}

/* Each round: a kernel on stream A and one on the default stream, which is ready 60 us before the
 * other has ended. */
static void alternate(bool gpu_times)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		double at = round * ROUND_US;
		uint64_t first, second;

		first = see(on(launch_at("cuLaunchKernel", at, the_kernel()), STREAM_A));
		second = see(launch_at("cuLaunchKernel", at + 10, the_kernel()));
		if (!gpu_times)
			continue;
		ran(kernel_of(the_kernel()), first, at + 5, 70);
		ran(kernel_of(the_kernel()), second, at + 75, 20);
	}
}

static void test_work_that_stands_behind_a_stream_of_the_default_one_waits(void **state)
{
	const struct finding *finding;

	create_stream("cudaStreamCreate", STREAM_A, 0);
	alternate(true);
	finding = found("default_stream");
	assert_non_null(finding);
	assert_int_equal(finding->count, ROUNDS);
	assert_int_equal(finding->lost_ns, ROUNDS * 60000); /* from 15 us to 75 us */
	assert_has(finding->evidence, "changes between the legacy default stream and streams that");
}

static void test_without_gpu_times_the_changes_are_told_and_no_time(void **state)
{
	const struct finding *finding;

	create_stream("cudaStreamCreateWithFlags", STREAM_A, 0);
	alternate(false);
	finding = found("default_stream");
	assert_non_null(finding);
	assert_false(finding->lost_known);
	assert_true(finding->count > 20);
}

static void test_streams_that_do_not_block_do_not_wait(void **state)
{
	create_stream("cudaStreamCreateWithFlags", STREAM_A, 1);
	alternate(false);
	assert_null(found("default_stream"));
}

static void test_of_streams_whose_making_was_not_seen_nothing_is_said(void **state)
{
	alternate(true);
	assert_null(found("default_stream"));
}

static void share_default_stream(unsigned rounds, unsigned rounds_a_turn)
{
	for (unsigned round = 0; round < rounds; round++)
		see_in(1 + round / rounds_a_turn % 2,
		       launch_at("cuLaunchKernel", round * ROUND_US, the_kernel()));
}

static void test_threads_that_share_the_default_stream_are_told(void **state)
{
	share_default_stream(ROUNDS, 1);
	assert_has(found("default_stream")->evidence,
	           "changes of the thread that uses the legacy default stream");
}

static void test_threads_that_take_turns_seldom_are_not(void **state)
{
	share_default_stream(2000, 25);
	assert_null(found("default_stream"));
}

static void test_default_streams_of_two_gpus_are_two(void **state)
{
	struct call call = call_at("cudaSetDevice", 0, 1);

	see(call);
	set_arg(&call, "device", 1);
	see_in(2, call);
	share_default_stream(ROUNDS, 1);
	assert_null(found("default_stream"));
}

/* ---- all of them --------------------------------------------------------------------------- */

static void test_what_costs_most_comes_first_and_what_is_not_known_last(void **state)
{
	const struct finding *rows;
	size_t n;

	create_stream("cudaStreamCreateWithFlags", STREAM_A, 0);
	alternate(false);
	see(copy_at("cudaMemcpy", 30000, DIRECTION_H2D, 4096));
	for (unsigned round = 0; round < ROUNDS; round++)
		see(lasting(copy_at("cudaMemcpy", 30000 + 20 * round, DIRECTION_H2D, 4096), 10));
	rows = findings_rows(findings, &info, &n);
	assert_true(n >= 2);
	for (size_t i = 1; i < n; i++)
		assert_true(rows[i - 1].lost_ns >= rows[i].lost_ns);
	assert_string_equal(rows[0].rule, "sync_copies");
	assert_string_equal(rows[n - 1].rule, "default_stream");
	assert_false(rows[n - 1].lost_known);
}

static void test_an_empty_trace_has_no_findings(void **state)
{
	const struct finding *rows;
	size_t n;

	rows = findings_rows(findings, &info, &n);
	(void)rows;
	assert_int_equal(n, 0);
	assert_string_equal(why_not_judged("low_use"), "needs GPU times");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(test_copies_that_nothing_hides_could_be_hidden_at_best),
		TEST(test_no_more_copies_can_be_hidden_than_kernels_run),
		TEST(test_copies_below_kernels_are_hidden),
		TEST(test_copies_within_a_device_and_sets_are_not_to_be_hidden),
		TEST(test_communication_that_nothing_hides_is_told),
		TEST(test_communication_below_computing_is_hidden),
		TEST(test_communication_beside_many_short_kernels_is_hidden_by_them),
		TEST(test_a_program_without_nccl_does_not_communicate),
		TEST(test_names_of_communication),
		TEST(test_idle_time_of_windows_below_half_is_low_use),
		TEST(test_windows_in_which_nothing_ran_are_not_low_use),
		TEST(test_a_gpu_that_hardly_does_anything_is_in_low_use),
		TEST(test_the_example_of_low_use_is_what_it_is_like_most_of_the_time),
		TEST(test_what_was_not_measured_is_not_taken_for_idle),
		TEST(test_of_a_window_that_was_measured_in_part_that_part_is_judged),
		TEST(test_of_an_empty_window_the_part_that_was_measured_counts),
		TEST(test_half_of_a_part_that_was_measured_is_enough),
		TEST(test_a_gpu_that_is_busy_has_no_low_use),
		TEST(test_what_runs_at_the_same_time_is_used_once),
		TEST(test_work_that_stands_behind_a_stream_of_the_default_one_waits),
		TEST(test_without_gpu_times_the_changes_are_told_and_no_time),
		TEST(test_streams_that_do_not_block_do_not_wait),
		TEST(test_of_streams_whose_making_was_not_seen_nothing_is_said),
		TEST(test_threads_that_share_the_default_stream_are_told),
		TEST(test_threads_that_take_turns_seldom_are_not),
		TEST(test_default_streams_of_two_gpus_are_two),
		TEST(test_what_costs_most_comes_first_and_what_is_not_known_last),
		TEST(test_an_empty_trace_has_no_findings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
