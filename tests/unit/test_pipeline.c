// SPDX-License-Identifier: MIT
/* From records to calls; processes and names are in test_stream_state.c. */
#include "records.h"

/* ---- one call ------------------------------------------------------------------------------ */

static void test_a_call_has_its_function_its_times_and_its_place(void **state)
{
	struct feed *feed = *state;
	struct wire_call record = call_of(feed, "cudaDeviceSynchronize");
	const struct function *function;
	const struct call *call;

	feed_record(feed, &record);
	call = last_call(feed);
	assert_int_equal(call->begin_ns, record.begin_ns);
	assert_int_equal(call->end_ns, record.begin_ns + 100);
	assert_int_equal(call->flags, 0);
	assert_int_equal(call->depth, 0);
	assert_int_equal(last_seen(feed)->time_ns, call->end_ns);
	assert_int_equal(last_seen(feed)->process.pid, PROCESS);
	assert_int_equal(last_seen(feed)->tid, THREAD);
	function = call->function;
	assert_string_equal(function->name, "cudaDeviceSynchronize");
	assert_string_equal(function->lib, "libcudart.so.13");
	assert_int_equal(function->layer, LAYER_RUNTIME);
	assert_int_equal(function->cls, CLASS_SYNC);
}

static void test_arguments_are_decoded(void **state)
{
	struct feed *feed = *state;
	struct wire_call record = call_with(feed, "cudaMalloc", 0x7ffc0000, 1 << 20);
	const struct call *call;

	record.word[0] = 0x7f12c0000000;
	feed_record(feed, &record);
	call = last_call(feed);
	assert_int_equal(call->op, OP_ALLOC);
	assert_int_equal(call->args.address, 0x7f12c0000000);
	assert_int_equal(call->args.bytes, 1 << 20);
}

static void test_a_function_without_a_row_has_name_and_result_only(void **state)
{
	struct feed *feed = *state;
	struct wire_call record = call_with(feed, "cuFrobnicateLater", 1, 2);

	record.result = 1;
	feed_record(feed, &record);
	assert_string_equal(last_call(feed)->function->name, "cuFrobnicateLater");
	assert_string_equal(last_call(feed)->function->lib, "libcuda.so.1");
	assert_int_equal(last_call(feed)->result, 1);
	assert_int_equal(last_call(feed)->flags, CALL_FAILED);
	assert_int_equal(last_call(feed)->op, OP_NONE);
	assert_int_equal(last_call(feed)->args.n_args, 0);
}

static void test_functions_are_numbered_as_they_are_met(void **state)
{
	struct feed *feed = *state;
	const struct function *first;

	hook_of("cuNeverCalled");
	feed_call(feed, "cudaMalloc", 0, 0);
	first = last_call(feed)->function;
	assert_int_equal(first->id, 0);
	feed_call(feed, "cudaFree", 0, 0);
	assert_int_equal(last_call(feed)->function->id, 1);
	feed_call(feed, "cudaMalloc", 0, 0);
	assert_ptr_equal(last_call(feed)->function, first);
}

static void test_a_hook_that_was_never_given_out_is_ignored(void **state)
{
	struct feed *feed = *state;
	struct wire_call record = call_of(feed, "cudaMalloc");

	record.head.hook = NO_HOOK;
	feed_record(feed, &record);
	assert_seen(feed, "");
	assert_int_equal(feed->hits, 0);
}

static void test_what_could_not_be_read_is_zero(void **state)
{
	struct feed *feed = *state;
	struct wire_call record = call_with(feed, "cuMemcpy2D_v2", 0x7ffc0000, 0);

	memset(&record.word[WIRE_AT_BLOB], 0x11, sizeof(uint64_t) * WIRE_BLOB);
	record.head.flags |= WIRE_UNREADABLE;
	feed_record(feed, &record);
	assert_int_equal(last_call(feed)->args.bytes, 0);
	record.head.flags = 0;
	feed_record(feed, &record);
	assert_int_not_equal(last_call(feed)->args.bytes, 0);
}

/* ---- results ------------------------------------------------------------------------------- */

