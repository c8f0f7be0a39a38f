// SPDX-License-Identifier: MIT
/* Figures of single reports, from events made by hand. Whole outputs: tests/golden. */
#include "failing_output.h"
#include "place_stacks.h"

#include <errno.h>

#include "analysis/work.h"
#include "report/report.h"
#include "table/table.h"

static struct run run;
static struct table *table;
static char *told;

static void note(void *data, const char *name, const char *text)
{
	char *all = NULL;

	assert_true(asprintf(&all, "%s%s\n", told ? told : "", text) > 0);
	free(told);
	told = all;
}

/* The report's csv: what is compared is figures. */
static struct work *window; /* NULL: the report has its own */

static void begin_report_with(const char *word, bool nested, size_t top)
{
	struct table_options options = { .form = TABLE_FORM_CSV, .note = note, .top = top };
	struct report_options report_options = { .nested = nested, .work = window };
	struct report_choice choice;
	struct err err = { 0 };

	free(told);
	told = NULL;
	assert_int_equal(report_choose(word, &choice, &err), 0);
	open_run(&run);
	options.out = run.out;
	table = table_open(&options, choice.report->parts);
	report_options.table = table;
	report_options.names = choice.names;
	report_options.by_place = choice.by_place;
	begin_run(&run, report_new(choice.report, &report_options));
}

static void begin_report(const char *word)
{
	begin_report_with(word, false, 0);
}

/* The rows without the headings; told: the notes. */
static const char *end_report(void)
{
	const char *rows;

	end_run(&run);
	assert_int_equal(table_finish(table, NULL), 0);
	table_close(table);
	fflush(run.out);
	rows = strchr(run.text, '\n');
	assert_non_null(rows);
	return rows + 1;
}

static void push_activity(const struct process *process, struct activity activity)
{
	push(&run, &(struct event){ .type = EVENT_ACTIVITY,
	                            .time_ns = activity.end_ns,
	                            .process = process,
	                            .activity = &activity });
}

static struct activity kernel_at(const struct kernel *kernel, double begin_us, double duration_us)
{
	return (struct activity){
		.kind = ACTIVITY_KERNEL,
		.begin_ns = US(begin_us),
		.end_ns = US(begin_us + duration_us),
		.kernel = kernel,
		.stream = 7,
		.grid = { 4, 2, 1 },
		.block = { 32, 1, 1 },
	};
}

static struct activity copy_on_gpu(enum api_direction direction, double begin_us,
                                   double duration_us, uint64_t bytes)
{
	return (struct activity){
		.kind = ACTIVITY_COPY,
		.begin_ns = US(begin_us),
		.end_ns = US(begin_us + duration_us),
		.stream = 7,
		.bytes = bytes,
		.direction = direction,
		.source = ACTIVITY_MEMORY_PAGEABLE,
		.destination = ACTIVITY_MEMORY_DEVICE,
	};
}

/* ---- cuda_api_sum -------------------------------------------------------------------------- */

static void test_calls_are_summed_by_name_and_sorted_by_total(void **state)
{
	begin_report("cuda_api_sum");
	push_call(&run, call_at("cuMemFree_v2", 10, 1));
	push_call(&run, call_at("cuInit", 20, 10));
	push_call(&run, call_at("cuMemFree_v2", 40, 4));
	push_call(&run, call_at("cuMemFree_v2", 50, 4));
	assert_string_equal(end_report(),
	                    "52.6,10000,1,10000.0,10000.0,10000,10000,0.0,cuInit\n"
	                    "47.4,9000,3,3000.0,4000.0,1000,4000,1732.1,cuMemFree_v2\n");
	assert_null(told);
	close_run(&run);
}

static void test_functions_of_one_name_in_two_libraries_are_one_row(void **state)
{
	struct function other = *the_function("cuInit");
	struct call call = call_at("cuInit", 10, 2);

	other.id = 63;
	other.lib = "train";
	begin_report("cuda_api_sum");
	push_call(&run, call);
	call.function = &other;
	push_call(&run, call);
	assert_string_equal(end_report(), "100.0,4000,2,2000.0,2000.0,2000,2000,0.0,cuInit\n");
	close_run(&run);
}

