// SPDX-License-Identifier: MIT
/* The csv format of calls, activities and ranges. */
#include "support.h"

#include <errno.h>

#include "failing_output.h"
#include "analysis/work.h"
#include "output/sink.h"

static struct run run;

static int begin_csv(void **state)
{
	struct sink_options options = { 0 };

	open_run(&run);
	run.info.gpu_times = true;
	options.out = run.out;
	begin_run(&run, sink_format_by_name("csv")->create(&options));
	return 0;
}

static int end_csv(void **state)
{
	close_run(&run);
	return 0;
}

/* All rows but the first, which is the header. */
static void assert_rows(const char *expected)
{
	end_run(&run);
	assert_string_equal(strchr(run.text, '\n') + 1, expected);
}

static uint64_t unjoined;

/* As end_run(), but it is asked first what was not joined. */
static void end_and_ask(void)
{
	struct err err = { 0 };

	assert_int_equal(run.consumer->ops->end(run.consumer, &run.info, &err), 0);
	unjoined = sink_unjoined(run.consumer);
	run.consumer->ops->free(run.consumer);
	fflush(run.out);
}

/* Kernels that become known after so many launches; how many rows have no time that they waited. */
static unsigned kernels_without_delay(uint64_t launches, struct work *window)
{
	struct activity kernel = { .kind = ACTIVITY_KERNEL, .stream = 7 };
	struct consumer *front = window ? work_consumer(window) : NULL; /* is fed before the sink */
	struct event event;
	struct call launch;
	unsigned without = 0;

	open_run(&run);
	run.info.gpu_times = true;
	begin_run(&run, sink_format_by_name("csv")->create(
				&(struct sink_options){ .out = run.out, .work = window }));
	for (kernel.correlation = 1; kernel.correlation <= launches; kernel.correlation++) {
		launch = launch_at("cuLaunchKernel", (double)kernel.correlation, NULL);
		launch.correlation = kernel.correlation;
		event = call_event(the_process(), 4243, &launch);
		if (front)
			feed(front, &event);
		push(&run, &event);
	}
	for (kernel.correlation = 1; kernel.correlation <= launches; kernel.correlation++) {
		kernel.begin_ns = US(kernel.correlation + 100);
		kernel.end_ns = US(kernel.correlation + 200);
		event = activity_event(the_process(), &kernel);
		if (front)
			feed(front, &event);
		push(&run, &event);
	}
	end_and_ask();
	/* not by strstr, with which AddressSanitizer measures the rest of the text at each call */
	for (const char *at = run.text; *at; at++)
		without += !strncmp(at, ",,,\n", 4);
	return without - (unsigned)launches; /* rows of calls have none */
}

static void test_kernels_that_come_late_find_their_calls(void **state)
{
	assert_int_equal(kernels_without_delay(300000, NULL), 0);
	assert_int_equal(unjoined, 0);
	close_run(&run);
}

static void test_kernels_whose_calls_were_forgotten_are_counted(void **state)
{
	struct work *window = work_new(1 << 20);
	unsigned without = kernels_without_delay(50000, window);

	assert_in_range(without, 30000, 40000);
	assert_int_equal(unjoined, without);
	work_free(window);
	close_run(&run);
}

static void test_header_names_every_column(void **state)
{
	end_run(&run);
	assert_string_equal(run.text,
	                    "time_ns,duration_ns,process,pid,tid,thread,layer,class,function,"
	                    "result,result_name,kernel,grid_x,grid_y,grid_z,block_x,block_y,"
	                    "block_z,shared_memory,stream,bytes,"
	                    "direction,address,memory,flags,correlation,device,context,"
	                    "name,domain,depth,graph,graph_node,queue_ns,stack,value\n");
}

static void test_a_call_has_the_number_of_its_stack(void **state)
{
	const struct stack_frame frame = { .function = "main" }, *frames[] = { &frame };
	const struct stack stack = { .id = 7, .n_frames = 1, .frames = frames };
	struct call call = call_at("cudaDeviceSynchronize", 0, 10);

	call.stack = &stack;
	push_call(&run, call);
	assert_rows("0,10000,vectorAdd,4242,4243,,runtime,sync,cudaDeviceSynchronize,0,cudaSuccess,"
	            ",,,,,,,,,,,,,,,,,,,,,,,7,\n");
}

static void test_launch_has_kernel_and_shape(void **state)
{
	struct call call =
		launch_at("cuLaunchKernel", 40, new_kernel("add(float const*, \"x\")", true));

	call.correlation = 9;
	call.args.shmem_bytes = 48;
	push_call(&run, call);
	assert_rows("40000,5000,vectorAdd,4242,4243,,driver,launch,cuLaunchKernel,0,CUDA_SUCCESS,"
	            "\"add(float const*, \"\"x\"\")\",196,1,1,256,1,1,48,0,,,,,,9,,,,,,,,,,\n");
}