static void test_a_failed_call_is_marked_and_has_no_outputs(void **state)
{
	struct feed *feed = *state;
	struct wire_call record = call_with(feed, "cudaMalloc", 0x7ffc0000, 1 << 20);

	record.word[0] = 0x1234; /* what happened to be there */
	record.result = 2;
	feed_record(feed, &record);
	assert_int_equal(last_call(feed)->flags, CALL_FAILED);
	assert_int_equal(last_call(feed)->result, 2);
	assert_int_equal(last_call(feed)->args.address, 0);
	assert_int_equal(last_call(feed)->args.bytes, 1 << 20);
}

static void test_a_poll_that_came_too_early_did_not_fail(void **state)
{
	struct feed *feed = *state;
	struct wire_call record = call_of(feed, "cuStreamQuery");

	record.result = 600; /* CUDA_ERROR_NOT_READY */
	feed_record(feed, &record);
	assert_int_equal(last_call(feed)->result, 600);
	assert_int_equal(last_call(feed)->flags, 0);
}

static void test_what_returns_no_status_has_no_result(void **state)
{
	struct feed *feed = *state;
	struct wire_call record = call_of(feed, "cudaGetErrorString");

	record.result = 0x5500aa; /* half of a pointer */
	feed_record(feed, &record);
	assert_int_equal(last_call(feed)->result, 0);
	assert_int_equal(last_call(feed)->flags, 0);
}

/* ---- calls without an end ------------------------------------------------------------------ */

static void test_a_call_whose_return_is_not_hooked_has_no_end_and_no_result(void **state)
{
	struct feed *feed = *state;
	struct wire_call record = call_with(feed, "cudaMalloc", 0x7ffc0000, 1 << 20);

	record.head.flags = WIRE_NO_RETURN;
	record.head.time_ns = record.begin_ns;
	record.word[0] = 0x1234;
	feed_record(feed, &record);
	assert_int_equal(last_call(feed)->flags, CALL_NO_RETURN);
	assert_int_equal(last_call(feed)->end_ns, 0);
	assert_int_equal(last_call(feed)->args.address, 0);
	assert_int_equal(last_seen(feed)->time_ns, record.begin_ns);
}

static void test_a_call_that_never_returned_is_unfinished(void **state)
{
	struct feed *feed = *state;
	struct wire_call record = call_of(feed, "cudaDeviceSynchronize");

	record.head.flags = WIRE_UNFINISHED;
	record.result = 7;
	feed_record(feed, &record);
	assert_int_equal(last_call(feed)->flags, CALL_UNFINISHED);
	assert_int_equal(last_call(feed)->end_ns, 0);
	assert_int_equal(last_call(feed)->result, 0);
}

static void test_a_begin_is_an_event_of_its_own(void **state)
{
	struct feed *feed = *state;
	struct wire_call record = call_with(feed, "cudaMalloc", 0x7ffc0000, 4096);

	record.head.type = WIRE_BEGIN;
	record.head.time_ns = record.begin_ns;
	feed_record(feed, &record);
	assert_int_equal(last_call(feed)->end_ns, 0);
	assert_int_equal(last_call(feed)->args.bytes, 4096);
	record.head.type = WIRE_CALL;
	record.head.flags = WIRE_BEGUN;
	record.head.time_ns += 100;
	feed_record(feed, &record);
	assert_seen(feed, "process begin(cudaMalloc) call(cudaMalloc)");
	assert_int_equal(last_call(feed)->flags, 0);
	assert_int_equal(pipeline_calls(feed->pipeline), 1);
	assert_int_equal(feed->hits, 1);
}

/* ---- calls within calls -------------------------------------------------------------------- */

static void test_a_nested_call_is_marked(void **state)
{
	struct feed *feed = *state;
	struct wire_call record = call_of(feed, "cuMemAlloc_v2");

	nest(&record, 1);
	feed_record(feed, &record);
	assert_int_equal(last_call(feed)->flags, CALL_NESTED);
	assert_int_equal(last_call(feed)->depth, 1);
}

