// SPDX-License-Identifier: MIT
/* The jsonl format of calls. */
#include "support.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/array.h"
#include "failing_output.h"
#include "output/sink.h"

static struct run run;

static void begin_jsonl(struct sink_options options)
{
	open_run(&run);
	options.out = run.out;
	begin_run(&run, sink_format_by_name("jsonl")->create(&options));
}

/* The `n`th line of what was written, from 1; cut out of it. */
static const char *line(size_t n)
{
	static char text[4096];
	const char *at = run.text;

	while (--n && at)
		at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL;
	assert_non_null(at);
	snprintf(text, sizeof(text), "%.*s", (int)strcspn(at, "\n"), at);
	return text;
}

/* The line of one call, which is the second: the first is about the trace. */
static void assert_call_line(struct call call, const char *expected)
{
	begin_jsonl((struct sink_options){ 0 });
	push_call(&run, call);
	end_run(&run);
	assert_string_equal(line(2), expected);
	close_run(&run);
}

static struct call vector_add(double at_us)
{
	return launch_at("cuLaunchKernel", at_us, new_kernel("vectorAdd(float const*, int)", true));
}

static void test_plain_call(void **state)
{
	assert_call_line(call_at("cudaDeviceSynchronize", 12.345, 250.5),
	                 "{\"event_id\":2,\"ts\":0.012345,\"tid\":4243,\"phase\":\"X\","
	                 "\"type\":\"userspace\",\"name\":\"cudaDeviceSynchronize\",\"depth\":0,"
	                 "\"duration_us\":250.500,\"retval\":0,"
	                 "\"pid\":4242,\"comm\":\"vectorAdd\",\"lib\":\"libcudart.so.13\","
	                 "\"layer\":\"runtime\",\"class\":\"sync\",\"op\":\"sync\"}");
}

static void push_sample(const struct stack *stack, uint32_t kind)
{
	const struct sample sample = { (enum sample_kind)kind, 1500, stack };
	const struct event event = { .type = EVENT_SAMPLE,
		                     .time_ns = US(2),
		                     .process = the_process(),
		                     .tid = 4243,
		                     .sample = &sample };

	push(&run, &event);
}

static void test_a_stack_is_told_once_before_what_refers_to_it(void **state)
{
	const struct stack_frame inner = { 0, FRAME_PYTHON, true, "f\"", "lib", "f.py", 3, 2, 16 };
	const struct stack_frame outer = { .id = 1 }, *frames[] = { &inner, &outer };
	const struct stack stack = { 5, STACK_NO_TABLE, true, 2, frames };

	begin_jsonl((struct sink_options){ 0 });
	push_sample(&stack, SAMPLE_CPU);
	push_sample(&stack, SAMPLE_OFF_CPU);
	push_sample(NULL, SAMPLE_CPU);
	end_run(&run);
	assert_string_equal(line(2),
	                    "{\"event_id\":2,\"ts\":0.002000,\"type\":\"stack\",\"stack\":5,"
	                    "\"whole\":false,\"ends_at\":\"a file without unwind "
	                    "tables\",\"python_cut\":true,\"frames\":[{\"kind\":\"python\","
	                    "\"function\":\"f\\\"\",\"module\":\"lib\",\"file\":\"f.py\","
	                    "\"line\":3,\"first_line\":2,\"offset\":\"0x10\","
	                    "\"inlined\":true},{\"kind\":\"native\"}]}");
	assert_string_equal(line(3),
	                    "{\"event_id\":3,\"ts\":0.002000,\"tid\":4243,\"type\":\"sample\","
	                    "\"op\":\"cpu\",\"weight_us\":1.500,\"pid\":4242,"
	                    "\"comm\":\"vectorAdd\",\"stack\":5}");
	assert_string_equal(
		line(4),
		"{\"event_id\":4,\"ts\":0.002000,\"tid\":4243,\"type\":\"sample\","
		"\"op\":\"off_cpu\",\"weight_us\":1.500,\"blocked\":\"unknown\",\"pid\":4242,"
		"\"comm\":\"vectorAdd\",\"stack\":5}");
	assert_string_equal(line(5),
	                    "{\"event_id\":5,\"ts\":0.002000,\"tid\":4243,\"type\":\"sample\","
	                    "\"op\":\"cpu\",\"weight_us\":1.500,\"pid\":4242,"
	                    "\"comm\":\"vectorAdd\"}");
	close_run(&run);
}

