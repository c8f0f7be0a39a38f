// SPDX-License-Identifier: MIT
/* The lanes, sums and lists of the timeline. */
#include "support.h"

#include <errno.h>

#include "output/timeline/timeline.h"

static struct consumer *timeline;
static int answer; /* to the last event */

static void begin(double from_us, double to_us)
{
	timeline = timeline_new(&(struct timeline_options){
		.from_ns = from_us > 0 ? US(from_us) : 0,
		.to_ns = to_us > 0 ? US(to_us) : 0,
		.columns = 20,
		.longest = 3,
	});
}

static int tear_down(void **state)
{
	consumer_free(timeline);
	return 0;
}

static void see_of(const struct process *process, uint32_t tid, struct call call)
{
	struct event event = call_event(process, tid, &call);

	answer = timeline->ops->event(timeline, &event, NULL);
}

static void see(struct call call)
{
	see_of(the_process(), 1, call);
}

static void test_the_window_is_from_the_first_call_to_the_last(void **state)
{
	const struct timeline_view *view;

	begin(0, 0);
	see_of(the_process(), 2, call_at("cudaMalloc", 500, 10));
	see(call_at("cudaDeviceSynchronize", 100, 900)); /* began earlier and ended later */
	view = timeline_view(timeline);
	assert_int_equal(view->from_ns, US(100));
	assert_int_equal(view->to_ns, US(1000));
	assert_int_equal(view->n_lanes, 2);
	assert_int_equal(view->lanes[0].tid, 1); /* in the order of first use */
	assert_int_equal(view->lanes[0].busy_ns, 900000);
	assert_int_equal(view->calls[CATEGORY_SYNC].calls, 1);
	assert_int_equal(view->calls[CATEGORY_MEMORY].ns, 10000);
}

static void test_processes_are_in_the_order_of_their_first_call(void **state)
{
	const struct process *late = new_process(1, "late"), *early = new_process(2, "early");
	const struct timeline_view *view;

	begin(0, 0);
	see_of(late, 10, call_at("cudaMalloc", 500, 1));
	see_of(early, 21, call_at("cudaMalloc", 100, 1));
	see_of(early, 22, call_at("cudaMalloc", 600, 1));
	view = timeline_view(timeline);
	assert_int_equal(view->lanes[0].tid, 21);
	assert_int_equal(view->lanes[1].tid, 22);
	assert_int_equal(view->lanes[2].tid, 10);
}

static void test_calls_count_as_far_as_they_lie_in_the_window(void **state)
{
	const struct timeline_view *view;

	begin(100, 200);
	see(call_at("cudaMalloc", 0, 90));               /* before */
	see(call_at("cudaMalloc", 95, 10));              /* 5 us of it */
	see(call_at("cudaDeviceSynchronize", 150, 100)); /* 50 us of it */
	see(call_at("cudaMalloc", 260, 10));             /* behind */
	view = timeline_view(timeline);
	assert_int_equal(view->from_ns, US(100));
	assert_int_equal(view->to_ns, US(200));
	assert_int_equal(view->all_calls, 2);
	assert_int_equal(view->calls[CATEGORY_MEMORY].ns, 5000);
	assert_int_equal(view->calls[CATEGORY_SYNC].ns, 50000);
	assert_int_equal(view->calls[CATEGORY_SYNC].longest_ns, 100000); /* as a whole */
	assert_int_equal(view->lanes[0].busy_ns, 55000);
	assert_int_equal(answer, 0);
}

static void test_reading_ends_long_after_the_window(void **state)
{
	begin(100, 200);
	see(call_at("cudaMalloc", 1000000, 1));
	assert_int_equal(answer, 0);
	see(call_at("cudaMalloc", 11000000, 1));
	assert_int_equal(answer, -ECANCELED);
}

static void test_inner_calls_are_in_the_list_only(void **state)
{
	struct call nested = call_at("cuMemAlloc_v2", 10, 5);
	const struct timeline_view *view;

	begin(0, 0);
	nested.flags |= CALL_NESTED;
	nested.depth = 1;
	see(nested);
	see(call_at("cudaMalloc", 10, 10));
	view = timeline_view(timeline);
	assert_int_equal(view->calls[CATEGORY_MEMORY].calls, 1);
	assert_int_equal(view->n_list, 2);
	assert_string_equal(view->list[0].call.function->name, "cudaMalloc"); /* outer first */
	assert_string_equal(view->list[1].call.function->name, "cuMemAlloc_v2");
}