static void test_versions_of_the_callback_api_are_no_part_of_a_name(void **state)
{
	begin_report("cuda_api_sum");
	push_call(&run, call_at("cudaLaunchKernel_v7000", 10, 2));
	assert_has(end_report(), ",cudaLaunchKernel\n");
	close_run(&run);
}

static void push_nested_pair(void)
{
	struct call inner = call_at("cuMemAlloc_v2", 11, 2), outer = call_at("cudaMalloc", 10, 5);

	inner.flags |= CALL_NESTED;
	push_call(&run, inner);
	push_call(&run, outer);
}

static void test_nested_calls_are_left_out_and_counted(void **state)
{
	begin_report("cuda_api_sum");
	push_nested_pair();
	assert_string_equal(end_report(), "100.0,5000,1,5000.0,5000.0,5000,5000,0.0,cudaMalloc\n");
	assert_string_equal(told, "calls made by other calls, left out (--nested shows them): 1\n");
	close_run(&run);
}

static void test_nested_calls_are_rows_when_asked_for(void **state)
{
	begin_report_with("cuda_api_sum", true, 0);
	push_nested_pair();
	assert_has(end_report(), ",cuMemAlloc_v2\n");
	assert_null(told);
	close_run(&run);
}

static struct call from(const struct stack *stack, struct call call)
{
	call.stack = stack;
	return call;
}

static void test_calls_can_be_split_by_place(void **state)
{
	begin_report("cuda_api_sum:place");
	push_call(&run, from(&in_python, call_at("cuMemFree_v2", 10, 1)));
	push_call(&run, from(&in_native, call_at("cuMemFree_v2", 20, 4)));
	push_call(&run, from(&in_python, call_at("cuMemFree_v2", 30, 2)));
	push_call(&run, from(&in_python, call_at("cuMemAlloc_v2", 40, 2)));
	push_call(&run, call_at("cuMemFree_v2", 50, 1));
	assert_string_equal(
		end_report(),
		"40.0,4000,1,4000.0,4000.0,4000,4000,0.0,cuMemFree_v2," IN_NATIVE_PLACE "\n"
		"30.0,3000,2,1500.0,1500.0,1000,2000,707.1,cuMemFree_v2," IN_PYTHON_PLACE "\n"
		"20.0,2000,1,2000.0,2000.0,2000,2000,0.0,cuMemAlloc_v2," IN_PYTHON_PLACE "\n"
		"10.0,1000,1,1000.0,1000.0,1000,1000,0.0,cuMemFree_v2,(no stack)\n");
	assert_has(told, "no places: stacks of calls were not recorded");
	close_run(&run);
}

static void test_calls_without_an_end_count_and_have_no_duration(void **state)
{
	struct call call = call_at("cuCtxSynchronize", 10, 0);

	never_ends(&call, CALL_UNFINISHED);
	begin_report("cuda_api_sum");
	push_call(&run, call_at("cuCtxSynchronize", 5, 2));
	push_call(&run, call);
	call.function = the_function("cuInit");
	push_call(&run, call);
	assert_string_equal(end_report(),
	                    "100.0,2000,2,2000.0,2000.0,2000,2000,0.0,cuCtxSynchronize\n"
	                    ",,1,,,,,,cuInit\n");
	assert_string_equal(told, "calls without a duration, whose return was not recorded: 2\n");
	close_run(&run);
}

static void test_many_calls_have_a_median_that_is_near(void **state)
{
	begin_report("cuda_api_sum");
	for (int i = 0; i < 3000; i++)
		push_call(&run, call_at("cuInit", i * 10, 1 + i % 3));
	assert_has(end_report(), "100.0,6000000,3000,2000.0,20");
	assert_string_equal(told, "medians of more than 1024 values are within 0.8 %\n");
	close_run(&run);
}

static void test_estimates_are_said_to_be_such(void **state)
{
	begin_report("cuda_api_sum");
	run.info.estimate_scale = 2.5;
	push_call(&run, call_at("cuInit", 1, 1));
	end_report();
	assert_has(told, "about 2.50 times as much happened");
	close_run(&run);
}

/* ---- cuda_api_trace ------------------------------------------------------------------------ */

