// SPDX-License-Identifier: MIT
/* Which steps are found in launches and in ranges, and which of them are apart. */
#include "unit.h"

#include <time.h>

#include "account/steps.h"
#include "base/xalloc.h"

#define MS(n) ((uint64_t)((n)*1e6))
#define US(n) ((uint64_t)((n)*1e3))

/* ---- a thread by hand ---------------------------------------------------------------------- */

struct thread {
	struct step_launch *launches;
	struct step_range *ranges;
	size_t n_launches, room_launches, n_ranges, room_ranges;
	uint64_t now_ns;
	uint32_t random;
};

static struct thread thread;
static struct steps steps;

static void begin(void)
{
	free(thread.launches);
	free(thread.ranges);
	steps_clear(&steps);
	thread = (struct thread){ .now_ns = MS(1000), .random = 12345 };
}

static uint32_t chance(void)
{
	thread.random = thread.random * 1664525u + 1013904223u;
	return thread.random >> 8;
}

static void launch(uint32_t key, uint64_t then_ns)
{
	if (thread.n_launches == thread.room_launches) {
		thread.room_launches = thread.room_launches ? 2 * thread.room_launches : 64;
		thread.launches =
			xrealloc(thread.launches, thread.room_launches * sizeof(*thread.launches));
	}
	thread.launches[thread.n_launches++] =
		(struct step_launch){ .time_ns = thread.now_ns, .key = key };
	thread.now_ns += then_ns;
}

static void pass(uint64_t ns)
{
	thread.now_ns += ns;
}

static void range(uint32_t name, unsigned likely, uint32_t depth, uint64_t from_ns, uint64_t ns)
{
	if (thread.n_ranges == thread.room_ranges) {
		thread.room_ranges = thread.room_ranges ? 2 * thread.room_ranges : 64;
		thread.ranges =
			xrealloc(thread.ranges, thread.room_ranges * sizeof(*thread.ranges));
	}
	thread.ranges[thread.n_ranges++] = (struct step_range){ .begin_ns = from_ns,
		                                                .end_ns = from_ns + ns,
		                                                .name = name,
		                                                .depth = depth,
		                                                .likely = likely };
}