static void test_more_calls_than_the_list_holds_give_a_narrower_window(void **state)
{
	const struct timeline_view *view;

	begin(0, 0);
	for (int i = 0; i < 10000; i++)
		see(call_at("cudaMalloc", 10.0 * i, 1));
	see(call_at("cudaDeviceSynchronize", 100000, 1000)); /* where most time is */
	see(call_at("cudaMalloc", 200000, 1));
	view = timeline_view(timeline);
	assert_int_equal(view->all_calls, 10002);
	assert_int_equal(view->n_list, 0);
	assert_true(view->narrow_to_ns > view->narrow_from_ns);
	assert_true(view->narrow_to_ns - view->narrow_from_ns < 200 * 11000);
}

static void test_the_last_call_that_the_list_holds(void **state)
{
	begin(0, 0);
	for (int i = 0; i < TIMELINE_LIST; i++)
		see(call_at("cudaMalloc", 10.0 * i, 1));
	assert_int_equal(timeline_view(timeline)->n_list, TIMELINE_LIST);
}

static void test_activities_have_lanes_by_device_and_stream(void **state)
{
	struct activity activity = { .kind = ACTIVITY_KERNEL,
		                     .begin_ns = US(10),
		                     .end_ns = US(30),
		                     .device = 1,
		                     .stream = 13 };
	struct event event = activity_event(the_process(), &activity);
	const struct timeline_view *view;

	begin(0, 0);
	answer = timeline->ops->event(timeline, &event, NULL);
	activity.kind = ACTIVITY_COPY;
	activity.begin_ns = US(40);
	activity.end_ns = US(45);
	answer = timeline->ops->event(timeline, &event, NULL);
	see(call_at("cudaMalloc", 0, 50));
	view = timeline_view(timeline);
	assert_int_equal(view->n_lanes, 2);
	assert_int_equal(view->lanes[0].kind, LANE_THREAD); /* threads before GPUs */
	assert_int_equal(view->lanes[1].kind, LANE_GPU);
	assert_int_equal(view->lanes[1].device, 1);
	assert_int_equal(view->lanes[1].stream, 13);
	assert_int_equal(view->lanes[1].busy_ns, 25000);
	assert_int_equal(view->gpu[CATEGORY_KERNEL].ns, 20000);
	assert_int_equal(view->gpu[CATEGORY_TRANSFER].ns, 5000);
}

/* Activities become known up to seconds after calls that were made later. */
static void test_late_activities_are_waited_for(void **state)
{
	struct activity activity = {
		.kind = ACTIVITY_KERNEL, .begin_ns = US(110), .end_ns = US(150), .stream = 7
	};
	struct event event = activity_event(the_process(), &activity);

	begin(100, 200);
	see(call_at("cudaMalloc", 100, 5));
	see(call_at("cudaMalloc", 6000000, 1)); /* six seconds */
	assert_int_equal(answer, 0);
	answer = timeline->ops->event(timeline, &event, NULL);
	assert_int_equal(timeline_view(timeline)->gpu[CATEGORY_KERNEL].ns, 40000);
}

static void test_threads_beyond_the_lanes_share_one(void **state)
{
	const struct timeline_view *view;

	begin(0, 0);
	for (uint32_t tid = 1; tid <= TIMELINE_LANES + 30; tid++)
		see_of(the_process(), tid, call_at("cudaMalloc", 10.0 * tid, 1));
	view = timeline_view(timeline);
	assert_int_equal(view->n_lanes, TIMELINE_LANES + 1);
	assert_int_equal(view->lanes[TIMELINE_LANES].kind, LANE_OTHERS);
	assert_int_equal(view->lanes[TIMELINE_LANES].calls, 30);
}

static void test_a_call_without_end_is_a_point_where_it_began(void **state)
{
	struct call endless = call_at("cudaDeviceSynchronize", 100, 10);
	const struct timeline_view *view;

	begin(0, 0);
	see(call_at("cudaMalloc", 0, 10));
	never_ends(&endless, CALL_UNFINISHED);
	see(endless);
	view = timeline_view(timeline);
	assert_int_equal(view->unfinished, 1);
	assert_int_equal(view->to_ns, US(100) + 1);
	assert_int_equal(view->calls[CATEGORY_SYNC].ns, 0);
}