static void test_a_call_is_a_row_with_result_and_thread(void **state)
{
	struct thread thread = { .comm = "worker, 1", .priority = 20 };
	struct call call = call_at("cudaMalloc", 10, 5);

	fail_call(&call, 2);
	call.correlation = 17;
	begin_report("cuda_api_trace");
	push(&run, &(struct event){ .type = EVENT_THREAD,
	                            .time_ns = US(1),
	                            .process = the_process(),
	                            .tid = 4243,
	                            .thread = &thread });
	push_call(&run, call);
	never_ends(&call, CALL_NO_RETURN);
	push_call_of(&run, the_process(), 4244, &call);
	assert_string_equal(end_report(), "10000,5000,cudaMalloc,2,17,4242,4243,20,\"worker, 1\"\n"
	                                  "10000,,cudaMalloc,,17,4242,4244,,\n");
	close_run(&run);
}

static void test_top_ends_a_trace(void **state)
{
	begin_report_with("cuda_api_trace", false, 1);
	push_call(&run, call_at("cuInit", 1, 1));
	push_call(&run, call_at("cuInit", 2, 1));
	assert_string_equal(end_report(), "1000,1000,cuInit,0,,4242,4243,,\n");
	assert_string_equal(told, "rows left out by --top: 1\n");
	close_run(&run);
}

static void test_a_report_of_rows_ends_with_its_reader(void **state)
{
	struct table_options options = { .out = closed_pipe() };
	struct report_options report_options = { 0 };
	struct call call = call_at("cuInit", 1, 1);
	struct event event = call_event(the_process(), 4243, &call);
	struct run_info info = default_run_info();
	struct report_choice choice;
	struct consumer *consumer;
	struct err err = { 0 };

	assert_int_equal(report_choose("cuda_api_trace", &choice, &err), 0);
	report_options.table = table = table_open(&options, false);
	consumer = report_new(choice.report, &report_options);
	assert_int_equal(consumer->ops->begin(consumer, &info, &err), 0);
	for (int i = 0; i < 10000; i++)
		assert_int_equal(consumer->ops->event(consumer, &event, &err), 0);
	assert_int_equal(consumer->ops->end(consumer, &info, &err), -EPIPE);
	consumer->ops->free(consumer);
	table_close(table);
	fclose(options.out);
}

/* ---- GPU times ----------------------------------------------------------------------------- */

static void test_reports_of_gpu_times_say_that_there_are_none(void **state)
{
	size_t said = 0;

	for (const struct report *r = reports; r->name; r++) {
		if (!r->gpu_times)
			continue;
		begin_report(r->name);
		push_call(&run, call_at("cuInit", 1, 1));
		if (r->parts) /* has the headings of the others */
			end_report();
		else
			assert_string_equal(end_report(), "");
		assert_has(told, strncmp(r->name, "nvtx", 4) ? "GPU times were not recorded"
		                                             : "were not recorded");
		close_run(&run);
		said++;
	}
	assert_true(said >= 8);
}

static void push_gpu_work(void)
{
	const struct kernel *add = new_kernel("void ns::add<int>(int*)", true);
	const struct kernel *same = new_kernel("void ns::add<int>(int*)", true);
	struct kernel *other = new_kernel("void ns::add<float>(float*)", true);
	struct activity wide = kernel_at(add, 30, 30);

	other->mangled = "_ZN2ns3addIfEEvPf";
	wide.grid[0] = 8;
	push_activity(the_process(), kernel_at(add, 0, 10));
	push_activity(the_process(), kernel_at(same, 15, 10));
	push_activity(the_process(), wide);
	push_activity(the_process(), kernel_at(other, 60, 10));
	push_activity(the_process(), copy_on_gpu(DIRECTION_H2D, 80, 20, 4096));
	push_activity(the_process(), copy_on_gpu(DIRECTION_H2D, 110, 0, 1000));
	push_activity(the_process(), (struct activity){ .kind = ACTIVITY_SET,
	                                                .begin_ns = US(120),
	                                                .end_ns = US(121),
	                                                .bytes = 512 });
}

static void assert_gpu_report(const char *word, const char *expected)
{
	begin_report(word);
	push_gpu_work();
	assert_string_equal(end_report(), expected);
	assert_null(told);
	close_run(&run);
}

static void test_kernels_of_one_name_are_one_row(void **state)
{
	assert_gpu_report("cuda_gpu_kern_sum", "83.3,50000,3,16666.7,10000.0,10000,30000,11547.0,"
	                                       "void ns::add<int>(int*)\n"
	                                       "16.7,10000,1,10000.0,10000.0,10000,10000,0.0,"
	                                       "void ns::add<float>(float*)\n");
}

