// SPDX-License-Identifier: MIT
/* Steps that launches show, and which of them are slow. */
#include "support.h"

#include "node/steps.h"

#define MS(n) ((uint64_t)((n)*1e6))

static const struct steps_options thrice = { .times = 3,
	                                     .least_ns = MS(10),
	                                     .unended_ns = MS(5000) };

/* A program: its thread, its clock, and what was told of it. */
struct program {
	struct steps *steps;
	uint32_t pid, tid;
	uint64_t person;
	uint64_t now_ns;
	unsigned slow;
	struct slow_step last;
};

static struct program begin(void)
{
	return (struct program){
		.steps = steps_new(&thrice), .pid = 10, .tid = 11, .now_ns = MS(1000)
	};
}

static void launch(struct program *program, uint64_t what, double ms)
{
	struct slow_step slow;

	const struct process process = { .pid = program->pid, .person = program->person };

	if (steps_launch(program->steps, &process, program->tid, what, program->now_ns, &slow)) {
		program->slow++;
		program->last = slow;
	}
	program->now_ns += MS(ms);
}

/* Twelve layers of three kernels, then a loss that comes once. */
static void step(struct program *program, double ms)
{
	for (unsigned i = 0; i < 36; i++)
		launch(program, i % 3, ms / 40);
	launch(program, 99, ms / 10);
}

static void steps_of(struct program *program, unsigned n, double ms)
{
	for (unsigned i = 0; i < n; i++)
		step(program, ms);
}

static void test_a_slow_step_is_found_by_the_launches_alone(void **state)
{
	struct program program = begin();

	steps_of(&program, 60, 50);
	assert_int_equal(program.slow, 0);
	steps_of(&program, 1, 400);
	steps_of(&program, 20, 50);
	assert_int_equal(program.slow, 1);
	assert_int_equal(program.last.launches, 37);
	assert_int_equal(program.last.median_ns / 1000000, 50);
	assert_in_range(program.last.ns, MS(350), MS(400));
	assert_int_equal(program.last.pid, 10);
	assert_true(program.last.ended);
	steps_free(program.steps);
}

static void test_twice_the_median_is_not_thrice(void **state)
{
	struct program program = begin();

	steps_of(&program, 60, 50);
	steps_of(&program, 1, 140);
	steps_of(&program, 20, 50);
	assert_int_equal(program.slow, 0);
	steps_free(program.steps);
}

/* What is new and steady becomes the median, and is told once or a few times before. */
static void test_steps_that_become_slow_for_good_are_the_new_median(void **state)
{
	struct program program = begin();
	unsigned told;

	steps_of(&program, 100, 50);
	steps_of(&program, 64, 400);
	told = program.slow;
	assert_in_range(told, 1, 40);
	steps_of(&program, 200, 400);
	assert_int_equal(program.slow, told);
	steps_free(program.steps);
}

static void test_what_lies_between_steps_is_not_judged(void **state)
{
	struct program program = begin();

	for (unsigned epoch = 0; epoch < 5; epoch++) {
		steps_of(&program, 40, 50);
		for (unsigned i = 0; i < 100; i++) /* an evaluation */
			launch(&program, 200 + i % 7, 20);
	}
	assert_int_equal(program.slow, 0);
	steps_free(program.steps);
}

static void test_nothing_is_judged_before_its_length_is_known(void **state)
{
	struct program program = begin();

	steps_of(&program, 12, 50);
	steps_of(&program, 1, 4000);
	steps_of(&program, 5, 50);
	assert_int_equal(program.slow, 0);
	steps_free(program.steps);
}

static void test_steps_that_are_too_short_are_not_judged(void **state)
{
	struct program program = begin();

	steps_of(&program, 100, 5);
	steps_of(&program, 1, 90);
	steps_of(&program, 20, 5);
	assert_int_equal(program.slow, 0);
	steps_free(program.steps);
}

static void test_a_program_without_a_period_has_no_steps(void **state)
{
	struct program program = begin();
	uint64_t judged, forgotten, seed = 1;

	for (unsigned i = 0; i < 20000; i++) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		launch(&program, seed >> 60, i % 1000 ? 1 : 900);
	}
	steps_figures(program.steps, &judged, &forgotten);
	assert_int_equal(program.slow, 0);
	steps_free(program.steps);
}

static void test_a_loop_over_one_kernel_is_stepped_by_it(void **state)
{
	struct program program = begin();

	for (unsigned i = 0; i < 100; i++)
		launch(&program, 5, i == 80 ? 200 : 30);
	assert_int_equal(program.slow, 1);
	assert_int_equal(program.last.launches, 1);
	steps_free(program.steps);
}

