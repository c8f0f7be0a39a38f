// SPDX-License-Identifier: MIT
/* Reports of what ran on the GPU, from events made by hand: nsys' expert rules,
 * copies, launches. */
#include "support.h"

#include "analysis/work.h"
#include "base/array.h"
#include "report/report.h"
#include "table/table.h"

static struct run run;
static struct table *table;
static char told[512];
static uint64_t correlation;
static struct work *window; /* NULL: each report has its own */

static void note(void *data, const char *name, const char *text)
{
	snprintf(told + strlen(told), sizeof(told) - strlen(told), "%s\n", text);
}

static void begin_report_with(const char *word, size_t top)
{
	struct table_options options = { .form = TABLE_FORM_CSV, .note = note, .top = top };
	struct report_options report_options = { .work = window };
	struct report_choice choice;
	struct err err = { 0 };

	told[0] = '\0';
	correlation = 0;
	assert_int_equal(report_choose(word, &choice, &err), 0);
	open_run(&run);
	options.out = run.out;
	table = table_open(&options, choice.report->parts);
	report_options.table = table;
	report_options.names = choice.names;
	begin_run(&run, report_new(choice.report, &report_options));
}

static void begin_report(const char *word)
{
	begin_report_with(word, 0);
}

/* Compares the rows without the headings; `told` has the notes. */
static void assert_rows(const char *expected)
{
	end_run(&run);
	assert_int_equal(table_finish(table, NULL), 0);
	table_close(table);
	fflush(run.out);
	assert_string_equal(strchr(run.text, '\n') + 1, expected);
	close_run(&run);
}

static uint64_t push_numbered(struct call call)
{
	call.correlation = ++correlation;
	push_call(&run, call);
	return correlation;
}

static void push_ran(struct activity activity, uint64_t of, double begin_us, double duration_us)
{
	struct event event;

	activity.correlation = of;
	activity.begin_ns = US(begin_us);
	activity.end_ns = US(begin_us + duration_us);
	activity.context = 1;
	activity.stream = 7;
	event = activity_event(the_process(), &activity);
	push(&run, &event);
}

static struct activity copy_between(enum activity_memory source, enum activity_memory destination)
{
	return (struct activity){ .kind = ACTIVITY_COPY,
		                  .bytes = 4096,
		                  .direction = DIRECTION_H2D,
		                  .source = source,
		                  .destination = destination };
}

/* ---- copies, sets, synchronisation --------------------------------------------------------- */

/* One call and its activity of each kind. */
static void push_copies(void)
{
	static const char *const functions[] = { "cudaMemcpyAsync", "cudaMemcpy",
		                                 "cudaMemcpy2DAsync", "cuMemcpyHtoDAsync_v2" };
	static const enum activity_memory sources[] = { ACTIVITY_MEMORY_PAGEABLE,
		                                        ACTIVITY_MEMORY_PINNED };

	for (unsigned i = 0; i < 8; i++)
		push_ran(copy_between(sources[i & 1], ACTIVITY_MEMORY_DEVICE),
		         push_numbered(copy_at(functions[i / 2], 100 * i, DIRECTION_H2D, 4096)),
		         100 * i + 10, 20 + i);
}

static void test_memcpy_async_is_of_pageable_memory(void **state)
{
	begin_report("cuda_memcpy_async");
	push_copies();
	assert_rows("26000,610000,Pageable,Device,0.004,4242,0,1,,7,cuMemcpyHtoDAsync_v2\n"
	            "24000,410000,Pageable,Device,0.004,4242,0,1,,7,cudaMemcpy2DAsync\n"
	            "20000,10000,Pageable,Device,0.004,4242,0,1,,7,cudaMemcpyAsync\n");
}

static void test_memcpy_async_takes_pageable_memory_at_either_end(void **state)
{
	begin_report("cuda_memcpy_async");
	push_ran(copy_between(ACTIVITY_MEMORY_DEVICE, ACTIVITY_MEMORY_PAGEABLE),
	         push_numbered(copy_at("cudaMemcpyAsync", 0, DIRECTION_D2H, 4096)), 10, 20);
	assert_rows("20000,10000,Device,Pageable,0.004,4242,0,1,,7,cudaMemcpyAsync\n");
}

static void test_memcpy_sync_is_of_any_memory(void **state)
{
	begin_report("cuda_memcpy_sync");
	push_copies();
	assert_rows("23000,310000,Pinned,Device,0.004,4242,0,1,,7,cudaMemcpy\n"
	            "22000,210000,Pageable,Device,0.004,4242,0,1,,7,cudaMemcpy\n");
}