static void test_base_names_gather_instances_of_a_template(void **state)
{
	assert_gpu_report("cuda_gpu_kern_sum:base",
	                  "100.0,60000,4,15000.0,10000.0,10000,30000,10000.0,add\n");
}

static void test_a_mangled_name_that_is_not_known_is_the_name(void **state)
{
	assert_gpu_report("cuda_gpu_kern_sum:mangled",
	                  "83.3,50000,3,16666.7,10000.0,10000,30000,11547.0,"
	                  "void ns::add<int>(int*)\n"
	                  "16.7,10000,1,10000.0,10000.0,10000,10000,0.0,_ZN2ns3addIfEEvPf\n");
}

static void test_sizes_tell_kernels_apart(void **state)
{
	assert_gpu_report("cuda_gpu_kern_gb_sum:base",
	                  "50.0,30000,3,10000.0,10000.0,10000,10000,0.0,4 2 1,32 1 1,add\n"
	                  "50.0,30000,1,30000.0,30000.0,30000,30000,0.0,8 2 1,32 1 1,add\n");
}

static void test_copies_and_sets_by_time(void **state)
{
	assert_gpu_report("cuda_gpu_mem_time_sum",
	                  "95.2,20000,2,10000.0,10000.0,0,20000,14142.1,"
	                  "[CUDA memcpy Host-to-Device]\n"
	                  "4.8,1000,1,1000.0,1000.0,1000,1000,0.0,[CUDA memset]\n");
}

static void test_copies_and_sets_by_size(void **state)
{
	assert_gpu_report("cuda_gpu_mem_size_sum",
	                  "0.005,2,0.003,0.003,0.001,0.004,0.002,[CUDA memcpy Host-to-Device]\n"
	                  "0.001,1,0.001,0.001,0.001,0.001,0.000,[CUDA memset]\n");
}

static void test_all_gpu_work_has_categories(void **state)
{
	assert_gpu_report("cuda_gpu_sum:base",
	                  "74.1,60000,4,15000.0,10000.0,10000,30000,10000.0,CUDA_KERNEL,add\n"
	                  "24.7,20000,2,10000.0,10000.0,0,20000,14142.1,MEMORY_OPER,"
	                  "[CUDA memcpy Host-to-Device]\n"
	                  "1.2,1000,1,1000.0,1000.0,1000,1000,0.0,MEMORY_OPER,[CUDA memset]\n");
}

static void test_calls_and_gpu_work_are_one_table(void **state)
{
	begin_report("cuda_api_gpu_sum:base");
	push_call(&run, call_at("cuInit", 1, 39));
	push_gpu_work();
	assert_string_equal(end_report(),
	                    "50.0,60000,4,15000.0,10000.0,10000,30000,10000.0,CUDA_KERNEL,add\n"
	                    "32.5,39000,1,39000.0,39000.0,39000,39000,0.0,CUDA_API,cuInit\n"
	                    "16.7,20000,2,10000.0,10000.0,0,20000,14142.1,MEMORY_OPER,"
	                    "[CUDA memcpy Host-to-Device]\n"
	                    "0.8,1000,1,1000.0,1000.0,1000,1000,0.0,MEMORY_OPER,[CUDA memset]\n");
	assert_null(told);
	close_run(&run);
}

static void test_calls_are_told_where_there_are_no_gpu_times(void **state)
{
	begin_report("cuda_api_gpu_sum");
	push_call(&run, call_at("cuInit", 1, 39));
	assert_string_equal(end_report(),
	                    "100.0,39000,1,39000.0,39000.0,39000,39000,0.0,CUDA_API,cuInit\n");
	assert_has(told, "GPU times were not recorded");
	close_run(&run);
}

static void test_a_copy_without_a_duration_has_no_throughput(void **state)
{
	begin_report("cuda_gpu_trace");
	push_activity(the_process(), copy_on_gpu(DIRECTION_H2D, 10, 2, 4096));
	push_activity(the_process(), copy_on_gpu(DIRECTION_H2D, 20, 0, 4096));
	assert_string_equal(end_report(),
	                    "10000,2000,,,,,,,,,,,0.004,2048.000,Pageable,Device,GPU (0),0,,7,"
	                    "[CUDA memcpy Host-to-Device]\n"
	                    "20000,0,,,,,,,,,,,0.004,,Pageable,Device,GPU (0),0,,7,"
	                    "[CUDA memcpy Host-to-Device]\n");
	close_run(&run);
}