static void test_a_step_that_does_not_end_is_told_once(void **state)
{
	struct program program = begin();
	struct slow_step slow;

	steps_of(&program, 60, 50);
	assert_false(steps_unended(program.steps, program.now_ns + MS(4000), &slow));
	assert_true(steps_unended(program.steps, program.now_ns + MS(6000), &slow));
	assert_false(slow.ended);
	assert_false(steps_unended(program.steps, program.now_ns + MS(9000), &slow));
	program.now_ns += MS(10000);
	steps_of(&program, 20, 50);
	assert_int_equal(program.slow, 0); /* it is known already */
	steps_free(program.steps);
}

static void test_ranges_that_a_program_names_are_steps(void **state)
{
	const struct process one = { .pid = 1 };
	struct steps *steps = steps_new(&thrice);
	struct slow_step slow;
	unsigned told = 0;

	for (uint64_t i = 0; i < 40; i++)
		told += steps_range(steps, &one, 1, MS(100 * i), MS(100 * i + (i == 30 ? 90 : 20)),
		                    &slow);
	assert_int_equal(told, 1);
	assert_int_equal(slow.launches, 0);
	assert_int_equal(slow.ns, MS(70 + 20));
	steps_free(steps);
}

static void test_threads_are_told_apart_and_bounded(void **state)
{
	struct program one = begin(), other = one;
	uint64_t judged, forgotten;

	other.tid = 12;
	for (unsigned i = 0; i < 60; i++) {
		step(&one, 50);
		step(&other, 200);
	}
	steps_figures(one.steps, &judged, &forgotten);
	assert_int_equal(judged, 2);
	assert_int_equal(one.slow + other.slow, 0);
	for (other.tid = 1000; other.tid < 1000 + 3 * STEPS_THREADS_MAX; other.tid++)
		launch(&other, 1, 0);
	steps_figures(one.steps, &judged, &forgotten);
	assert_int_equal(forgotten, 2 * STEPS_THREADS_MAX + 2);
	steps_exit(one.steps, 10);
	steps_figures(one.steps, &judged, &forgotten);
	assert_int_equal(judged, 0);
	steps_free(one.steps);
}

/* Whoever has most forgets his own. */
static void test_threads_of_one_user_leave_others_room(void **state)
{
	struct program one = begin(), other = one;
	uint64_t judged, forgotten;

	other.person = 1000;
	for (unsigned i = 0; i < 60; i++)
		step(&one, 50);
	for (other.tid = 1000; other.tid < 1000 + 3 * STEPS_THREADS_MAX; other.tid++)
		launch(&other, 1, 0);
	steps_figures(one.steps, &judged, &forgotten);
	assert_int_equal(judged, 1);
	assert_int_equal(forgotten, 3 * STEPS_THREADS_MAX - STEPS_USER_MAX);
	step(&one, 500);
	step(&one, 50);
	assert_int_equal(one.slow, 1);
	steps_free(one.steps);
}

static void test_a_number_of_another_process_is_a_new_thread(void **state)
{
	struct program program = begin();
	uint64_t judged, forgotten;

	steps_of(&program, 60, 50);
	program.pid = 77; /* the first one ended unseen */
	step(&program, 3000);
	step(&program, 50);
	steps_figures(program.steps, &judged, &forgotten);
	assert_int_equal(judged, 0);
	assert_int_equal(program.slow, 0);
	steps_free(program.steps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_slow_step_is_found_by_the_launches_alone),
		cmocka_unit_test(test_twice_the_median_is_not_thrice),
		cmocka_unit_test(test_steps_that_become_slow_for_good_are_the_new_median),
		cmocka_unit_test(test_what_lies_between_steps_is_not_judged),
		cmocka_unit_test(test_nothing_is_judged_before_its_length_is_known),
		cmocka_unit_test(test_steps_that_are_too_short_are_not_judged),
		cmocka_unit_test(test_a_program_without_a_period_has_no_steps),
		cmocka_unit_test(test_a_loop_over_one_kernel_is_stepped_by_it),
		cmocka_unit_test(test_a_step_that_does_not_end_is_told_once),
		cmocka_unit_test(test_ranges_that_a_program_names_are_steps),
		cmocka_unit_test(test_threads_of_one_user_leave_others_room),
		cmocka_unit_test(test_threads_are_told_apart_and_bounded),
		cmocka_unit_test(test_a_number_of_another_process_is_a_new_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