static void test_samples_are_no_failed_calls(void **state)
{
	begin_jsonl((struct sink_options){ .failed_only = true });
	push_sample(NULL, SAMPLE_CPU);
	end_run(&run);
	assert_null(strstr(run.text, "sample"));
	close_run(&run);
}

static void test_launch(void **state)
{
	struct call call = vector_add(1000);

	call.args.shmem_bytes = 1024;
	set_stream(&call, 0x55);
	assert_call_line(call, "{\"event_id\":2,\"ts\":1.000000,\"tid\":4243,\"phase\":\"X\","
	                       "\"type\":\"kernel\",\"name\":\"cuLaunchKernel\",\"depth\":0,"
	                       "\"duration_us\":5.000,\"retval\":0,"
	                       "\"pid\":4242,\"comm\":\"vectorAdd\",\"lib\":\"libcuda.so.1\","
	                       "\"layer\":\"driver\",\"class\":\"launch\",\"op\":\"launch\","
	                       "\"kernel\":\"vectorAdd(float const*, int)\",\"handle\":\"0x55d0\","
	                       "\"grid\":[196,1,1],\"block\":[256,1,1],\"threads\":50176,"
	                       "\"shmem\":1024,\"async\":true,\"stream\":\"0x55\"}");
}

static void test_threads_of_the_largest_grid_do_not_overflow(void **state)
{
	struct call call = vector_add(1);

	call.args.grid[0] = 2147483647;
	call.args.block[0] = 1024;
	begin_jsonl((struct sink_options){ 0 });
	push_call(&run, call);
	end_run(&run);
	assert_has(line(2), "\"threads\":2199023254528,");
	close_run(&run);
}

static void test_allocation_and_free_follow_the_live_bytes(void **state)
{
	struct call other_thread = free_at("cuMemFree_v2", 50, 0x7f0000000000);

	begin_jsonl((struct sink_options){ 0 });
	push_call(&run, alloc_at("cudaMalloc", 10, 0x7f0000000000, 4096));
	push_call(&run, alloc_at("cudaMallocHost", 30, 0x7f0000100000, 100));
	push_call_of(&run, the_process(), 9999, &other_thread);
	end_run(&run);
	assert_has(line(2), "\"type\":\"memory\",\"name\":\"cudaMalloc\",");
	assert_has(line(2), "\"op\":\"alloc\",\"memory\":\"device\",\"size\":4096,"
	                    "\"ptr\":\"0x7f0000000000\",\"total_allocated\":4096}");
	assert_has(line(3), "\"memory\":\"host\",\"size\":100,\"ptr\":\"0x7f0000100000\","
	                    "\"total_allocated\":4196}");
	assert_has(line(4), "\"op\":\"free\",\"memory\":\"device\",\"size\":4096,"
	                    "\"ptr\":\"0x7f0000000000\",\"total_allocated\":100}");
	close_run(&run);
}

static void test_live_bytes_include_calls_that_a_filter_left_out(void **state)
{
	struct call failed = alloc_at("cudaMalloc", 30, 0, 1 << 20);

	fail_call(&failed, 2);
	begin_jsonl((struct sink_options){ .failed_only = true });
	push_call(&run, alloc_at("cudaMalloc", 10, 0x7f0000000000, 4096));
	push_call(&run, failed);
	end_run(&run);
	assert_has(line(2), "\"retval\":2,\"error\":\"cudaErrorMemoryAllocation\",");
	assert_has(line(2), "\"size\":1048576,\"total_allocated\":4096}");
	close_run(&run);
}