static void test_a_copy_that_does_not_say_its_size_has_that_of_the_call_within_it(void **state)
{
	struct feed *feed = *state;
	struct wire_call outer = call_of(feed, "cudaMemcpyBatchAsync");
	struct wire_call inner = call_of(feed, "cuMemcpyHtoD_v2");

	set_reg(&inner, 2, 4096);
	nest(&inner, 1);
	feed_record(feed, &inner);
	outer.head.time_ns = inner.head.time_ns + 100;
	feed_record(feed, &outer);
	assert_int_equal(last_call(feed)->args.bytes, 4096);
	assert_int_equal(last_call(feed)->flags & CALL_SIZE_UNKNOWN, 0);
	feed_call(feed, "cudaMemcpyBatchAsync", 0, 0); /* nothing within it */
	assert_int_equal(last_call(feed)->args.bytes, 0);
	assert_int_equal(last_call(feed)->flags & CALL_SIZE_UNKNOWN, CALL_SIZE_UNKNOWN);
}

/* ---- calls with the arguments of the one before -------------------------------------------- */

static void test_only_calls_with_the_same_words_have_arguments_of_one_number(void **state)
{
	struct feed *feed = *state;
	struct wire_call record = call_with(feed, "cudaMalloc", 0x7ffc0000, 1 << 20);
	uint64_t number;

	record.word[0] = 0x7f12c0000000;
	feed_record(feed, &record);
	number = last_call(feed)->args_number;
	assert_int_not_equal(number, 0);
	feed_call(feed, "cudaFree", 7, 0);
	assert_int_not_equal(last_call(feed)->args_number, number);
	feed_record(feed, &record);
	assert_int_equal(last_call(feed)->args_number, number);
	assert_int_equal(last_call(feed)->args.address, 0x7f12c0000000);
	record.word[WIRE_AT_REG + 1] = 4096;
	feed_record(feed, &record);
	assert_int_not_equal(last_call(feed)->args_number, number);
	assert_int_equal(last_call(feed)->args.bytes, 4096);
}

/* The words are the same, and mean another thing. */
static void test_outputs_are_those_of_calls_that_succeeded(void **state)
{
	struct feed *feed = *state;
	struct wire_call record = call_with(feed, "cudaMalloc", 0x7ffc0000, 1 << 20);

	record.word[0] = 0x7f12c0000000;
	feed_record(feed, &record);
	record.result = 2;
	feed_record(feed, &record);
	assert_int_equal(last_call(feed)->args.address, 0);
	assert_int_equal(last_call(feed)->result, 2);
	record.result = 0;
	record.head.type = WIRE_BEGIN;
	feed_record(feed, &record);
	assert_int_equal(last_call(feed)->args.address, 0);
	record.head.type = WIRE_CALL;
	feed_record(feed, &record);
	assert_int_equal(last_call(feed)->args.address, 0x7f12c0000000);
	assert_int_equal(last_call(feed)->result, 0);
	record.head.flags = WIRE_UNFINISHED;
	feed_record(feed, &record);
	assert_int_equal(last_call(feed)->end_ns, 0);
	assert_int_equal(last_call(feed)->args.address, 0);
}

static void test_a_struct_that_could_not_be_read_is_not_that_of_the_call_before(void **state)
{
	struct feed *feed = *state;
	struct wire_call record = call_of(feed, "cuLaunchKernelEx");

	record.word[WIRE_AT_BLOB] = 64 | 1ull << 32;
	feed_record(feed, &record);
	assert_int_equal(last_call(feed)->args.grid[0], 64);
	record.head.flags = WIRE_UNREADABLE;
	feed_record(feed, &record);
	assert_int_equal(last_call(feed)->args.grid[0], 0);
}

static void test_a_size_that_came_from_within_is_not_kept_for_the_next(void **state)
{
	struct feed *feed = *state;
	struct wire_call inner = call_of(feed, "cuMemcpyHtoD_v2");
	struct wire_call outer = call_of(feed, "cudaMemcpyBatchAsync");

	feed_record(feed, &outer);
	assert_int_equal(last_call(feed)->flags & CALL_SIZE_UNKNOWN, CALL_SIZE_UNKNOWN);
	for (uint64_t bytes = 100; bytes < 300; bytes += 100) {
		outer.begin_ns = feed->now_ns += 1000;
		inner.begin_ns = outer.begin_ns + 1;
		set_reg(&inner, 2, bytes);
		feed_record(feed, &inner);
		feed_record(feed, &outer);
		assert_int_equal(last_call(feed)->args.bytes, bytes);
		assert_int_equal(last_call(feed)->args_number, 0);
	}
	outer.begin_ns = feed->now_ns += 1000;
	feed_record(feed, &outer);
	assert_int_equal(last_call(feed)->args.bytes, 0);
	assert_int_equal(last_call(feed)->flags & CALL_SIZE_UNKNOWN, CALL_SIZE_UNKNOWN);
}