static void push_gpus(const char *first, const char *second)
{
	static struct run_gpu gpus[2];

	snprintf(gpus[0].name, sizeof(gpus[0].name), "%s", first);
	snprintf(gpus[1].name, sizeof(gpus[1].name), "%s", second);
	run.info.gpus = gpus;
	run.info.n_gpus = 2;
}

/* begin() is told the machine, so the report is made after it. */
static void assert_device(const char *expected)
{
	struct run_info info;
	struct err err = { 0 };

	begin_report("cuda_gpu_trace");
	info = run.info;
	push_gpus("NVIDIA H200", strcmp(expected, "GPU (1)") ? "NVIDIA H200" : "Tesla T4");
	assert_int_equal(run.consumer->ops->begin(run.consumer, &run.info, &err), 0);
	run.info = info;
	push_activity(the_process(), (struct activity){ .kind = ACTIVITY_SET, .device = 1 });
	assert_has(end_report(), expected);
	close_run(&run);
}

static void test_devices_have_the_name_that_all_gpus_have(void **state)
{
	assert_device("NVIDIA H200 (1)");
	assert_device("GPU (1)");
}

static void test_what_ran_is_in_the_order_of_its_begins(void **state)
{
	begin_report("cuda_gpu_trace");
	push_activity(the_process(), copy_on_gpu(DIRECTION_H2D, 20, 2, 4096));
	push_activity(the_process(), copy_on_gpu(DIRECTION_D2H, 10, 90, 4096));
	assert_has(end_report(), "10000,90000,");
	assert_true(strstr(run.text, "\n10000,90000,") < strstr(run.text, "\n20000,2000,"));
	close_run(&run);
	begin_report("cuda_api_trace");
	push_call(&run, call_at("cuInit", 20, 2));
	push_call(&run, call_at("cuCtxSynchronize", 10, 90));
	assert_string_equal(end_report(), "10000,90000,cuCtxSynchronize,0,,4242,4243,,\n"
	                                  "20000,2000,cuInit,0,,4242,4243,,\n");
	close_run(&run);
}

/* ---- cuda_kern_exec ------------------------------------------------------------------------ */

static const struct kernel *the_kernel(void)
{
	static const struct kernel *kernel;

	return kernel = kernel ? kernel : new_kernel("add(int*)", true);
}

/* A launch from 10 to 15 us, and a kernel. */
static void push_launch(const struct process *process, uint32_t tid, uint64_t correlation)
{
	struct call call = launch_at("cuLaunchKernel", 10, the_kernel());

	call.correlation = correlation;
	push_call_of(&run, process, tid, &call);
}

static void push_kernel(const struct process *process, uint64_t correlation, double begin_us,
                        double duration_us)
{
	struct activity activity = kernel_at(the_kernel(), begin_us, duration_us);

	activity.correlation = correlation;
	push_activity(process, activity);
}

static void assert_exec_trace(const char *times)
{
	char expected[200];

	snprintf(expected, sizeof(expected),
	         "%s,4242,4243,0,cuLaunchKernel,4 2 1,32 1 1,add(int*)\n", times);
	assert_string_equal(end_report(), expected);
	close_run(&run);
}

static void test_a_kernel_that_waited_has_a_queue_time(void **state)
{
	begin_report("cuda_kern_exec_trace");
	push_launch(the_process(), 4243, 1);
	push_kernel(the_process(), 1, 18, 20);
	assert_exec_trace("10000,5000,15000,3000,18000,20000,28000");
}

static void test_a_kernel_that_begins_as_its_call_returns_waited_for_nothing(void **state)
{
	begin_report("cuda_kern_exec_trace");
	push_launch(the_process(), 4243, 1);
	push_kernel(the_process(), 1, 15, 20);
	assert_exec_trace("10000,5000,15000,0,15000,20000,25000");
}

static void test_a_kernel_that_begins_before_its_call_returns_has_no_queue_time(void **state)
{
	begin_report("cuda_kern_exec_trace");
	push_launch(the_process(), 4243, 1);
	push_kernel(the_process(), 1, 14, 20);
	assert_exec_trace("10000,5000,,,14000,20000,24000");
}