static void test_transfer_that_is_waited_for_has_a_bandwidth(void **state)
{
	begin_jsonl((struct sink_options){ 0 });
	push_call(&run, copy_at("cudaMemcpy", 1, DIRECTION_D2H, 100000));
	push_call(&run, copy_at("cudaMemcpyAsync", 1, DIRECTION_H2D, 100000));
	end_run(&run);
	assert_has(line(2), "\"op\":\"copy\",\"direction\":\"D2H\",\"size\":100000,"
	                    "\"duration_ms\":0.010000,\"bandwidth_gbps\":10.000000,"
	                    "\"dst\":\"0x7f0000001000\",\"src\":\"0x5500\"}");
	assert_has(line(3), "\"direction\":\"H2D\",\"size\":100000,\"dst\":");
	assert_has_not(line(3), "bandwidth");
	close_run(&run);
}

static void test_a_size_that_the_call_does_not_say_is_null(void **state)
{
	struct call call = copy_at("cudaMemcpy", 1, DIRECTION_D2H, 0);

	call.flags |= CALL_SIZE_UNKNOWN;
	begin_jsonl((struct sink_options){ 0 });
	push_call(&run, call);
	end_run(&run);
	assert_has(line(2), "\"direction\":\"D2H\",\"size\":null,\"dst\":");
	close_run(&run);
}

static void test_a_bandwidth_that_cannot_be_is_the_largest_number(void **state)
{
	struct call call = copy_at("cudaMemcpy", 1, DIRECTION_D2H, UINT64_MAX);

	call.end_ns = call.begin_ns + 1;
	begin_jsonl((struct sink_options){ 0 });
	push_call(&run, call);
	end_run(&run);
	assert_has(line(2), "\"bandwidth_gbps\":18446744073709.551615,");
	close_run(&run);
}

static void test_other_arguments_are_in_args(void **state)
{
	struct call call = call_at("cuModuleGetFunction", 1, 1);

	set_arg(&call, "hfunc", 0x55d0);
	set_arg(&call, "hmod", 0x99);
	call.text = "a\"b";
	begin_jsonl((struct sink_options){ 0 });
	push_call(&run, call);
	fail_call(&call, 500);
	push_call(&run, call);
	end_run(&run);
	assert_has(line(2), "\"op\":\"name_kernel\","
	                    "\"args\":{\"hfunc\":\"0x55d0\",\"hmod\":\"0x99\","
	                    "\"name\":\"a\\\"b\"}}");
	assert_has(line(3), "\"args\":{\"hmod\":\"0x99\",\"name\":\"a\\\"b\"}}");
	close_run(&run);
}

static void test_flags_are_keys(void **state)
{
	struct call nested = call_at("cuCtxSynchronize", 1, 1), captured = vector_add(1);
	struct call unfinished = nested;

	nested.flags |= CALL_NESTED;
	nested.depth = 1;
	captured.flags |= CALL_CAPTURED;
	never_ends(&unfinished, CALL_UNFINISHED);
	begin_jsonl((struct sink_options){ 0 });
	push_call(&run, nested);
	push_call(&run, captured);
	push_call(&run, unfinished);
	end_run(&run);
	assert_has(line(2), "\"depth\":1,");
	assert_has(line(2), ",\"nested\":true}");
	assert_has(line(3), ",\"captured\":true}");
	assert_has(line(4), ",\"unfinished\":true}");
	assert_has_not(line(4), "duration_us");
	close_run(&run);
}

static void test_a_kernel_name_that_is_found_late_is_not_kept_from_before(void **state)
{
	struct kernel *kernel = new_kernel("0x55d0", false);

	begin_jsonl((struct sink_options){ 0 });
	push_call(&run, launch_at("cuLaunchKernel", 1, kernel));
	kernel->name = "found()";
	kernel->resolved = true;
	push_call(&run, launch_at("cuLaunchKernel", 2, kernel));
	end_run(&run);
	assert_has(line(2), "\"kernel\":\"0x55d0\",\"unresolved\":true,");
	assert_has(line(3), "\"kernel\":\"found()\",\"handle\"");
	close_run(&run);
}

