// SPDX-License-Identifier: MIT
/* What the host did in gaps, by samples whose times are made for it. */
#include "stack_events.h"

#include "report/gaps/gap_longest.h"
#include "report/gaps/gaps_conclusion.h"

static struct consumer *gaps;
static uint64_t correlation;
static uint32_t tid;
static struct gap_host host;

static int set_up(void **state)
{
	gaps = gaps_new(&(struct gaps_options){ .threshold_ns = 20000, .longest = 10 });
	correlation = 0;
	tid = 1;
	memset(&host, 0, sizeof(host));
	return 0;
}

static int tear_down(void **state)
{
	gap_host_free(&host);
	consumer_free(gaps);
	return 0;
}

/* ---- events -------------------------------------------------------------------------------- */

static uint64_t ask_from(const char *function, double at_us, double us, uint32_t line)
{
	struct call call = call_at(function, at_us, us);
	struct event event;

	call.correlation = ++correlation;
	call.stack = line ? stack_of_line(line) : NULL;
	event = call_event(the_process(), tid, &call);
	feed(gaps, &event);
	return correlation;
}

static void kernel(uint64_t asked_by, double begin_us, double end_us)
{
	struct activity activity = { .kind = ACTIVITY_KERNEL,
		                     .context = 1,
		                     .stream = 7,
		                     .correlation = asked_by,
		                     .begin_ns = US(begin_us),
		                     .end_ns = US(end_us) };
	struct event event = activity_event(the_process(), &activity);

	feed(gaps, &event);
}

/* A launch of 5 us, and a kernel 10 us after its begin. */
static void launch_and_run(double at_us, double us)
{
	uint64_t asked = ask_from("cuLaunchKernel", at_us, 5, 0);

	kernel(asked, at_us + 10, at_us + 10 + us);
}

static void sample_in(uint32_t of, enum sample_kind kind, double at_us, double us, uint32_t line)
{
	struct sample sample = sample_of(kind, us, stack_of_line(line));
	struct event event = sample_event(the_process(), of, at_us, &sample);

	feed(gaps, &event);
}

static const struct gap_line *the_gpu(void)
{
	const struct gap_line *const *rows;
	size_t n;

	gaps_finish(gaps);
	rows = gaps_devices(gaps, &n);
	assert_int_equal(n, 1);
	return rows[0];
}

static const struct gap_host *host_of(enum gap_cause cause)
{
	gap_host_free(&host);
	gaps_host_of(the_gpu(), 1u << cause, gaps_places(gaps), &host);
	return &host;
}

static void assert_place(size_t i, const char *label, uint64_t cpu_us, uint64_t blocked_us,
                         uint64_t n)
{
	assert_true(i < host.n);
	assert_string_equal(gap_place_label(gaps_places(gaps), &host.places[i]), label);
	assert_int_equal(host.places[i].cpu_ns, cpu_us * 1000);
	assert_int_equal(host.places[i].blocked_ns, blocked_us * 1000);
	assert_int_equal(host.places[i].samples, n);
}

/* ---- which samples ------------------------------------------------------------------------- */

static void test_samples_in_a_gap_name_its_lines(void **state)
{
	launch_and_run(0, 90);                  /* until 100 */
	sample_in(1, SAMPLE_CPU, 50, 100, 9);   /* the GPU was busy */
	sample_in(1, SAMPLE_CPU, 150, 100, 31); /* gap: 100 to 510 */
	sample_in(1, SAMPLE_CPU, 250, 100, 31);
	sample_in(1, SAMPLE_OFF_CPU, 450, 180, 44); /* from 270 on */
	launch_and_run(500, 10);
	sample_in(1, SAMPLE_CPU, 515, 100, 9);
	host_of(GAP_HOST);
	assert_int_equal(host.n, 2);
	assert_place(0, "step (train.py:31)", 200, 0, 2);
	assert_place(1, "step (train.py:44)", 0, 180, 1);
	assert_int_equal(host.known.gap_ns, 410000);
	assert_int_equal(host.known.samples, 3);
	assert_int_equal((int)gap_host_covered(&host.known), 92);
}

static void test_samples_of_other_threads_are_not_the_hosts(void **state)
{
	launch_and_run(0, 90);
	tid = 2;
	ask_from("cudaSetDevice", 50, 1, 0); /* the thread uses CUDA, too */
	tid = 1;
	sample_in(2, SAMPLE_CPU, 150, 100, 44);
	sample_in(3, SAMPLE_CPU, 150, 100, 55);
	sample_in(1, SAMPLE_CPU, 160, 100, 31);
	launch_and_run(500, 10);
	host_of(GAP_HOST);
	assert_int_equal(host.n, 1);
	assert_place(0, "step (train.py:31)", 100, 0, 1);
	assert_int_equal(host.known.tid, 1);
	assert_false(host.known.several);
}

