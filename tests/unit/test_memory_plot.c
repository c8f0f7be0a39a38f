// SPDX-License-Identifier: MIT
/* The picture of memory over time. */
#include "support.h"

#include <time.h>

#include "output/svg/memory_history.h"
#include "output/svg/memory_plot.h"

#define MIB (1ull << 20)

static struct memory_plot *plot;
static struct buf svg;

static int open_plot(void **state)
{
	plot = memory_plot_new(RUN_BEGIN_NS);
	return 0;
}

static int close_plot(void **state)
{
	memory_plot_free(plot);
	buf_free(&svg);
	svg = (struct buf){ 0 };
	return 0;
}

static void sample(double at_us, const struct process *process, enum api_memory kind, uint64_t live)
{
	memory_plot_sample(plot, US(at_us), process, kind, live);
}

static const char *drawn(void)
{
	memory_plot_draw(plot, &(struct memory_plot_frame){ .end_ns = US(1000000) }, &svg);
	return svg.data;
}

static const struct moment **moments(size_t *n)
{
	static const struct moment *all[3 * HISTORY_BUCKETS];

	history_settle(plot);
	*n = history_moments(plot, all);
	return all;
}

static void test_title_has_peak_and_end(void **state)
{
	sample(100, the_process(), MEMORY_DEVICE, 3 * MIB);
	sample(250000, the_process(), MEMORY_HOST, MIB);
	sample(300000, the_process(), MEMORY_DEVICE, 0);
	assert_has(drawn(),
	           "CUDA memory over time: peak 4 MiB after 250 ms, 1 MiB live at the end");
	assert_has(svg.data, "device, peak 3 MiB");
	assert_has(svg.data, "pinned host, peak 1 MiB");
	assert_has_not(svg.data, "managed");
	assert_has_not(svg.data, "By process");
}

static void test_more_than_one_process_gets_a_panel_for_processes(void **state)
{
	sample(1, new_process(10, "a<b>&\x1b[1m"), MEMORY_DEVICE, 2 * MIB);
	sample(2, new_process(11, "other"), MEMORY_DEVICE, 5 * MIB);
	assert_has(drawn(), "By process");
	assert_has(svg.data, "a&lt;b&gt;&amp;\\x1b[1m (10), peak 2 MiB");
	assert_true(strstr(svg.data, "other (11), peak") < strstr(svg.data, "(10), peak"));
}

static void test_things_at_one_time_are_one_moment(void **state)
{
	const struct process *a = new_process(20, "a"), *b = new_process(21, "b");

	sample(1, a, MEMORY_DEVICE, 8 * MIB);
	sample(5, b, MEMORY_DEVICE, 8 * MIB); /* b takes over what a had */
	sample(5, a, MEMORY_DEVICE, 0);
	history_settle(plot);
	assert_int_equal(plot->peak.total, 8 * MIB);
}

static void test_what_is_there_from_the_beginning_is_drawn(void **state)
{
	const struct moment **all;
	size_t n;

	sample(0, the_process(), MEMORY_DEVICE, 5 * MIB);
	sample(100, the_process(), MEMORY_DEVICE, 0);
	all = moments(&n);
	assert_int_equal(all[0]->time_ns, RUN_BEGIN_NS);
	assert_int_equal(all[0]->total, 5 * MIB);
	assert_int_equal(plot->peak.total, 5 * MIB);
}

static void test_nonsense_stays_in_the_picture(void **state)
{
	sample(1, the_process(), MEMORY_DEVICE, UINT64_MAX);
	sample(2, the_process(), MEMORY_DEVICE, 1);
	assert_has(drawn(), "</svg>");
	for (const char *at = svg.data; (at = strchr(at, 'V')); at++) /* of paths: a height */
		assert_true(strtol(at + 1, NULL, 10) >= 0);
}

static void test_a_trace_without_end_has_an_axis(void **state)
{
	sample(1, the_process(), MEMORY_DEVICE, MIB);
	memory_plot_draw(plot, &(struct memory_plot_frame){ .end_ns = UINT64_MAX }, &svg);
	assert_true(svg.len < 100000);
}

static void test_a_short_peak_survives_any_length_of_run(void **state)
{
	const struct moment **all;
	size_t n, peaks = 0;

	for (unsigned i = 0; i < 100000; i++) {
		sample(i * 1000.0, the_process(), MEMORY_DEVICE, MIB);
		sample(i * 1000.0 + 1, the_process(), MEMORY_DEVICE,
		       i == 60000 ? 9 * MIB : 2 * MIB);
	}
	all = moments(&n);
	assert_in_range(n, HISTORY_BUCKETS / 2, 3 * HISTORY_BUCKETS);
	for (size_t i = 0; i < n; i++) {
		peaks += all[i]->total == 9 * MIB;
		assert_true(!i || all[i]->time_ns >= all[i - 1]->time_ns);
	}
	assert_int_equal(peaks, 1);
	assert_int_equal(plot->peak.time_ns, US(60000001));
	assert_int_equal(all[n - 1]->total, 2 * MIB);
}