static void find(void)
{
	steps_clear(&steps);
	steps_find(&steps, &(struct steps_of){ .launches = thread.launches,
	                                       .n_launches = thread.n_launches,
	                                       .ranges = thread.ranges,
	                                       .n_ranges = thread.n_ranges,
	                                       .begin_ns = MS(900),
	                                       .end_ns = thread.now_ns });
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Forward and backward of eight layers and an optimizer: 8 * 3 + 8 * 4 + 2 launches. */
static void train(uint64_t pause_ns)
{
	for (uint32_t i = 0; i < 8; i++)
		for (uint32_t k = 10; k < 13; k++)
			launch(k, US(20));
	for (uint32_t i = 0; i < 8; i++)
		for (uint32_t k = 20; k < 24; k++)
			launch(k, US(20));
	launch(30, US(20));
	launch(31, US(20));
	pass(pause_ns);
}

#define TRAIN_NS (58 * US(20))

/* ---- launches ------------------------------------------------------------------------------ */

static void test_steps_that_are_alike_are_found_and_begin_after_their_pause(void **state)
{
	begin();
	for (unsigned i = 0; i < 50; i++)
		train(MS(20));
	find();
	assert_int_equal(steps.how, STEPS_LAUNCHES);
	assert_int_equal(steps.period, 58);
	assert_int_equal(steps.median_ns, TRAIN_NS + MS(20));
	assert_int_equal(steps.n, 48); /* the first that has its pause before it is the second */
	assert_int_equal(steps.n_apart, 0);
	for (size_t i = 0; i <= steps.n; i++)
		assert_int_equal(steps.begin_ns[i], MS(1000) + (i + 1) * (TRAIN_NS + MS(20)));
	assert_int_equal(steps.before_ns, MS(100) + TRAIN_NS + MS(20));
	assert_int_equal(steps.after_ns, TRAIN_NS + MS(20));
}

static void test_steps_without_pauses_are_found(void **state)
{
	begin();
	for (unsigned i = 0; i < 50; i++)
		train(0);
	find();
	assert_int_equal(steps.how, STEPS_LAUNCHES);
	assert_int_equal(steps.period, 58);
	assert_int_equal(steps.median_ns, TRAIN_NS);
}

/* One launch of thirty is more, is missing, or is another. */
static void test_noise_does_not_matter(void **state)
{
	size_t n = 0;

	begin();
	for (unsigned i = 0; i < 200; i++)
		train(MS(5));
	for (size_t i = 0; i < thread.n_launches; i++) {
		struct step_launch at = thread.launches[i];

		if (chance() % 60 == 0)
			continue;
		if (chance() % 60 == 0)
			at.key = 40 + chance() % 8;
		thread.launches[n++] = at;
	}
	thread.n_launches = n;
	find();
	assert_int_equal(steps.how, STEPS_LAUNCHES);
	assert_in_range(steps.period, 53, 60);
	assert_in_range(steps.n, 180, 200);
	assert_in_range(steps.median_ns, TRAIN_NS + MS(5) - US(100), TRAIN_NS + MS(5) + US(100));
}

static void test_warm_up_is_apart(void **state)
{
	begin();
	train(MS(900));
	train(MS(300)); /* the first that begins after a pause */
	train(MS(50));
	for (unsigned i = 0; i < 60; i++)
		train(MS(20));
	find();
	assert_int_equal(steps.how, STEPS_LAUNCHES);
	assert_int_equal(steps.apart[0], STEP_WARM_UP);
	assert_int_equal(steps.apart[1], STEP_WARM_UP);
	assert_false(steps.apart[2]);
	assert_int_equal(steps.n_apart, 2);
	assert_int_equal(steps.apart_ns, 2 * TRAIN_NS + MS(350));
	assert_int_equal(steps.median_ns, TRAIN_NS + MS(20));
}

/* A checkpoint each so often; what comes each few steps is of them. */
static void test_few_steps_that_are_clearly_longer_are_apart(void **state)
{
	begin();
	for (unsigned i = 0; i < 60; i++)
		train(i % 20 == 10 ? MS(100) : MS(20));
	find();
	assert_int_equal(steps.how, STEPS_LAUNCHES);
	assert_int_equal(steps.n_apart, 3);
	assert_int_equal(steps.apart[9], STEP_LONG);
	assert_int_equal(steps.apart[10], STEP_USUAL);
	begin();
	for (unsigned i = 0; i < 60; i++)
		train(i % 5 == 3 ? MS(100) : MS(20));
	find();
	assert_int_equal(steps.n_apart, 0);
}

/* A step that is three times as long is one, where it has the launches of one. */
static void test_a_slow_step_is_a_step(void **state)
{
	begin();
	for (unsigned i = 0; i < 60; i++)
		train(i == 30 ? MS(60) : MS(20));
	find();
	assert_int_equal(steps.n_apart, 0);
}

static void test_a_checkpoint_is_apart(void **state)
{
	begin();
	for (unsigned i = 0; i < 60; i++)
		train(i == 30 ? MS(2000) : MS(20));
	find();
	assert_int_equal(steps.how, STEPS_LAUNCHES);
	assert_int_equal(steps.n_apart, 1);
	assert_int_equal(steps.apart_ns, TRAIN_NS + MS(2000));
	assert_int_equal(steps.median_ns, TRAIN_NS + MS(20));
}

/* Of the same kernels as the forward passes, with one more at its end. */
static void test_an_evaluation_every_fifty_steps_is_apart(void **state)
{
	begin();
	for (unsigned i = 0; i < 300; i++) {
		train(MS(20));
		if (i % 50 != 49)
			continue;
		for (unsigned k = 0; k < 240; k++)
			launch(10 + k % 3, US(100));
		launch(50, MS(30));
	}
	find();
	assert_int_equal(steps.how, STEPS_LAUNCHES);
	assert_int_equal(steps.period, 58);
	assert_int_equal(steps.median_ns, TRAIN_NS + MS(20));
	assert_in_range(steps.n_apart, 5, 6);
	assert_in_range(steps.n, 290, 300);
}

/* Four of them and an optimizer: the smallest that is stable is told. */
static void test_micro_batches_are_steps(void **state)
{
	begin();
	for (unsigned i = 0; i < 100; i++) {
		for (unsigned k = 0; k < 4; k++)
			train(MS(2));
		launch(60, US(20));
	}
	find();
	assert_int_equal(steps.how, STEPS_LAUNCHES);
	assert_int_equal(steps.period, 58);
	assert_in_range(steps.median_ns, TRAIN_NS + MS(2), TRAIN_NS + MS(2) + US(20));
}

/* Backward passes of six layers, as the thread that makes them launches them: the optimizer and
 * the forward passes are another thread's. Layers are as long as steps are elsewhere. */
static void test_layers_with_something_long_between_are_no_steps(void **state)
{
	begin();
	for (unsigned i = 0; i < 100; i++) {
		launch(90, US(30));
		for (unsigned layer = 0; layer < 6; layer++)
			for (uint32_t k = 0; k < 47; k++)
				launch(1 + k, US(30));
		pass(MS(8));
	}
	find();
	assert_int_equal(steps.how, STEPS_LAUNCHES);
	assert_int_equal(steps.period, 283);
	assert_int_equal(steps.median_ns, 283 * US(30) + MS(8));
	assert_int_equal(steps.n_apart, 0);
}

/* Six layers and a head that is a fifth of one. */
static void test_layers_with_other_launches_between_are_no_steps(void **state)
{
	begin();
	for (unsigned i = 0; i < 100; i++) {
		for (unsigned layer = 0; layer < 6; layer++)
			for (uint32_t k = 0; k < 40; k++)
				launch(1 + k, US(30));
		for (uint32_t k = 0; k < 8; k++)
			launch(50 + k, US(30));
	}
	find();
	assert_int_equal(steps.how, STEPS_LAUNCHES);
	assert_int_equal(steps.period, 248);
	assert_int_equal(steps.median_ns, 248 * US(30));
}

/* Something of an epoch's, after six or after thirteen steps: that is as regular as half of it. */
static void test_what_comes_now_and_then_makes_no_longer_steps(void **state)
{
	begin();
	for (unsigned i = 0; i < 60; i++) {
		for (unsigned n = 0; n < (i % 2 ? 13 : 6); n++)
			train(MS(2));
		for (uint32_t k = 0; k < 40; k++)
			launch(60 + k, US(400));
	}
	find();
	assert_int_equal(steps.how, STEPS_LAUNCHES);
	assert_int_equal(steps.period, 58);
}

/* Thirty-two layers of five launches of 10 us, and a head. */
static void test_layers_shorter_than_a_millisecond_are_no_steps(void **state)
{
	begin();
	for (unsigned i = 0; i < 100; i++) {
		for (unsigned layer = 0; layer < 32; layer++)
			for (uint32_t k = 1; k < 6; k++)
				launch(k, US(10));
		launch(90, US(30));
	}
	find();
	assert_int_equal(steps.how, STEPS_LAUNCHES);
	assert_int_equal(steps.period, 161);
	assert_int_equal(steps.median_ns, 160 * US(10) + US(30));
}

static void test_short_steps_are_steps_where_nothing_longer_is_there(void **state)
{
	begin();
	for (unsigned i = 0; i < 1000; i++) {
		launch(1, US(10));
		launch(2, US(10));
		launch(3, US(10));
	}
	find();
	assert_int_equal(steps.how, STEPS_LAUNCHES);
	assert_int_equal(steps.period, 3);
	assert_int_equal(steps.median_ns, US(30));
}

/* No kernel comes once: A A A B B B. */
static void test_runs_of_kernels_are_told_apart_by_what_is_before(void **state)
{
	begin();
	for (unsigned i = 0; i < 100; i++) {
		for (unsigned k = 0; k < 5; k++)
			launch(1, US(300));
		for (unsigned k = 0; k < 5; k++)
			launch(2, US(300));
	}
	find();
	assert_int_equal(steps.how, STEPS_LAUNCHES);
	assert_int_equal(steps.period, 10);
	assert_int_equal(steps.median_ns, MS(3));
}

/* ---- launches of one kernel ---------------------------------------------------------------- */

static void test_launches_of_one_kernel_have_steps_where_pauses_are_regular(void **state)
{
	begin();
	for (unsigned i = 0; i < 100; i++) {
		for (unsigned k = 0; k < 12; k++)
			launch(1, US(10) + chance() % US(5));
		pass(MS(4) + chance() % MS(2));
	}
	find();
	assert_int_equal(steps.how, STEPS_PAUSES);
	assert_int_equal(steps.period, 12);
	assert_in_range(steps.median_ns, MS(4), MS(6.2));
	assert_int_equal(steps.n, 98);
}

static void test_layers_without_a_head_have_steps_by_their_pauses(void **state)
{
	begin();
	for (unsigned i = 0; i < 100; i++) {
		for (unsigned k = 0; k < 24; k++)
			launch(1 + k % 2, US(10));
		pass(MS(4));
	}
	find();
	assert_int_equal(steps.how, STEPS_PAUSES);
	assert_int_equal(steps.period, 24);
}

/* A graph a step, or a kernel that the host waits for. */
static void test_launches_that_are_long_apart_are_a_step_each(void **state)
{
	begin();
	for (unsigned i = 0; i < 100; i++)
		launch(1, MS(20) + chance() % MS(1));
	find();
	assert_int_equal(steps.how, STEPS_LAUNCHES);
	assert_int_equal(steps.period, 1);
	assert_int_equal(steps.n, 99);
	assert_in_range(steps.median_ns, MS(20), MS(21));
}

static void test_launches_of_one_kernel_without_pauses_have_none(void **state)
{
	begin();
	for (unsigned i = 0; i < 10000; i++)
		launch(1, US(5) + chance() % US(5));
	find();
	assert_int_equal(steps.how, STEPS_NONE);
	assert_int_equal(steps.n, 0);
	assert_null(steps.begin_ns);
}

static void test_pauses_at_random_are_none(void **state)
{
	begin();
	for (unsigned i = 0; i < 10000; i++)
		launch(1, chance() % 12 ? US(5) : MS(4));
	find();
	assert_int_equal(steps.how, STEPS_NONE);
}

/* ---- none ---------------------------------------------------------------------------------- */

static void test_nothing_has_no_steps(void **state)
{
	begin();
	find();
	assert_int_equal(steps.how, STEPS_NONE);
	launch(1, MS(20));
	launch(1, MS(20));
	find();
	assert_int_equal(steps.how, STEPS_NONE);
	assert_int_equal(steps.before_ns, 0);
}

static void test_kernels_at_random_have_none(void **state)
{
	begin();
	for (unsigned i = 0; i < 20000; i++)
		launch(chance() % 6, US(50) + chance() % US(50));
	find();
	assert_int_equal(steps.how, STEPS_NONE);
}

static void test_launches_in_no_order_do_no_harm(void **state)
{
	begin();
	for (unsigned i = 0; i < 1000; i++) {
		launch(i % 7, 0);
		thread.now_ns = (uint64_t)chance() << 40;
	}
	thread.launches[500].time_ns = UINT64_MAX;
	find();
	for (size_t i = 0; i < steps.n; i++)
		assert_true(steps.begin_ns[i] <= steps.begin_ns[i + 1]);
}

static void assert_time(unsigned kinds, bool regular)
{
	double from;

	begin();
	for (uint32_t i = 0; i < 5000000; i++)
		launch(regular ? i % kinds : chance() % kinds, US(2));
	from = seconds();
	find();
	/* 0.5 s, and some ten times that under a sanitizer */
	assert_true(seconds() - from < 10);
}

static void test_five_million_launches_take_no_time(void **state)
{
	assert_time(UINT32_MAX, true); /* all differ */
	assert_int_equal(steps.how, STEPS_NONE);
	assert_time(1u << 24, false);
	assert_int_equal(steps.how, STEPS_NONE);
	assert_time(1000, true);
	assert_int_equal(steps.period, 1000);
	begin();
}

/* ---- ranges -------------------------------------------------------------------------------- */

static void assert_name(const char *name, const char *expected, unsigned likely)
{
	struct buf out = { 0 };

	assert_int_equal(steps_name(name, &out), likely);
	assert_string_equal(out.data, expected);
	buf_free(&out);
}

static void test_names_of_ranges_lose_their_numbers(void **state)
{
	assert_name("ProfilerStep#12", "ProfilerStep#", 3);
	assert_name("train_step", "train_step", 2);
	assert_name("Iteration 7 of 90", "Iteration  of ", 3);
	assert_name("steps", "steps", 2);
	assert_name("layer 3", "layer ", 1);
	assert_name("stepwise", "stepwise", 0);
	assert_name("iterator", "iterator", 0);
	assert_name("", "", 0);
}

/* Each time that such a range comes: a name of 8 KiB comes millions of times. */
static void test_of_long_names_the_begin_is_looked_at(void **state)
{
	char name[8192], begin[257];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	memcpy(name + 5000, " step 7", 7);
	memcpy(begin, name, sizeof(begin) - 1);
	begin[sizeof(begin) - 1] = '\0';
	assert_name(name, begin, 0);
}

static void test_ranges_that_are_steps_are_taken(void **state)
{
	begin();
	for (unsigned i = 0; i < 20; i++) {
		range(7, 3, 0, thread.now_ns, MS(18));
		range(8, 0, 1, thread.now_ns, MS(10)); /* the forward pass */
		train(MS(20) - TRAIN_NS);
	}
	find();
	assert_int_equal(steps.how, STEPS_RANGES);
	assert_int_equal(steps.name, 7);
	assert_int_equal(steps.n, 20);
	assert_int_equal(steps.period, 0);
	assert_int_equal(steps.median_ns, MS(20));
	assert_int_equal(steps.begin_ns[0], MS(1000));
	assert_int_equal(steps.begin_ns[20], MS(1000) + 19 * MS(20) + MS(18));
	assert_int_equal(steps.after_ns, MS(2));
}

static void test_the_outermost_ranges_are_taken(void **state)
{
	begin();
	for (unsigned i = 0; i < 5; i++) { /* epochs */
		range(1, 1, 0, thread.now_ns, MS(400));
		for (unsigned k = 0; k < 10; k++, pass(MS(40))) {
			range(2, 2, 1, thread.now_ns, MS(40));
			range(3, 2, 2, thread.now_ns, MS(20));
			range(3, 2, 2, thread.now_ns + MS(20), MS(20));
		}
	}
	find();
	assert_int_equal(steps.name, 2);
	assert_int_equal(steps.n, 50);
	assert_int_equal(steps.median_ns, MS(40));
}

/* Three of a name; those that overlap; those that are little of the time. */
static void test_other_ranges_are_no_steps(void **state)
{
	begin();
	range(1, 3, 0, MS(1000), MS(50));
	range(1, 3, 0, MS(1050), MS(50));
	for (unsigned i = 0; i < 20; i++)
		range(2, 3, 0, MS(1000 + 10 * i), MS(11));
	for (unsigned i = 0; i < 20; i++)
		range(3, 3, 0, MS(1000 + 10 * i), MS(1));
	range(4, 3, 0, MS(1000), MS(10));
	range(4, 3, 0, MS(2000), 0);
	thread.ranges[thread.n_ranges - 1].end_ns = 5; /* before it begins */
	range(4, 3, 0, MS(3000), MS(10));
	find();
	assert_int_equal(steps.how, STEPS_NONE);
}

/* Their names do not say that they are steps, and a period of launches has several. */
static void test_ranges_of_layers_are_no_steps(void **state)
{
	begin();
	for (unsigned i = 0; i < 50; i++)
		for (uint32_t k = 0; k < 8; k++) {
			range(1, 1, 0, thread.now_ns, MS(1));
			launch(k, MS(1));
		}
	find();
	assert_int_equal(steps.how, STEPS_LAUNCHES);
	assert_int_equal(steps.period, 8);
	begin();
	for (unsigned i = 0; i < 50; i++) {
		range(1, 1, 0, thread.now_ns, MS(8));
		for (uint32_t k = 0; k < 8; k++)
			launch(k, MS(1));
	}
	find();
	assert_int_equal(steps.how, STEPS_RANGES);
}

static void test_the_words_for_how_they_were_found(void **state)
{
	assert_null(steps_how_name(STEPS_NONE));
	assert_string_equal(steps_how_name(STEPS_RANGES), "ranges");
	assert_string_equal(steps_how_name(STEPS_LAUNCHES), "launches");
	assert_string_equal(steps_how_name(STEPS_PAUSES), "pauses");
}

static int end(void **state)
{
	begin();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps_that_are_alike_are_found_and_begin_after_their_pause),
		cmocka_unit_test(test_steps_without_pauses_are_found),
		cmocka_unit_test(test_noise_does_not_matter),
		cmocka_unit_test(test_warm_up_is_apart),
		cmocka_unit_test(test_few_steps_that_are_clearly_longer_are_apart),
		cmocka_unit_test(test_a_slow_step_is_a_step),
		cmocka_unit_test(test_a_checkpoint_is_apart),
		cmocka_unit_test(test_an_evaluation_every_fifty_steps_is_apart),
		cmocka_unit_test(test_micro_batches_are_steps),
		cmocka_unit_test(test_layers_with_something_long_between_are_no_steps),
		cmocka_unit_test(test_layers_with_other_launches_between_are_no_steps),
		cmocka_unit_test(test_what_comes_now_and_then_makes_no_longer_steps),
		cmocka_unit_test(test_layers_shorter_than_a_millisecond_are_no_steps),
		cmocka_unit_test(test_short_steps_are_steps_where_nothing_longer_is_there),
		cmocka_unit_test(test_runs_of_kernels_are_told_apart_by_what_is_before),
		cmocka_unit_test(test_launches_of_one_kernel_have_steps_where_pauses_are_regular),
		cmocka_unit_test(test_layers_without_a_head_have_steps_by_their_pauses),
		cmocka_unit_test(test_launches_that_are_long_apart_are_a_step_each),
		cmocka_unit_test(test_launches_of_one_kernel_without_pauses_have_none),
		cmocka_unit_test(test_pauses_at_random_are_none),
		cmocka_unit_test(test_nothing_has_no_steps),
		cmocka_unit_test(test_kernels_at_random_have_none),
		cmocka_unit_test(test_launches_in_no_order_do_no_harm),
		cmocka_unit_test(test_five_million_launches_take_no_time),
		cmocka_unit_test(test_names_of_ranges_lose_their_numbers),
		cmocka_unit_test(test_of_long_names_the_begin_is_looked_at),
		cmocka_unit_test(test_ranges_that_are_steps_are_taken),
		cmocka_unit_test(test_the_outermost_ranges_are_taken),
		cmocka_unit_test(test_other_ranges_are_no_steps),
		cmocka_unit_test(test_ranges_of_layers_are_no_steps),
		cmocka_unit_test(test_the_words_for_how_they_were_found),
	};

	return cmocka_run_group_tests(tests, NULL, end);
}