static void test_the_thread_that_gave_the_work_stands_for_one_that_waited_for_it(void **state)
{
	launch_and_run(0, 90); /* by thread 1; the next is by thread 2 */
	tid = 2;
	ask_from("cudaSetDevice", 50, 1, 0);
	sample_in(1, SAMPLE_CPU, 150, 100, 31);
	sample_in(2, SAMPLE_OFF_CPU, 480, 430, 0); /* in native code */
	launch_and_run(500, 10);
	host_of(GAP_HOST);
	assert_int_equal(host.n, 1);
	assert_place(0, "step (train.py:31)", 100, 0, 1);
	assert_int_equal(host.known.tid, 1);
}

static void test_a_thread_that_was_blocked_in_python_stands_for_itself(void **state)
{
	launch_and_run(0, 90);
	tid = 2;
	ask_from("cudaSetDevice", 50, 1, 0);
	sample_in(1, SAMPLE_CPU, 150, 100, 31);
	sample_in(2, SAMPLE_OFF_CPU, 480, 430, 44);
	launch_and_run(500, 10);
	host_of(GAP_HOST);
	assert_int_equal(host.n, 1);
	assert_place(0, "step (train.py:44)", 0, 380, 1);
}

static void test_sums_of_blocked_times_are_of_no_gap(void **state)
{
	struct sample sum = sample_of(SAMPLE_OFF_CPU, 1000, NULL);
	struct event event = sample_event(the_process(), 1, 480, &sum);

	launch_and_run(0, 90);
	sum.count = 20;
	for (sum.blocked = BLOCKED_BRIEF; sum.blocked < BLOCKED_COUNT; sum.blocked++)
		feed(gaps, &event);
	launch_and_run(500, 10);
	host_of(GAP_HOST);
	assert_int_equal(host.known.samples, 0);
	assert_int_equal(host.known.blocked_ns, 0);
}

static void test_activities_can_come_long_after_samples(void **state)
{
	uint64_t first = ask_from("cuLaunchKernel", 0, 5, 0), second;

	sample_in(1, SAMPLE_CPU, 300, 100, 31);
	second = ask_from("cuLaunchKernel", 500, 5, 0);
	for (int i = 0; i < 200000; i++)
		sample_in(1, SAMPLE_CPU, 1000 + i, 1, 9);
	kernel(first, 10, 100);
	kernel(second, 510, 520);
	host_of(GAP_HOST);
	assert_int_equal(host.n, 1);
	assert_place(0, "step (train.py:31)", 100, 0, 1);
}

static void test_gaps_are_told_of_before_their_samples_are_forgotten(void **state)
{
	launch_and_run(0, 90);
	sample_in(1, SAMPLE_CPU, 300, 100, 31);
	launch_and_run(500, 10); /* until 520 */
	launch_and_run(540, 10);
	for (uint32_t i = 0; i < 2 * GAP_SAMPLES_KEPT; i++)
		sample_in(1, SAMPLE_CPU, 1000 + i, 1, 9);
	host_of(GAP_HOST);
	assert_int_equal(host.places[0].cpu_ns, 100000);
	assert_int_equal(gaps_limits(gaps).late, 0);
}

static void test_causes_that_are_not_the_hosts_have_no_lines(void **state)
{
	uint64_t one = ask_from("cuLaunchKernel", 0, 5, 0), other;

	other = ask_from("cuLaunchKernel", 6, 5, 0);
	kernel(one, 10, 1000);
	sample_in(1, SAMPLE_CPU, 1010, 100, 31);
	kernel(other, 1020, 2000); /* turnaround */
	host_of(GAP_TURNAROUND);
	assert_int_equal(host.known.samples, 0);
	assert_int_equal(host.known.gap_ns, 0);
}

/* ---- calls --------------------------------------------------------------------------------- */

static void test_the_line_of_the_call_that_waited_is_told(void **state)
{
	const struct gap_line *gpu;

	launch_and_run(0, 90);
	ask_from("cudaStreamSynchronize", 20, 88, 95); /* until 108 */
	launch_and_run(300, 10);
	gpu = the_gpu();
	gaps_calls_of(gpu, 1u << GAP_SYNC, gaps_places(gaps), &host);
	assert_int_equal(host.n, 1);
	assert_string_equal(gap_place_label(gaps_places(gaps), &host.places[0]),
	                    "step (train.py:95)");
	assert_int_equal(gap_place_ns(&host.places[0]), 210000);
}