static void test_a_kernel_that_ends_before_its_call_comes_first_and_is_found(void **state)
{
	begin_report("cuda_kern_exec_trace");
	push_kernel(the_process(), 1, 12, 2);
	push_launch(the_process(), 4243, 1);
	assert_exec_trace("10000,5000,,,12000,2000,5000");
	assert_null(told);
}

static void test_a_launch_without_an_end_has_neither_duration_nor_queue(void **state)
{
	struct call call = launch_at("cuLaunchKernel", 10, the_kernel());

	call.correlation = 1;
	never_ends(&call, CALL_NO_RETURN);
	begin_report("cuda_kern_exec_trace");
	push_call(&run, call);
	push_kernel(the_process(), 1, 18, 20);
	assert_exec_trace("10000,,,,18000,20000,28000");
}

static void test_kernels_are_matched_within_their_process(void **state)
{
	const struct process *other = new_process(77, "other");

	begin_report("cuda_kern_exec_trace");
	push_launch(the_process(), 4243, 1);
	push_kernel(other, 1, 18, 20);
	assert_string_equal(end_report(), "");
	assert_has(told,
	           "kernels left out, whose launch was not recorded or is no longer known: 1\n");
	close_run(&run);
}

static void test_a_launch_can_have_many_kernels(void **state)
{
	begin_report("cuda_kern_exec_sum");
	push_kernel(the_process(), 1, 11, 1);
	push_kernel(the_process(), 1, 12, 1);
	push_launch(the_process(), 4243, 1);
	push_kernel(the_process(), 1, 20, 1);
	assert_has(end_report(), "4242,4243,0,3,1,");
	assert_null(told);
	close_run(&run);
}

/* Q is of one of the two kernels, everything else of both. */
static void test_launches_are_summed_with_the_queue_counted_apart(void **state)
{
	begin_report("cuda_kern_exec_sum");
	push_launch(the_process(), 4243, 1);
	push_kernel(the_process(), 1, 12, 10);
	push_launch(the_process(), 4243, 2);
	push_kernel(the_process(), 2, 25, 20);
	assert_string_equal(end_report(), "4242,4243,0,2,1,"
	                                  "23500.0,23500.0,12000,35000,16263.5,"
	                                  "5000.0,5000.0,5000,5000,0.0,"
	                                  "10000.0,10000.0,10000,10000,0.0,"
	                                  "15000.0,15000.0,10000,20000,7071.1,"
	                                  "cuLaunchKernel,add(int*)\n");
	close_run(&run);
}

static void test_groups_are_threads_and_sorted_by_the_average_total(void **state)
{
	begin_report("cuda_kern_exec_sum");
	push_launch(the_process(), 1, 1);
	push_kernel(the_process(), 1, 20, 10);
	push_launch(the_process(), 2, 2);
	push_kernel(the_process(), 2, 40, 10);
	assert_int_equal(strncmp(end_report(), "4242,2,0,1,1,40000.0,", 21), 0);
	assert_has(run.text, "\n4242,1,0,1,1,20000.0,");
	close_run(&run);
}

static void test_what_is_kept_for_a_match_is_bounded(void **state)
{
	window = work_new(1 << 20);
	begin_report("cuda_kern_exec_sum");
	for (uint64_t i = 1; i <= 60000; i++)
		push_launch(the_process(), 4243, i);
	push_kernel(the_process(), 1, 20, 10);     /* no longer known */
	push_kernel(the_process(), 60000, 20, 10); /* just now */
	for (uint64_t i = 60001; i <= 360000; i++)
		push_kernel(the_process(), i, 20, 10); /* never launched */
	assert_has(end_report(), "4242,4243,0,1,1,");
	assert_has(told, "no longer known: 300001\n");
	assert_has(told, "work whose call was forgotten for want of room: 1\n");
	close_run(&run);
	work_free(window);
	window = NULL;
}

/* Launches that have met their kernels do not push out one that waits. */
static void test_any_number_of_launches_can_lie_before_a_kernel(void **state)
{
	begin_report("cuda_kern_exec_sum");
	push_launch(the_process(), 4243, 1);
	for (uint64_t i = 2; i <= 700000; i++) {
		push_launch(the_process(), 4243, i);
		push_kernel(the_process(), i, 20, 10);
	}
	push_kernel(the_process(), 1, 20, 10);
	assert_has(end_report(), "4242,4243,0,700000,700000,");
	assert_null(strstr(told, "left out")); /* that medians are close is told */
	close_run(&run);
}