/* ---- what is hooked for its sake only ------------------------------------------------------ */

static void test_a_support_hook_is_not_shown_but_told_to_the_governor(void **state)
{
	struct feed *feed = *state;

	hooks[hook_of("cudaEventRecord")].group = HOOK_SUPPORT;
	feed_call(feed, "cudaEventRecord", 0xe1, 0x10);
	assert_seen(feed, "process");
	assert_int_equal(feed->hits, 1);
	assert_int_equal(pipeline_calls(feed->pipeline), 0);
	feed_call(feed, "cudaMalloc", 0, 0);
	assert_int_equal(pipeline_calls(feed->pipeline), 1);
}

/* ---- consumers ----------------------------------------------------------------------------- */

static void test_a_consumer_that_fails_stops_the_stream(void **state)
{
	struct feed *feed = *state;
	struct err err = { 0 };
	struct wire_call record = call_of(feed, "cudaMalloc");

	feed_record(feed, &record);
	feed->recorder.fail = -28;
	assert_int_equal(pipeline_record(feed->pipeline, &record.head, &err), -28);
	assert_string_equal(err.text, "event");
}

static void test_every_consumer_gets_its_end_and_the_first_failure_is_told(void **state)
{
	static struct recorder first, second;
	struct consumer *const consumers[] = { &first.consumer, &second.consumer };
	struct pipeline_options options = { .consumers = consumers, .n_consumers = 2 };
	struct pipeline *pipeline = pipeline_new(&options);
	const struct run_info run = { 0 };
	struct err err = { 0 };

	first.consumer.ops = second.consumer.ops = &recorder_ops;
	first.fail = -28;
	second.fail = -32;
	assert_int_equal(pipeline_begin(pipeline, &run, &err), 0);
	assert_int_equal(pipeline_flush(pipeline, &err), 0);
	assert_int_equal(pipeline_end(pipeline, &run, &err), -28);
	assert_string_equal(err.text, "end -28");
	assert_int_equal(first.begun + second.begun, 2);
	assert_int_equal(first.flushed + second.flushed, 2);
	assert_int_equal(first.ended, 1);
	assert_int_equal(second.ended, 1);
	pipeline_free(pipeline);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, feed_open, feed_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_call_has_its_function_its_times_and_its_place),
		TEST(test_arguments_are_decoded),
		TEST(test_a_function_without_a_row_has_name_and_result_only),
		TEST(test_functions_are_numbered_as_they_are_met),
		TEST(test_a_hook_that_was_never_given_out_is_ignored),
		TEST(test_what_could_not_be_read_is_zero),
		TEST(test_a_failed_call_is_marked_and_has_no_outputs),
		TEST(test_a_poll_that_came_too_early_did_not_fail),
		TEST(test_what_returns_no_status_has_no_result),
		TEST(test_a_call_whose_return_is_not_hooked_has_no_end_and_no_result),
		TEST(test_a_call_that_never_returned_is_unfinished),
		TEST(test_a_begin_is_an_event_of_its_own),
		TEST(test_a_nested_call_is_marked),
		TEST(test_a_copy_that_does_not_say_its_size_has_that_of_the_call_within_it),
		TEST(test_only_calls_with_the_same_words_have_arguments_of_one_number),
		TEST(test_outputs_are_those_of_calls_that_succeeded),
		TEST(test_a_struct_that_could_not_be_read_is_not_that_of_the_call_before),
		TEST(test_a_size_that_came_from_within_is_not_kept_for_the_next),
		TEST(test_a_support_hook_is_not_shown_but_told_to_the_governor),
		TEST(test_a_consumer_that_fails_stops_the_stream),
		TEST(test_every_consumer_gets_its_end_and_the_first_failure_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