static void test_memset_sync_is_of_pinned_and_managed_memory(void **state)
{
	static const enum activity_memory memories[] = {
		ACTIVITY_MEMORY_PAGEABLE, ACTIVITY_MEMORY_PINNED, ACTIVITY_MEMORY_DEVICE,
		ACTIVITY_MEMORY_ARRAY, ACTIVITY_MEMORY_MANAGED
	};
	struct activity set = { .kind = ACTIVITY_SET, .bytes = 64 };

	begin_report("cuda_memset_sync");
	for (unsigned i = 0; i < 5; i++) {
		set.destination = memories[i];
		push_ran(set, push_numbered(call_at("cudaMemset", 100 * i, 50)), 100 * i, 20);
		push_ran(set, push_numbered(call_at("cudaMemsetAsync", 100 * i + 60, 5)),
		         100 * i + 70, 20);
	}
	assert_rows("20000,100000,Pinned,0.000,4242,0,1,,7,cudaMemset\n"
	            "20000,400000,Managed,0.000,4242,0,1,,7,cudaMemset\n");
}

static void test_the_fifty_longest_are_told_and_the_rest_counted(void **state)
{
	begin_report_with("cuda_memcpy_sync", 0);
	for (unsigned i = 0; i < 60; i++)
		push_ran(copy_between(ACTIVITY_MEMORY_PINNED, ACTIVITY_MEMORY_DEVICE),
		         push_numbered(copy_at("cudaMemcpy", 100 * i, DIRECTION_H2D, 4096)),
		         100 * i, 10 + i);
	end_run(&run);
	assert_has(run.text, "69000,");
	assert_has(run.text, "20000,");
	assert_has_not(run.text, "19000,");
	assert_string_equal(told, "shorter ones, left out: 10\n");
	table_finish(table, NULL);
	table_close(table);
	close_run(&run);
}

static void test_api_sync_is_of_devices_and_streams(void **state)
{
	struct call nested = call_at("cuStreamSynchronize", 30, 5);

	nested.flags |= CALL_NESTED;
	begin_report("cuda_api_sync");
	push_call(&run, call_at("cudaDeviceSynchronize", 0, 10));
	push_call(&run, nested);
	push_call(&run, call_at("cudaStreamSynchronize", 20, 20));
	push_call(&run, call_at("cudaEventSynchronize", 50, 30));
	assert_rows("20000,20000,4242,4243,cudaStreamSynchronize\n"
	            "10000,0,4242,4243,cudaDeviceSynchronize\n");
}

/* ---- gaps and use -------------------------------------------------------------------------- */

static void push_kernel(double begin_us, double duration_us)
{
	push_ran((struct activity){ .kind = ACTIVITY_KERNEL }, 0, begin_us, duration_us);
}

static void test_gpu_gaps_are_longer_than_half_a_second(void **state)
{
	begin_report("gpu_gaps");
	push_kernel(0, 100);
	push_kernel(500100, 100);  /* 500 ms are not more */
	push_kernel(1000201, 100); /* 500.001 ms are */
	assert_rows("1,500001000,500200000,4242,0,1\n");
}

static void test_what_ends_later_can_fill_a_gap(void **state)
{
	begin_report("gpu_gaps");
	push_kernel(0, 100);
	push_kernel(700000, 100);
	push_kernel(300000, 500000);
	assert_rows("");
	assert_has(told, "nothing found");
}

static void test_what_is_left_of_a_gap_can_be_long_enough(void **state)
{
	begin_report("gpu_gaps");
	push_kernel(0, 100);
	push_kernel(900000, 100);
	push_kernel(700100, 300000);
	assert_rows("1,700000000,100000,4242,0,1\n");
}

static void test_what_comes_late_leaves_what_is_before_and_behind_it(void **state)
{
	begin_report("gpu_gaps");
	push_kernel(0, 100);
	push_kernel(2000000, 100);
	push_kernel(4000000, 100);
	push_kernel(600000, 100); /* in the first, */
	push_kernel(50, 10);      /* and in none */
	assert_rows("1,1999900000,2000100000,4242,0,1\n"
	            "2,1399900000,600100000,4242,0,1\n"
	            "3,599900000,100000,4242,0,1\n");
}