static void test_first_and_last_line_are_about_the_trace(void **state)
{
	static const struct miss miss = { MISS_NOT_HOOKED, "cuA", "libcuda.so.1", 0, "data", 0 };

	begin_jsonl((struct sink_options){ 0 });
	run.info.lost[LOST_RING_FULL] = 7;
	run.info.misses = &miss;
	run.info.n_misses = 1;
	end_run(&run);
	assert_string_equal(
		run.text, "{\"event_id\":1,\"ts\":0.000000,\"type\":\"trace\",\"format\":1,"
			  "\"realtime_ns\":1800000000000000000}\n"
			  "{\"event_id\":2,\"ts\":1500.000000,\"type\":\"summary\","
			  "\"duration_ms\":1500.000000,\"calls\":0,\"returns\":true,"
			  "\"estimate_scale\":1.000000,\"complete\":false,"
			  "\"lost\":{\"ring_full\":7,\"threads_full\":0,\"no_entry\":0,"
			  "\"too_deep\":0,\"unreadable\":0,\"late\":0,"
			  "\"gpu_ring_full\":0,\"gpu_buffers\":0,\"gpu_bad_times\":0,"
			  "\"records\":0,\"processes_full\":0,\"texts\":0,\"not_run\":0,"
			  "\"gpu_no_call\":0,\"gpu_bad_records\":0,\"no_room\":0,"
			  "\"no_answer\":0,\"over_budget\":0,\"gpu_not_recorded\":0,\"moments\":0,"
			  "\"calls_over_budget\":0},"
			  "\"hooks\":[{\"kind\":\"not_hooked\",\"name\":\"cuA\","
			  "\"lib\":\"libcuda.so.1\",\"why\":\"data\"}]}\n");
	close_run(&run);
}

static void test_processes_have_lines(void **state)
{
	const struct process *hostile = new_process(77, "a\"\033b");

	begin_jsonl((struct sink_options){ 0 });
	push_process(&run, hostile, 1);
	push_exit(&run, hostile, 2);
	end_run(&run);
	assert_string_equal(line(2), "{\"event_id\":2,\"ts\":0.001000,\"tid\":77,"
	                             "\"type\":\"process\",\"op\":\"start\",\"pid\":77,"
	                             "\"comm\":\"a\\\"\\u001bb\"}");
	assert_has(line(3), "\"op\":\"exit\"");
	close_run(&run);
}

/* ---- begin and end ------------------------------------------------------------------------- */

static void push_begin(struct call call)
{
	push(&run, &(struct event){ .type = EVENT_CALL_BEGIN,
	                            .time_ns = call.begin_ns,
	                            .process = the_process(),
	                            .tid = 4243,
	                            .call = &call });
}

static void test_begin_and_end_are_lines_of_their_own(void **state)
{
	struct call call = call_at("cudaDeviceSynchronize", 1, 2);

	begin_jsonl((struct sink_options){ .begin_end = true });
	push_begin(call);
	push_call(&run, call);
	end_run(&run);
	assert_string_equal(line(2),
	                    "{\"event_id\":2,\"ts\":0.001000,\"tid\":4243,\"phase\":\"B\","
	                    "\"type\":\"userspace\",\"name\":\"cudaDeviceSynchronize\",\"depth\":0,"
	                    "\"pid\":4242,\"comm\":\"vectorAdd\",\"lib\":\"libcudart.so.13\","
	                    "\"layer\":\"runtime\",\"class\":\"sync\"}");
	assert_has(line(3), "\"ts\":0.003000,\"tid\":4243,\"phase\":\"E\",");
	assert_has(line(3), "\"duration_us\":2.000,\"retval\":0,");
	close_run(&run);
}

static void test_a_filter_by_the_end_writes_pairs_at_the_end(void **state)
{
	struct call good = call_at("cuInit", 1, 2), bad = call_at("cudaFree", 4, 1);

	fail_call(&bad, 1);
	begin_jsonl((struct sink_options){ .begin_end = true, .failed_only = true });
	push_begin(good);
	push_call(&run, good);
	push_begin(bad);
	push_call(&run, bad);
	end_run(&run);
	assert_has_not(run.text, "cuInit");
	assert_has(line(2), "\"ts\":0.004000,\"tid\":4243,\"phase\":\"B\",");
	assert_has(line(3), "\"ts\":0.005000,\"tid\":4243,\"phase\":\"E\",");
	close_run(&run);
}