/* ---- names of reports ---------------------------------------------------------------------- */

static void assert_refused(const char *word, const char *text)
{
	struct report_choice choice;
	struct err err = { 0 };

	assert_true(report_choose(word, &choice, &err) < 0);
	assert_has(err.text, text);
}

static void test_unknown_reports_get_the_nearest_name(void **state)
{
	assert_refused("cuda_api_sums", "there is no report 'cuda_api_sums'; did you mean "
	                                "'cuda_api_sum'?");
	assert_refused("xyzzy", "'cuscope report --help' lists them");
	assert_refused("cuda_api_sum:base", "cuda_api_sum takes no ':base': it takes ':place'");
	assert_refused("launches:places", "launches takes no ':places': it takes ':place'");
	assert_refused("memory:place", "memory takes no ':place': it names no kernels");
	assert_refused("cuda_gpu_kern_sum:place", "':place' is no form of names");
	assert_refused("cuda_gpu_kern_sum:bse", "':bse' is no form of names (:base or :mangled)");
	assert_refused("", "there is no report ''");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls_are_summed_by_name_and_sorted_by_total),
		cmocka_unit_test(test_functions_of_one_name_in_two_libraries_are_one_row),
		cmocka_unit_test(test_versions_of_the_callback_api_are_no_part_of_a_name),
		cmocka_unit_test(test_nested_calls_are_left_out_and_counted),
		cmocka_unit_test(test_nested_calls_are_rows_when_asked_for),
		cmocka_unit_test(test_calls_can_be_split_by_place),
		cmocka_unit_test(test_calls_without_an_end_count_and_have_no_duration),
		cmocka_unit_test(test_many_calls_have_a_median_that_is_near),
		cmocka_unit_test(test_estimates_are_said_to_be_such),
		cmocka_unit_test(test_a_call_is_a_row_with_result_and_thread),
		cmocka_unit_test(test_top_ends_a_trace),
		cmocka_unit_test(test_reports_of_gpu_times_say_that_there_are_none),
		cmocka_unit_test(test_a_report_of_rows_ends_with_its_reader),
		cmocka_unit_test(test_kernels_of_one_name_are_one_row),
		cmocka_unit_test(test_base_names_gather_instances_of_a_template),
		cmocka_unit_test(test_a_mangled_name_that_is_not_known_is_the_name),
		cmocka_unit_test(test_sizes_tell_kernels_apart),
		cmocka_unit_test(test_copies_and_sets_by_time),
		cmocka_unit_test(test_copies_and_sets_by_size),
		cmocka_unit_test(test_all_gpu_work_has_categories),
		cmocka_unit_test(test_devices_have_the_name_that_all_gpus_have),
		cmocka_unit_test(test_what_ran_is_in_the_order_of_its_begins),
		cmocka_unit_test(test_calls_and_gpu_work_are_one_table),
		cmocka_unit_test(test_calls_are_told_where_there_are_no_gpu_times),
		cmocka_unit_test(test_a_copy_without_a_duration_has_no_throughput),
		cmocka_unit_test(test_a_kernel_that_waited_has_a_queue_time),
		cmocka_unit_test(test_a_kernel_that_begins_as_its_call_returns_waited_for_nothing),
		cmocka_unit_test(
			test_a_kernel_that_begins_before_its_call_returns_has_no_queue_time),
		cmocka_unit_test(test_a_kernel_that_ends_before_its_call_comes_first_and_is_found),
		cmocka_unit_test(test_a_launch_without_an_end_has_neither_duration_nor_queue),
		cmocka_unit_test(test_kernels_are_matched_within_their_process),
		cmocka_unit_test(test_a_launch_can_have_many_kernels),
		cmocka_unit_test(test_launches_are_summed_with_the_queue_counted_apart),
		cmocka_unit_test(test_groups_are_threads_and_sorted_by_the_average_total),
		cmocka_unit_test(test_what_is_kept_for_a_match_is_bounded),
		cmocka_unit_test(test_any_number_of_launches_can_lie_before_a_kernel),
		cmocka_unit_test(test_unknown_reports_get_the_nearest_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