static void test_free_has_the_bytes_of_its_allocation(void **state)
{
	push_call(&run, alloc_at("cudaMalloc", 0, 0x7000, 4096));
	push_call(&run, free_at("cudaFree", 20, 0x7000));
	assert_rows("0,10000,vectorAdd,4242,4243,,runtime,memory,cudaMalloc,0,cudaSuccess,,,,,,,,,,"
	            "4096,,0x7000,device,,,,,,,,,,,,\n"
	            "20000,10000,vectorAdd,4242,4243,,runtime,memory,cudaFree,0,cudaSuccess,,,,,,,,"
	            ",,4096,,0x7000,device,,,,,,,,,,,,\n");
}

static void test_copy_has_direction_stream_and_thread_name(void **state)
{
	struct call copy = copy_at("cudaMemcpyAsync", 1, DIRECTION_D2H, 64);
	struct thread thread = { .comm = "load, er" };

	set_stream(&copy, 0x55);
	push(&run, &(struct event){ .type = EVENT_THREAD,
	                            .time_ns = US(1),
	                            .process = the_process(),
	                            .tid = 4243,
	                            .thread = &thread });
	push_call(&run, copy);
	assert_rows("1000,10000,vectorAdd,4242,4243,\"load, "
	            "er\",runtime,transfer,cudaMemcpyAsync,0,cudaSuccess,,,,,,,,,0x55,64,D2H,"
	            "0x7f0000001000,,,,,,,,,,,,,\n");
}

static void test_flags_are_words_and_no_end_has_no_result(void **state)
{
	struct call failed = alloc_at("cuMemAlloc_v2", 0, 0, 64), lost = failed;

	fail_call(&failed, 2);
	failed.flags |= CALL_NESTED;
	never_ends(&lost, CALL_UNFINISHED);
	push_call(&run, failed);
	push_call(&run, lost);
	assert_rows("0,10000,vectorAdd,4242,4243,,driver,memory,cuMemAlloc_v2,2,CUDA_ERROR_OUT_OF_"
	            "MEMORY,,,,,,,,,,64,,,device,nested failed,,,,,,,,,,,\n"
	            "0,,vectorAdd,4242,4243,,driver,memory,cuMemAlloc_v2,,,,,,,,,,,,64,,,device,"
	            "unfinished,,,,,,,,,,,\n");
}

static void test_what_ran_on_the_gpu_is_a_row_too(void **state)
{
	struct activity copy = { .kind = ACTIVITY_COPY,
		                 .begin_ns = US(1),
		                 .end_ns = US(3),
		                 .correlation = 4,
		                 .device = 2,
		                 .context = 1,
		                 .stream = 7,
		                 .bytes = 64,
		                 .direction = DIRECTION_H2D,
		                 .source = ACTIVITY_MEMORY_PINNED,
		                 .destination = ACTIVITY_MEMORY_DEVICE };
	struct activity kernel = { .kind = ACTIVITY_KERNEL,
		                   .begin_ns = US(5),
		                   .end_ns = US(6),
		                   .stream = 7,
		                   .kernel = new_kernel("add()", true),
		                   .grid = { 1, 2, 3 },
		                   .block = { 32, 1, 1 },
		                   .shmem_static = 16 };
	struct event event = { .type = EVENT_ACTIVITY, .process = the_process() };

	event.activity = &copy;
	push(&run, &event);
	event.activity = &kernel;
	push(&run, &event);
	assert_rows("1000,2000,vectorAdd,4242,,,gpu,transfer,memcpy,,,,,,,,,,,7,64,H2D,,Pinned -> "
	            "Device,,4,2,1,,,,,,,,\n"
	            "5000,1000,vectorAdd,4242,,,gpu,launch,kernel,,,add(),1,2,3,32,1,1,16,7,,,,,,,"
	            "0,0,,,,,,,,\n");
}

static void test_what_ended_before_it_began_took_no_time(void **state)
{
	struct activity set = { .kind = ACTIVITY_SET, .begin_ns = US(3), .end_ns = US(1) };

	push(&run,
	     &(struct event){ .type = EVENT_ACTIVITY, .process = the_process(), .activity = &set });
	assert_rows("3000,0,vectorAdd,4242,,,gpu,transfer,memset,,,,,,,,,,,0,0,,,Unknown,,,0,0,,,,,"
	            ",,,\n");
}

static void test_hostile_names_stay_in_their_field(void **state)
{
	struct call call = call_at("cudaSetDevice", 0, 1);

	push_call_of(&run, new_process(7, "a\n\"b\x1b,"), 7, &call);
	assert_rows("0,1000,\"a\\x0a\"\"b\\x1b,\",7,7,,runtime,device,cudaSetDevice,0,cudaSuccess,,"
	            ",,,,,,,,,,,,,,,,,,,,,,,\n");
}