static void test_entry_only_calls_are_never_half_of_a_pair(void **state)
{
	struct call call = call_at("cuInit", 1, 1);

	never_ends(&call, CALL_NO_RETURN);
	begin_jsonl((struct sink_options){ .begin_end = true });
	push_begin(call);
	push_call(&run, call);
	end_run(&run);
	assert_has(line(2), "\"phase\":\"X\"");
	assert_has(line(3), "\"type\":\"summary\"");
	close_run(&run);
}

/* ---- the schema ---------------------------------------------------------------------------- */

#define CHECK "python3 tests/schema/check.py docs/jsonl.schema.json - > /dev/null"

/* One call of every shape, with what makes it special. */
static void push_all_shapes(void)
{
	static const char *const names[] = {
		"cuInit",
		"cudaMalloc",
		"cudaMallocAsync",
		"cudaMallocManaged",
		"cudaHostAlloc",
		"cudaMallocPitch",
		"cuMemCreate",
		"cuMemAddressReserve",
		"cudaFree",
		"cuMemRelease",
		"cudaMemcpy",
		"cudaMemcpyAsync",
		"cudaMemcpy2D",
		"cudaMemsetAsync",
		"cudaLaunchKernel",
		"cuLaunchKernelEx",
		"cudaLaunchHostFunc",
		"cudaGraphLaunch",
		"cudaStreamCreateWithFlags",
		"cudaStreamDestroy",
		"cudaStreamBeginCapture",
		"cudaStreamEndCapture",
		"cudaEventRecord",
		"cudaStreamWaitEvent",
		"cudaEventElapsedTime",
		"cuModuleGetFunction",
		"cuModuleUnload",
		"cudaDeviceReset",
		"__cudaRegisterFunction",
		"cuOfTomorrow",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct call call = call_at(names[i], 10.0 * (double)i, 5);

		call.text = "text";
		push_begin(call);
		push_call(&run, call);
		fail_call(&call, 1);
		push_call(&run, call);
		call.flags = 0;
		never_ends(&call, CALL_UNFINISHED);
		push_call(&run, call);
		never_ends(&call, CALL_NO_RETURN);
		call.flags = CALL_NO_RETURN | CALL_NESTED;
		push_call(&run, call);
	}
}

/* Of every kind, once with little and once with much to say. */
static void push_work_and_ranges(void)
{
	struct call call = vector_add(1);

	call.correlation = 5;
	push_call(&run, call);
	for (int much = 0; much < 2; much++) {
		for (int kind = 0; kind < ACTIVITY_COUNT; kind++) {
			struct activity activity = { .kind = (enum activity_kind)kind,
				                     .begin_ns = US(20),
				                     .end_ns = US(20 + much),
				                     .kernel = much ? new_kernel("k", false) : NULL,
				                     .correlation = much ? 5 : 0,
				                     .bytes = 64,
				                     .direction =
				                             much ? DIRECTION_P2P : DIRECTION_NONE,
				                     .graph = (uint64_t)much,
				                     .graph_node = (uint64_t)much };

			push_work(&run, activity);
		}
		for (int kind = 0; kind < RANGE_COUNT; kind++) {
			struct range range = { .kind = (enum range_kind)kind,
				               .begin_ns = US(20),
				               .end_ns = US(20 + much),
				               .name = much ? "a\"\x1b" : "",
				               .domain = much ? "NCCL" : NULL,
				               .context = (uint32_t)much,
				               .stream = (uint32_t)much,
				               .correlation = (uint64_t)much };

			push_range(&run, much ? 4243 : 0, range);
		}
	}
}