static void test_cupti_at_work_is_no_gap(void **state)
{
	struct range range = { .kind = RANGE_OVERHEAD,
		               .begin_ns = US(100000),
		               .end_ns = US(400000),
		               .name = "flush" };

	begin_report("gpu_gaps");
	push_kernel(0, 100);
	push(&run, &(struct event){ .type = EVENT_RANGE,
	                            .time_ns = range.end_ns,
	                            .process = the_process(),
	                            .range = &range });
	push_kernel(700000, 100);
	push_kernel(1300000, 100);
	assert_rows("1,599900000,700100000,4242,0,1\n");
}

static void test_overhead_cuts_gaps_whose_begin_it_is_before(void **state)
{
	struct range range = {
		.kind = RANGE_OVERHEAD, .begin_ns = US(50), .end_ns = US(1000200), .name = "flush"
	};
	struct event event = { .type = EVENT_RANGE, .process = the_process(), .range = &range };

	begin_report("gpu_gaps");
	push_kernel(0, 100);
	push(&run, &event);
	range.kind = RANGE_NOT_MEASURED;
	range.begin_ns = US(1700000);
	range.end_ns = US(1700001);
	push(&run, &event);
	push_kernel(600000, 100);
	push_kernel(2300000, 100);
	assert_rows("1,699800000,1000200000,4242,0,1\n"
	            "2,599999000,1700001000,4242,0,1\n");
}

static void test_gpu_time_util_adds_up_and_joins_neighbours(void **state)
{
	begin_report("gpu_time_util");
	push_kernel(0, 64); /* windows of 64 us: one full, */
	push_kernel(64, 16);
	push_kernel(64, 32);   /* one by three quarters, since two ran at once, */
	push_kernel(1904, 16); /* 27 empty, and the last by a quarter */
	assert_rows("1,0.9,1792000,128000,4242,0,1\n");
}

/* What threads did at the end is not known, what the GPU did is. */
static void test_gpu_time_util_goes_on_when_threads_are_not_watched(void **state)
{
	struct sample still = { .kind = SAMPLE_OFF_CPU, .blocked = BLOCKED_STILL };
	struct event event = { .type = EVENT_SAMPLE,
		               .time_ns = US(64),
		               .process = the_process(),
		               .tid = 4242,
		               .sample = &still };

	begin_report("gpu_time_util");
	push_kernel(0, 64);
	push(&run, &event);
	push_kernel(64, 1792); /* but for the last of 30 windows */
	push_kernel(1919, 1);
	assert_rows("1,1.6,64000,1856000,4242,0,1\n");
}

/* Of GPUs that are seen from outside no context is known. */
static void gpu_was(double begin_us, double end_us, int percent)
{
	struct gpu_metrics_sample sample = { .source = GPU_METRICS_STRETCHES,
		                             .begin_ns = US(begin_us),
		                             .end_ns = US(end_us) };
	struct event event = { .type = EVENT_METRICS,
		               .time_ns = US(end_us),
		               .process = the_process(),
		               .metrics = &sample };

	for (size_t i = 0; i < GPU_METRICS; i++)
		sample.value[i] = GPU_METRIC_UNKNOWN;
	sample.value[GPU_METRIC_BUSY] = 100 * percent;
	push(&run, &event);
}

static void test_gaps_are_those_that_are_seen_from_outside(void **state)
{
	begin_report("gpu_gaps");
	run.info.stretches.interval_ns = 10000;
	push_numbered(launch_at("cuLaunchKernel", 0, NULL));
	gpu_was(0, 100, 100);
	gpu_was(100, 600100, 0);
	push_numbered(launch_at("cuLaunchKernel", 600090, NULL));
	gpu_was(600100, 600200, 100);
	end_run(&run);
	assert_has(run.text, "1,600000000,");
	assert_has(run.text, ",4242,0,\n");
	assert_has(told, "seen from outside: when they were busy is known within 10.00 us");
	table_finish(table, NULL);
	table_close(table);
	close_run(&run);
}

/* ---- ours ---------------------------------------------------------------------------------- */

static void test_bandwidth_is_bytes_by_time_on_the_gpu(void **state)
{
	static const double durations[] = { 1, 2, 4 };

	begin_report("copies");
	for (unsigned i = 0; i < 3; i++)
		push_ran(copy_between(ACTIVITY_MEMORY_PINNED, ACTIVITY_MEMORY_DEVICE), 0, 100 * i,
		         durations[i]);
	push_ran(copy_between(ACTIVITY_MEMORY_PAGEABLE, ACTIVITY_MEMORY_DEVICE), 0, 400, 8);
	assert_rows("4242,0,3,12288,7000,1755428571.4,1024000000,2048000000.0,4096000000,Pinned,"
	            "Device,[CUDA memcpy Host-to-Device]\n"
	            "4242,0,1,4096,8000,512000000.0,512000000,512000000.0,512000000,Pageable,"
	            "Device,[CUDA memcpy Host-to-Device]\n");
}