static void test_categories(void **state)
{
	assert_int_equal(category_of(the_function("cuInit")), CATEGORY_INIT);
	assert_int_equal(category_of(the_function("cuMemAlloc_v2")), CATEGORY_MEMORY);
	assert_int_equal(category_of(the_function("cudaMemcpyAsync")), CATEGORY_TRANSFER);
	assert_int_equal(category_of(the_function("cuLaunchKernel")), CATEGORY_KERNEL);
	assert_int_equal(category_of(the_function("cudaGraphLaunch")), CATEGORY_KERNEL);
	assert_int_equal(category_of(the_function("cudaStreamSynchronize")), CATEGORY_SYNC);
	assert_int_equal(category_of(the_function("cuCtxCreate_v2")), CATEGORY_CONTEXT);
	assert_int_equal(category_of(the_function("cudaEventRecord")), CATEGORY_STREAM);
	assert_int_equal(category_of(the_function("cuModuleLoadData")), CATEGORY_MODULE);
	assert_int_equal(category_of(the_function("cuSomethingNew")), CATEGORY_OTHER);
}

/* ---- as text ------------------------------------------------------------------------------- */

static void print(struct buf *out, size_t width, bool utf8)
{
	struct run_info run = default_run_info();
	struct timeline_text_options options = { .width = width, .utf8 = utf8, .file = "x" };

	timeline_text(timeline_view(timeline), &run, &options, out);
}

static void test_text_of_a_chart(void **state)
{
	struct buf out = { 0 };

	timeline = timeline_new(&(struct timeline_options){
		.from_ns = US(1000), .to_ns = US(2000), .columns = timeline_text_columns(47) });
	see(call_at("cudaMalloc", 1000, 250));
	see(call_at("cudaMemcpy", 1250, 100)); /* then nothing for a while */
	see(call_at("cudaDeviceSynchronize", 1510, 490));
	print(&out, 47, false); /* a table that is too wide goes on in a next line */
	assert_has(out.data, "x: 1.000 ms to 2.000 ms of 1.500 s, a column is 52.63 us\n");
	assert_has(out.data, "\nvectorAdd (pid 4242)\n"
	                     "  1               MMMMMTT..sSSSSSSSSS   84.0 %\n");
	assert_has(out.data, "\n  sync             1  490.00 us  58.3\n"
	                     "    490.00 us  490.00 us  ####");
	buf_free(&out);
}

static void test_text_of_nothing(void **state)
{
	struct buf out = { 0 };

	begin(0, 0);
	print(&out, 80, true);
	assert_string_equal(out.data, "x: no CUDA calls in this window\n");
	buf_free(&out);
}

static void test_text_of_one_moment(void **state)
{
	struct call only = call_at("cuInit", 5, 0);
	struct buf out = { 0 };

	begin(0, 0);
	see(only);
	print(&out, 80, true);
	assert_has(out.data, "I init");
	buf_free(&out);
}

#define TEST(name) cmocka_unit_test_teardown(name, tear_down)

static void test_text_without_returns_knows_no_durations(void **state)
{
	struct run_info run = default_run_info();
	struct timeline_text_options options = { .width = 80, .file = "x" };
	struct call call = call_at("cudaMalloc", 1000, 0);
	struct buf out = { 0 };

	run.returns = false;
	never_ends(&call, CALL_NO_RETURN);
	begin(0, 0);
	see(call);
	timeline_text(timeline_view(timeline), &run, &options, &out);
	assert_has(out.data, "  memory_mgmt      1     -  -        -        -  \n");
	buf_free(&out);
}

/* A window of a recording: its first calls had begun before it. */
static void test_text_proposes_no_time_before_the_trace(void **state)
{
	struct run_info run = default_run_info();
	struct timeline_text_options options = { .width = 80, .file = "x" };
	struct buf out = { 0 };

	run.begin_ns = US(1000000);
	begin(0, 0);
	for (int i = 0; i < 2 * TIMELINE_LIST; i++)
		see(call_at("cudaMalloc", 999000 + i % 100, 1100 - i % 100));
	timeline_text(timeline_view(timeline), &run, &options, &out);
	assert_has(out.data, "--from=0.000000ms --to=0.");
	buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_the_window_is_from_the_first_call_to_the_last),
		TEST(test_processes_are_in_the_order_of_their_first_call),
		TEST(test_calls_count_as_far_as_they_lie_in_the_window),
		TEST(test_reading_ends_long_after_the_window),
		TEST(test_inner_calls_are_in_the_list_only),
		TEST(test_more_calls_than_the_list_holds_give_a_narrower_window),
		TEST(test_the_last_call_that_the_list_holds),
		TEST(test_activities_have_lanes_by_device_and_stream),
		TEST(test_late_activities_are_waited_for),
		TEST(test_threads_beyond_the_lanes_share_one),
		TEST(test_a_call_without_end_is_a_point_where_it_began),
		cmocka_unit_test(test_categories),
		TEST(test_text_of_a_chart),
		TEST(test_text_of_nothing),
		TEST(test_text_of_one_moment),
		TEST(test_text_without_returns_knows_no_durations),
		TEST(test_text_proposes_no_time_before_the_trace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