static void test_rows_of_every_moment_sum_to_its_total(void **state)
{
	const struct moment **all;
	size_t n;

	for (unsigned i = 0; i < 20000; i++) {
		struct process process = { .id = i * 7 % 200, .pid = i * 7 % 200, .comm = "p" };

		sample(i * 300.0, &process, MEMORY_DEVICE + i % 5, (i * 2654435761u) % MIB);
	}
	all = moments(&n);
	assert_true(plot->merged > 0);
	for (size_t i = 0; i < n; i++) {
		uint64_t processes = 0, kinds = 0;

		for (unsigned row = 0; row < ROW_COUNT; row++)
			*(row < ROW_KINDS ? &processes : &kinds) += all[i]->live[row];
		assert_int_equal(processes, all[i]->total);
		assert_int_equal(kinds, all[i]->total);
	}
	assert_has(drawn(), "191 other processes");
}

static void test_processes_that_gave_all_back_are_forgotten(void **state)
{
	for (unsigned i = 0; i < 1000; i++) {
		struct process process = { .id = i, .pid = i, .comm = "p" };

		sample(i * 2.0, &process, MEMORY_DEVICE, MIB);
		sample(i * 2.0 + 1, &process, MEMORY_DEVICE, 0);
	}
	assert_int_equal(HASH_COUNT(plot->holders), 0);
	assert_int_equal(plot->now.total, 0);
}

static void test_failures_are_marked_and_counted(void **state)
{
	sample(1, the_process(), MEMORY_DEVICE, MIB);
	memory_plot_failure(plot, US(500000), the_process(), MEMORY_ASYNC, 1ull << 40);
	assert_has(drawn(), "1 allocation failed");
	assert_has(svg.data, "An allocation failed: 1 TiB (stream-ordered) by vectorAdd (4242), "
	                     "after 500 ms");
	buf_reset(&svg);
	memory_plot_failure(plot, US(500000), the_process(), MEMORY_ASYNC, 1ull << 30);
	assert_has(drawn(), "2 allocations failed, the largest of 1 TiB");
}

static void test_nothing_is_drawn_of_nothing(void **state)
{
	assert_has(drawn(), "no allocation was seen");
	assert_has_not(svg.data, "<circle");
	assert_has(svg.data, "</svg>");
}

static void test_a_long_time_before_anything_happens_is_left_out(void **state)
{
	sample(900000, the_process(), MEMORY_DEVICE, MIB);
	assert_has(drawn(), ">900 ms</text>");
	assert_has(svg.data, "after 900 ms");
	assert_has(svg.data, ">920 ms</text>");
	assert_has_not(svg.data, ">500 ms</text>");
}

static void test_time_that_goes_back_counts_as_now(void **state)
{
	sample(1000, the_process(), MEMORY_DEVICE, MIB);
	sample(1, the_process(), MEMORY_DEVICE, 2 * MIB);
	history_settle(plot);
	assert_int_equal(plot->peak.time_ns, US(1000));
}

#define HOLDERS 60000
#define TURNS   30000

/* Each process that gets a row went through all that have memory, to find whose row it was. */
static void test_rows_that_change_hands_cost_no_more_with_many_processes(void **state)
{
	struct process *all = calloc(HOLDERS + 2, sizeof(*all));
	clock_t begin;
	size_t n;

	for (uint32_t i = 0; i < HOLDERS + 2; i++) {
		all[i] = (struct process){ .id = i, .pid = i + 1, .comm = "p" };
		sample(i, &all[i], MEMORY_DEVICE, MIB);
	}
	begin = clock();
	for (uint32_t i = 0; i < TURNS; i++) {
		sample(HOLDERS + 2 * i + 2, &all[HOLDERS + i % 2], MEMORY_DEVICE, 0);
		sample(HOLDERS + 2 * i + 3, &all[HOLDERS + i % 2], MEMORY_DEVICE, MIB);
	}
	assert_true(clock() - begin < 2 * CLOCKS_PER_SEC);
	moments(&n);
	assert_int_equal(plot->now.total, (HOLDERS + 2) * MIB);
	free(all);
}

int main(void)
{
#define PLOT_TEST(test) cmocka_unit_test_setup_teardown(test, open_plot, close_plot)
	const struct CMUnitTest tests[] = {
		PLOT_TEST(test_title_has_peak_and_end),
		PLOT_TEST(test_more_than_one_process_gets_a_panel_for_processes),
		PLOT_TEST(test_things_at_one_time_are_one_moment),
		PLOT_TEST(test_what_is_there_from_the_beginning_is_drawn),
		PLOT_TEST(test_nonsense_stays_in_the_picture),
		PLOT_TEST(test_a_trace_without_end_has_an_axis),
		PLOT_TEST(test_a_short_peak_survives_any_length_of_run),
		PLOT_TEST(test_rows_of_every_moment_sum_to_its_total),
		PLOT_TEST(test_rows_that_change_hands_cost_no_more_with_many_processes),
		PLOT_TEST(test_processes_that_gave_all_back_are_forgotten),
		PLOT_TEST(test_failures_are_marked_and_counted),
		PLOT_TEST(test_nothing_is_drawn_of_nothing),
		PLOT_TEST(test_a_long_time_before_anything_happens_is_left_out),
		PLOT_TEST(test_time_that_goes_back_counts_as_now),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