static void test_copies_without_a_duration_have_no_bandwidth(void **state)
{
	begin_report("copies");
	push_ran(copy_between(ACTIVITY_MEMORY_PINNED, ACTIVITY_MEMORY_DEVICE), 0, 100, 0);
	assert_rows("4242,0,1,4096,0,,,,,Pinned,Device,[CUDA memcpy Host-to-Device]\n");
}

static void test_launches_have_a_call_a_delay_and_a_run(void **state)
{
	struct kernel *kernel = new_kernel("vectorAdd(float*)", true);
	struct activity ran = { .kind = ACTIVITY_KERNEL, .kernel = kernel };
	struct call slow = launch_at("cuLaunchKernel", 1000, kernel);

	begin_report("launch_stats:base");
	push_ran(ran, push_numbered(launch_at("cuLaunchKernel", 0, kernel)), 15, 2);
	push_ran(ran, push_numbered(launch_at("cuLaunchKernel", 100, kernel)), 225, 10);
	slow.end_ns = slow.begin_ns + 60000;
	push_ran(ran, push_numbered(slow), 1030, 80); /* began before its call returned */
	assert_rows("3,23333.3,5000.0,60000,65000.0,65000.0,120000,30666.7,10000.0,80000,1,1,1,"
	            "vectorAdd\n");
}

static void test_work_whose_call_was_forgotten_is_told_of(void **state)
{
	static const char *const words[] = { "launch_stats", "cuda_kern_exec_sum",
		                             "cuda_memcpy_async", "nvtx_kern_sum" };

	for (unsigned i = 0; i < ARRAY_SIZE(words); i++) {
		window = work_new(10000);
		begin_report(words[i]);
		for (unsigned j = 0; j < 1000; j++)
			push_numbered(launch_at("cuLaunchKernel", j, NULL));
		push_ran((struct activity){ .kind = ACTIVITY_KERNEL }, 1, 1, 5);
		end_run(&run);
		assert_has(told, "work whose call was forgotten for want of room: 1");
		table_close(table);
		close_run(&run);
		work_free(window);
	}
	window = NULL;
}

static void test_without_gpu_times_a_report_says_so(void **state)
{
	static const char *const words[] = { "cuda_memcpy_async", "gpu_gaps", "gpu_time_util",
		                             "copies", "launch_stats" };

	for (unsigned i = 0; i < 5; i++) {
		begin_report(words[i]);
		push_call(&run, call_at("cudaMemcpy", 0, 10));
		assert_rows("");
		assert_has(told, "GPU times were not recorded");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memcpy_async_is_of_pageable_memory),
		cmocka_unit_test(test_memcpy_async_takes_pageable_memory_at_either_end),
		cmocka_unit_test(test_memcpy_sync_is_of_any_memory),
		cmocka_unit_test(test_memset_sync_is_of_pinned_and_managed_memory),
		cmocka_unit_test(test_the_fifty_longest_are_told_and_the_rest_counted),
		cmocka_unit_test(test_api_sync_is_of_devices_and_streams),
		cmocka_unit_test(test_gpu_gaps_are_longer_than_half_a_second),
		cmocka_unit_test(test_what_ends_later_can_fill_a_gap),
		cmocka_unit_test(test_what_is_left_of_a_gap_can_be_long_enough),
		cmocka_unit_test(test_what_comes_late_leaves_what_is_before_and_behind_it),
		cmocka_unit_test(test_cupti_at_work_is_no_gap),
		cmocka_unit_test(test_overhead_cuts_gaps_whose_begin_it_is_before),
		cmocka_unit_test(test_gpu_time_util_adds_up_and_joins_neighbours),
		cmocka_unit_test(test_gpu_time_util_goes_on_when_threads_are_not_watched),
		cmocka_unit_test(test_gaps_are_those_that_are_seen_from_outside),
		cmocka_unit_test(test_bandwidth_is_bytes_by_time_on_the_gpu),
		cmocka_unit_test(test_copies_without_a_duration_have_no_bandwidth),
		cmocka_unit_test(test_launches_have_a_call_a_delay_and_a_run),
		cmocka_unit_test(test_work_whose_call_was_forgotten_is_told_of),
		cmocka_unit_test(test_without_gpu_times_a_report_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