static void test_every_line_fits_the_schema(void **state)
{
	FILE *check;

	if (system("python3 -c '' 2> /dev/null"))
		SKIP("python3 is not here");
	for (int begin_end = 0; begin_end < 2; begin_end++) {
		begin_jsonl((struct sink_options){ .begin_end = begin_end });
		push_process(&run, the_process(), 0);
		push_all_shapes();
		push_call(&run, vector_add(1));
		push_call(&run, copy_at("cudaMemcpy", 1, DIRECTION_P2P, 1));
		push_work_and_ranges();
		push_exit(&run, the_process(), 1);
		end_run(&run);
		check = popen(CHECK, "w"); /* from the top of the source tree */
		fputs(run.text, check);
		assert_int_equal(pclose(check), 0);
		close_run(&run);
	}
}

/* ---- write errors -------------------------------------------------------------------------- */

static void test_full_disk_is_an_error_that_says_so(void **state)
{
	struct sink_options options = { .out = full_disk() };
	struct err err = feed_until_error(sink_format_by_name("jsonl")->create(&options), 1);

	assert_int_equal(err.code, -ENOSPC);
	fclose(options.out);
}

static void test_closed_pipe_is_an_error_that_says_so(void **state)
{
	struct sink_options options = { .out = closed_pipe() };
	struct err err = feed_until_error(sink_format_by_name("jsonl")->create(&options), 1);

	assert_int_equal(err.code, -EPIPE);
	assert_has(err.text, "closed");
	fclose(options.out);
}

static void test_a_file_that_cannot_grow_ends_with_a_whole_line(void **state)
{
	struct sink_options options = { .out = tmpfile() };
	struct stat st;
	struct err err;
	char last[2] = "";

	limit_file_size(100000);
	err = feed_until_error(sink_format_by_name("jsonl")->create(&options), 5000);
	unlimit_file_size();
	assert_int_equal(err.code, -EFBIG);
	assert_int_equal(fstat(fileno(options.out), &st), 0);
	assert_in_range(st.st_size, 90000, 100000);
	assert_int_equal(pread(fileno(options.out), last, 2, st.st_size - 2), 2);
	assert_memory_equal(last, "}\n", 2);
	fclose(options.out);
}

static void test_lines_are_there_after_a_flush(void **state)
{
	struct err err = { 0 };

	begin_jsonl((struct sink_options){ 0 });
	push_call(&run, call_at("cuInit", 1, 1));
	assert_int_equal(run.consumer->ops->flush(run.consumer, &err), 0);
	assert_has(run.text, "\"name\":\"cuInit\"");
	end_run(&run);
	close_run(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain_call),
		cmocka_unit_test(test_launch),
		cmocka_unit_test(test_threads_of_the_largest_grid_do_not_overflow),
		cmocka_unit_test(test_allocation_and_free_follow_the_live_bytes),
		cmocka_unit_test(test_live_bytes_include_calls_that_a_filter_left_out),
		cmocka_unit_test(test_transfer_that_is_waited_for_has_a_bandwidth),
		cmocka_unit_test(test_a_bandwidth_that_cannot_be_is_the_largest_number),
		cmocka_unit_test(test_a_size_that_the_call_does_not_say_is_null),
		cmocka_unit_test(test_other_arguments_are_in_args),
		cmocka_unit_test(test_flags_are_keys),
		cmocka_unit_test(test_a_stack_is_told_once_before_what_refers_to_it),
		cmocka_unit_test(test_samples_are_no_failed_calls),
		cmocka_unit_test(test_a_kernel_name_that_is_found_late_is_not_kept_from_before),
		cmocka_unit_test(test_first_and_last_line_are_about_the_trace),
		cmocka_unit_test(test_processes_have_lines),
		cmocka_unit_test(test_begin_and_end_are_lines_of_their_own),
		cmocka_unit_test(test_a_filter_by_the_end_writes_pairs_at_the_end),
		cmocka_unit_test(test_entry_only_calls_are_never_half_of_a_pair),
		cmocka_unit_test(test_every_line_fits_the_schema),
		cmocka_unit_test(test_full_disk_is_an_error_that_says_so),
		cmocka_unit_test(test_closed_pipe_is_an_error_that_says_so),
		cmocka_unit_test(test_a_file_that_cannot_grow_ends_with_a_whole_line),
		cmocka_unit_test(test_lines_are_there_after_a_flush),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