/* ---- gaps that are apart ------------------------------------------------------------------- */

static void test_gaps_that_are_apart_keep_their_lines_for_themselves(void **state)
{
	const struct gap_line *gpu;
	double at_us = 0;

	for (int i = 0; i < 120; i++, at_us += 300) {
		launch_and_run(at_us, 100);
		sample_in(1, SAMPLE_CPU, at_us + 200, 100, 31);
	}
	sample_in(1, SAMPLE_CPU, at_us + 1e6, 2e6, 77);
	launch_and_run(at_us + 2e6, 100);
	gpu = the_gpu();
	assert_int_equal(gpu->n_apart, 1);
	assert_string_equal(gpu->apart[0].place, "step (train.py:77)");
	host_of(GAP_HOST);
	assert_int_equal(host.n, 1);
	assert_string_equal(gap_place_label(gaps_places(gaps), &host.places[0]),
	                    "step (train.py:31)");
}

static void test_long_gaps_that_are_not_apart_are_as_all_others(void **state)
{
	for (int i = 0; i < 3 * GAP_APART_MOST; i++) { /* more than are kept as giants */
		launch_and_run(30000.0 * i, 100);
		sample_in(1, SAMPLE_CPU, 30000.0 * i + 15000, 20000, 31);
	}
	launch_and_run(30000.0 * 3 * GAP_APART_MOST, 100);
	host_of(GAP_HOST);
	assert_int_equal(the_gpu()->n_apart, 0);
	assert_int_equal(host.n, 1);
	assert_place(0, "step (train.py:31)", 20000ull * 3 * GAP_APART_MOST, 0, 3 * GAP_APART_MOST);
}

/* ---- trust --------------------------------------------------------------------------------- */

static void test_trust_needs_samples_or_measured_time(void **state)
{
	struct gap_sampling known = { .gap_ns = 1000 };

	assert_int_equal(gap_host_trust(&known), GAP_TRUST_NONE);
	known.samples = 9;
	known.cpu_ns = 1000;
	assert_int_equal(gap_host_trust(&known), GAP_TRUST_GUESS);
	known.samples = 10;
	assert_int_equal(gap_host_trust(&known), GAP_TRUST_LIKELY);
	known.samples = 30;
	assert_int_equal(gap_host_trust(&known), GAP_TRUST_SURE);
	known.cpu_ns = 790;
	assert_int_equal(gap_host_trust(&known), GAP_TRUST_LIKELY);
	known.cpu_ns = 490;
	assert_int_equal(gap_host_trust(&known), GAP_TRUST_PARTLY);
	known.samples = 1;
	known.blocked_ns = 800;
	assert_int_equal(gap_host_trust(&known), GAP_TRUST_SURE);
	known.blocked_ns = 500;
	assert_int_equal(gap_host_trust(&known), GAP_TRUST_LIKELY);
}

static void test_stacks_without_room_are_one_row(void **state)
{
	struct gap_sampled sampled = { .ns = 10 };
	struct stack_places *places = stack_places_new();
	struct gap_stacks stacks = { 0 };
	const struct gap_stacks *table = &stacks;
	size_t room = 2;

	for (uint32_t line = 201; line <= 205; line++) {
		sampled.stack = stack_of_line(line);
		gap_stacks_add(&stacks, &room, &sampled);
	}
	gap_host_sum_up(&table, 1, places, &host);
	assert_int_equal(host.n, 3);
	assert_string_equal(gap_place_label(places, &host.places[0]), "(other stacks)");
	assert_int_equal(gap_place_ns(&host.places[0]), 30);
	gap_stacks_free(&stacks);
	stack_places_free(places);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(test_samples_in_a_gap_name_its_lines),
		TEST(test_samples_of_other_threads_are_not_the_hosts),
		TEST(test_the_thread_that_gave_the_work_stands_for_one_that_waited_for_it),
		TEST(test_a_thread_that_was_blocked_in_python_stands_for_itself),
		TEST(test_sums_of_blocked_times_are_of_no_gap),
		TEST(test_activities_can_come_long_after_samples),
		TEST(test_gaps_are_told_of_before_their_samples_are_forgotten),
		TEST(test_causes_that_are_not_the_hosts_have_no_lines),
		TEST(test_the_line_of_the_call_that_waited_is_told),
		TEST(test_gaps_that_are_apart_keep_their_lines_for_themselves),
		TEST(test_long_gaps_that_are_not_apart_are_as_all_others),
		TEST(test_trust_needs_samples_or_measured_time),
		TEST(test_stacks_without_room_are_one_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