static void test_every_row_has_as_many_fields_as_the_header(void **state)
{
	struct activity set = { .kind = ACTIVITY_SET, .end_ns = US(1), .begin_ns = US(0) };

	push_call(&run, call_at("cuCtxSynchronize", 0, 1));
	push_call(&run, launch_at("cuLaunchKernel", 0, new_kernel("k", false)));
	push_work(&run, set);
	for (int kind = 0; kind < RANGE_COUNT; kind++)
		push_range(&run, 4243,
		           (struct range){ .kind = (enum range_kind)kind, .name = "step" });
	end_run(&run);
	for (char *line = strtok(run.text, "\n"); line; line = strtok(NULL, "\n")) {
		size_t commas = 0;

		for (const char *at = line; (at = strchr(at, ',')); at++)
			commas++;
		assert_int_equal(commas, 35);
	}
}

static void test_a_range_has_name_domain_and_depth(void **state)
{
	struct range range = {
		.begin_ns = US(1), .end_ns = US(3), .name = "a, b", .domain = "NCCL", .depth = 2
	};

	push_range(&run, 4243, range);
	range.kind = RANGE_SYNC;
	range.domain = NULL;
	range.stream = 7;
	range.context = 1;
	range.correlation = 9;
	push_range(&run, 0, range);
	assert_rows(
		"1000,2000,vectorAdd,4242,4243,,nvtx,range,push_pop,,,,,,,,,,,,,,,,,,,,\"a, "
		"b\",NCCL,2,,,,,\n"
		"1000,2000,vectorAdd,4242,,,gpu,sync,wait,,,,,,,,,,,7,,,,,,9,,1,\"a, b\",,,,,,,\n");
}

static void test_work_has_the_time_that_it_waited(void **state)
{
	struct call call = call_at("cudaGraphLaunch", 10, 5);
	struct activity graph = { .kind = ACTIVITY_GRAPH_RUN,
		                  .begin_ns = US(17.5),
		                  .end_ns = US(20),
		                  .correlation = 3,
		                  .stream = 7,
		                  .graph = 2 };

	call.correlation = 3;
	push_call(&run, call);
	push_work(&run, graph);
	graph.begin_ns = US(14); /* before its call had returned: it did not wait */
	push_work(&run, graph);
	end_run(&run);
	assert_has(run.text, "17500,2500,vectorAdd,4242,,,gpu,launch,graph,,,,,,,,,,,7,,,,,,3,0,0,,"
	                     ",,2,,2500,,\n");
	assert_has(
		run.text,
		"\n14000,6000,vectorAdd,4242,,,gpu,launch,graph,,,,,,,,,,,7,,,,,,3,0,0,,,,2,,,,\n");
}

/* What ran before the last call that is wanted becomes known after it. */
static void test_max_events_keeps_what_ran_until_then(void **state)
{
	struct activity activity = {
		.kind = ACTIVITY_SET, .begin_ns = US(5), .end_ns = US(40), .stream = 7
	};
	struct sink_options options = { .max_events = 1 };
	struct run limited;

	open_run(&limited);
	options.out = limited.out;
	begin_run(&limited, sink_format_by_name("csv")->create(&options));
	push_call(&limited, call_at("cuInit", 10, 5));
	push_call(&limited, call_at("cudaFree", 20, 5));
	push_work(&limited, activity);
	activity.begin_ns = US(16);
	push_work(&limited, activity);
	end_run(&limited);
	assert_has(limited.text, "\n5000,35000,");
	assert_has_not(limited.text, "\n16000,");
	assert_has_not(limited.text, "cudaFree");
	close_run(&limited);
}

static void test_closed_pipe_is_an_error(void **state)
{
	struct sink_options options = { .out = closed_pipe() };
	struct err err = feed_until_error(sink_format_by_name("csv")->create(&options), 3);

	assert_int_equal(err.code, -EPIPE);
	fclose(options.out);
}

int main(void)
{
#define CSV_TEST(test) cmocka_unit_test_setup_teardown(test, begin_csv, end_csv)
	const struct CMUnitTest tests[] = {
		CSV_TEST(test_header_names_every_column),
		CSV_TEST(test_a_call_has_the_number_of_its_stack),
		CSV_TEST(test_launch_has_kernel_and_shape),
		CSV_TEST(test_free_has_the_bytes_of_its_allocation),
		CSV_TEST(test_copy_has_direction_stream_and_thread_name),
		CSV_TEST(test_flags_are_words_and_no_end_has_no_result),
		CSV_TEST(test_what_ran_on_the_gpu_is_a_row_too),
		CSV_TEST(test_a_range_has_name_domain_and_depth),
		CSV_TEST(test_work_has_the_time_that_it_waited),
		CSV_TEST(test_what_ended_before_it_began_took_no_time),
		CSV_TEST(test_hostile_names_stay_in_their_field),
		CSV_TEST(test_every_row_has_as_many_fields_as_the_header),
		cmocka_unit_test(test_kernels_that_come_late_find_their_calls),
		cmocka_unit_test(test_kernels_whose_calls_were_forgotten_are_counted),
		cmocka_unit_test(test_max_events_keeps_what_ran_until_then),
		cmocka_unit_test(test_closed_pipe_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
