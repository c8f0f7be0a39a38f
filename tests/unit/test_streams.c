// SPDX-License-Identifier: MIT
/* What each stream did. */
#include "support.h"

#include "analysis/streams.h"

static struct consumer *streams;

static int set_up(void **state)
{
	streams = streams_new(NULL);
	return 0;
}

static int tear_down(void **state)
{
	consumer_free(streams);
	return 0;
}

static void see(struct call call)
{
	struct event event = call_event(the_process(), 1, &call);

	feed(streams, &event);
}

static struct call on(struct call call, uint64_t stream)
{
	set_stream(&call, stream);
	return call;
}

static void run(uint32_t stream, uint64_t correlation, double begin_us, double end_us)
{
	struct activity activity = { .kind = ACTIVITY_KERNEL,
		                     .begin_ns = US(begin_us),
		                     .end_ns = US(end_us),
		                     .correlation = correlation,
		                     .context = 1,
		                     .stream = stream };
	struct event event = activity_event(the_process(), &activity);

	feed(streams, &event);
}

static void assert_name(const struct stream_row *row, const char *name)
{
	struct buf out = { 0 };

	stream_name(row, &out);
	assert_string_equal(out.data, name);
	buf_free(&out);
}

static void test_work_counts_for_the_stream_it_was_put_on(void **state)
{
	const struct stream_row *rows;
	size_t n;

	see(launch_at("cuLaunchKernel", 10, NULL)); /* 5 us, the default stream */
	see(on(launch_at("cuLaunchKernel", 20, NULL), 0x55d0));
	see(on(copy_at("cudaMemcpyAsync", 30, DIRECTION_H2D, 4096), 0x55d0));
	see(on(call_at("cudaStreamSynchronize", 50, 100), 0x55d0));
	see(copy_at("cudaMemcpy", 200, DIRECTION_D2H, 512)); /* names no stream */
	rows = streams_rows(streams, &n);
	assert_int_equal(n, 2);
	assert_name(&rows[0], "default");
	assert_int_equal(rows[0].launches, 1);
	assert_int_equal(rows[0].copies.bytes, 512);
	assert_int_equal(rows[0].first_ns, US(10));
	assert_int_equal(rows[0].last_ns, US(210));
	assert_name(&rows[1], "0x55d0");
	assert_int_equal(rows[1].launches, 1);
	assert_int_equal(rows[1].copies.count, 1);
	assert_int_equal(rows[1].copies.bytes, 4096);
	assert_int_equal(rows[1].syncs, 1);
	assert_int_equal(rows[1].sync_ns, 100000);
	assert_int_equal(rows[1].first_ns, US(20));
	assert_int_equal(rows[1].last_ns, US(150));
}

static void test_default_streams_have_names(void **state)
{
	const struct stream_row *rows;
	size_t n;

	see(on(launch_at("cuLaunchKernel", 1, NULL), 1));
	see(on(launch_at("cuLaunchKernel", 10, NULL), 2));
	see(on(launch_at("cuLaunchKernel_ptsz", 20, NULL), 0));
	rows = streams_rows(streams, &n);
	assert_int_equal(n, 2);
	assert_name(&rows[0], "legacy");
	assert_name(&rows[1], "per-thread 1");
	assert_int_equal(rows[1].launches, 2);
}

static void test_what_did_not_happen_is_not_on_a_stream(void **state)
{
	struct call failed = launch_at("cuLaunchKernel", 1, NULL), captured = failed;
	size_t n;

	fail_call(&failed, 1);
	captured.flags |= CALL_CAPTURED;
	see(failed);
	see(captured);
	see(call_at("cudaDeviceSynchronize", 5, 10)); /* of all streams and none */
	streams_rows(streams, &n);
	assert_int_equal(n, 0);
}

static void test_activities_go_to_the_stream_of_their_call(void **state)
{
	struct call launch = on(launch_at("cuLaunchKernel", 1, NULL), 0x55d0);
	const struct stream_row *rows;
	size_t n;

	launch.correlation = 77;
	see(launch);
	run(13, 77, 10, 20);
	run(13, 78, 15, 30); /* its call was not seen, its stream is known by now */
	run(14, 79, 10, 40); /* nothing is known of this one */
	rows = streams_rows(streams, &n);
	assert_int_equal(n, 2);
	assert_name(&rows[0], "0x55d0");
	assert_int_equal(rows[0].activities, 2);
	assert_int_equal(rows[0].busy_ns, 20000); /* the overlap once */
	assert_int_equal(rows[0].last_ns, US(30));
	assert_name(&rows[1], "GPU stream 14");
	assert_int_equal(rows[1].busy_ns, 30000);
}

static void test_an_activity_may_end_before_the_call_that_waits_for_it(void **state)
{
	struct call copy = copy_at("cudaMemcpy", 10, DIRECTION_H2D, 4096);
	const struct stream_row *rows;
	size_t n;

	copy.correlation = 5;
	run(7, 5, 12, 18);
	see(copy);
	run(7, 6, 30, 40);
	rows = streams_rows(streams, &n);
	assert_int_equal(n, 1);
	assert_name(&rows[0], "default");
	assert_int_equal(rows[0].activities, 2);
	assert_int_equal(rows[0].busy_ns, 16000);
	assert_int_equal(rows[0].first_ns, US(10));
	assert_int_equal(rows[0].last_ns, US(40));
}

static void test_streams_without_end_share_a_row(void **state)
{
	const struct stream_row *rows;
	size_t n;

	for (uint64_t i = 0; i < STREAMS_MAX + 5; i++)
		see(on(launch_at("cuLaunchKernel", 10.0 * (double)i, NULL), 0x1000 + i));
	rows = streams_rows(streams, &n);
	assert_int_equal(n, STREAMS_MAX + 1);
	assert_name(&rows[STREAMS_MAX], "others");
	assert_int_equal(rows[STREAMS_MAX].launches, 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static void test_a_stream_is_known_however_many_calls_came_since(void **state)
{
	struct call first = on(launch_at("cuLaunchKernel", 10, NULL), 0x55d0);
	struct call other = launch_at("cuLaunchKernel", 20, NULL);
	size_t n;

	first.correlation = 1;
	see(first);
	for (other.correlation = 2; other.correlation <= 40000; other.correlation++)
		see(other);
	run(13, 1, 20, 30);
	assert_name(&streams_rows(streams, &n)[0], "0x55d0");
	assert_int_equal(n, 2);
	assert_int_equal(streams_rows(streams, &n)[0].activities, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_work_counts_for_the_stream_it_was_put_on),
		TEST(test_default_streams_have_names),
		TEST(test_what_did_not_happen_is_not_on_a_stream),
		TEST(test_activities_go_to_the_stream_of_their_call),
		TEST(test_an_activity_may_end_before_the_call_that_waits_for_it),
		TEST(test_streams_without_end_share_a_row),
		TEST(test_a_stream_is_known_however_many_calls_came_since),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
