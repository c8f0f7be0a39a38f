// SPDX-License-Identifier: MIT
/* Pauses of GPUs one by one, and what GPUs ran at once: both divide the account's time. */
#include <math.h>

#include "account_scene.h"

#include "account/gpu_time.h"
#include "account/pauses.h"

#define LONG(us) ((uint64_t)(1000 * (us)))

static struct account_pauses pauses;

static int close_pauses(void **state)
{
	account_pauses_clear(&pauses);
	return close_scene(state);
}

static void make_pauses(double end_us, double least_us, size_t most)
{
	exited(the_process(), end_us);
	make_accounts(end_us);
	assert_all_add_up();
	account_pauses_make(&pauses, &facts, &accounts, LONG(least_us), most);
}

static void assert_pause(size_t i, double begin_us, double end_us)
{
	assert_true(i < pauses.n);
	assert_int_equal(pauses.longest[i].begin_ns, US(begin_us));
	assert_int_equal(pauses.longest[i].end_ns, US(end_us));
	assert_adds_up(&pauses.longest[i].of);
}

/* ---- pauses -------------------------------------------------------------------------------- */

static void test_the_longest_have_an_account_each(void **state)
{
	waited(WAIT_SLEEP, 210, 700, 0, 27);
	ran(launch(90, 30), 100, 200);
	ran(launch(795, 30), 800, 900);
	ran(launch(890, 30), 905, 1000);
	sampled(1100, 40);
	ran(launch(1295, 30), 1300, 1400);
	make_pauses(2000, 20, 10);
	assert_int_equal(pauses.n, 2);
	assert_pause(0, 200, 800);
	assert_us(&pauses.longest[0].of, ACCOUNT_SLEEP, 27, 490);
	assert_us(&pauses.longest[0].of, ACCOUNT_COMPUTING, 40, 0);
	assert_int_equal(pauses.longest[0].before->end_ns, US(200));
	assert_int_equal(pauses.longest[0].after->begin_ns, US(800));
	assert_pause(1, 1000, 1300);
	assert_us(&pauses.longest[1].of, ACCOUNT_COMPUTING, 40, 295);
	assert_us(&pauses.longest[1].of, ACCOUNT_SLEEP, ANY, 0);
	assert_int_equal(pauses.sums[0].count, 2);
	assert_int_equal(pauses.sums[0].ns, LONG(900));
	assert_int_equal(pauses.sums[0].longest_ns, LONG(600));
	assert_int_equal(pauses.sums[0].short_count, 1);
	assert_int_equal(pauses.sums[0].short_ns, LONG(5));
}

static void test_as_many_as_are_asked_for_are_kept(void **state)
{
	for (int i = 0; i < 50; i++)
		ran(launch(100.0 * i, 30), 100.0 * i + 5, 100.0 * i + 60 - i);
	make_pauses(6000, 20, 3);
	assert_int_equal(pauses.n, 3);
	assert_pause(0, 4800 + 60 - 48, 4905);
	assert_pause(2, 4600 + 60 - 46, 4705);
	assert_int_equal(pauses.sums[0].count, 49);
}

static void test_they_are_all_that_the_account_has_as_idle(void **state)
{
	double idle_us = 0, busy_us;

	for (int i = 0; i < 40; i++) {
		waited(i % 2 ? WAIT_DISK : WAIT_SLEEP, 100.0 * i + 70, 100.0 * i + 90, 0, 27);
		ran(launch(100.0 * i, 30), 100.0 * i + 5, 100.0 * i + 5 + i);
	}
	not_measured(the_process(), 1042, 1060);
	make_pauses(6000, 50, 1000);
	for (int cause = 0; cause < ACCOUNT_CAUSES; cause++) {
		double us = 0;

		if (cause == ACCOUNT_KERNELS)
			continue;
		for (size_t i = 0; i < pauses.n; i++)
			us += us_of(&pauses.longest[i].of, cause, ANY);
		assert_true(us <= us_of(&accounts.of[0], cause, ANY) + 0.01);
		idle_us += us_of(&accounts.of[0], cause, ANY);
	}
	busy_us = us_of(&accounts.of[0], ACCOUNT_KERNELS, ANY);
	assert_true(fabs(accounts.of[0].ns / 1000 - busy_us - idle_us) < 0.01);
	assert_int_equal((uint64_t)(idle_us * 1000 + 0.5),
	                 pauses.sums[0].ns + pauses.sums[0].short_ns);
}

/* As where a program starts for long: the account begins with its steps then, within a pause. */
static void test_what_was_before_the_account_is_none_of_it(void **state)
{
	ran(launch(90, 30), 100, 200);
	ran(launch(395, 30), 400, 500);
	ran(launch(795, 30), 800, 900);
	make_pauses(2000, 20, 10);
	account_pauses_clear(&pauses);
	accounts.of[0].begin_ns = US(600);
	account_pauses_make(&pauses, &facts, &accounts, LONG(20), 10);
	assert_int_equal(pauses.n, 1);
	assert_pause(0, 600, 800);
	assert_null(pauses.longest[0].before);
	assert_int_equal(pauses.sums[0].count, 1);
	assert_int_equal(pauses.sums[0].ns, LONG(200));
	assert_int_equal(pauses.sums[0].short_count, 0);
}

static void test_what_was_not_measured_cuts_them(void **state)
{
	not_measured(the_process(), 300, 500);
	pause_until(950);
	make_pauses(2000, 20, 10);
	assert_int_equal(pauses.n, 2);
	assert_pause(0, 500, 955);
	assert_null(pauses.longest[0].before);
	assert_non_null(pauses.longest[0].after);
	assert_pause(1, 200, 300);
	assert_non_null(pauses.longest[1].before);
	assert_null(pauses.longest[1].after);
}

static void test_without_gpu_times_there_are_none(void **state)
{
	launch(100, 30);
	launch(900, 30);
	make_pauses(2000, 20, 10);
	assert_int_equal(accounts.n, 1);
	assert_int_equal(pauses.n, 0);
}

/* ---- at once ------------------------------------------------------------------------------- */

static void copied(double begin_us, double end_us)
{
	struct activity copy = { .kind = ACTIVITY_COPY,
		                 .context = 1,
		                 .stream = 14,
		                 .begin_ns = US(begin_us),
		                 .end_ns = US(end_us) };

	see(activity_event(the_process(), &copy));
}

static void test_classes_that_run_at_once_are_told_apart(void **state)
{
	const struct kernel *sum = new_kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)", true);
	uint64_t ns[1 << FACT_CLASSES] = { 0 };
	struct gpu_time *gpus;

	ran(0, 100, 200);
	ran(0, 150, 300);
	ran_in(the_process(), sum, 0, 250, 400);
	copied(120, 350);
	copied(500, 600);
	not_measured(the_process(), 260, 270);
	make_pauses(1000, 20, 10);
	gpus = gpu_times_new(&facts);
	gpu_time_by_classes(&facts, &gpus[0], ns);
	gpu_times_free(gpus, &facts);
	assert_int_equal(ns[1 << FACT_KERNEL], LONG(20));
	assert_int_equal(ns[1 << FACT_KERNEL | 1 << FACT_COPY], LONG(130));
	assert_int_equal(ns[1 << FACT_KERNEL | 1 << FACT_COPY | 1 << FACT_COMMUNICATION], LONG(40));
	assert_int_equal(ns[1 << FACT_COPY | 1 << FACT_COMMUNICATION], LONG(50));
	assert_int_equal(ns[1 << FACT_COMMUNICATION], LONG(50));
	assert_int_equal(ns[1 << FACT_COPY], LONG(100));
	assert_int_equal(ns[1 << FACT_KERNEL | 1 << FACT_COMMUNICATION], 0);
	assert_us(&accounts.of[0], ACCOUNT_KERNELS, ANY, 190);
	assert_us(&accounts.of[0], ACCOUNT_COMMUNICATION, ANY, 100);
	assert_us(&accounts.of[0], ACCOUNT_COPIES, ANY, 100);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_pauses)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_the_longest_have_an_account_each),
		TEST(test_as_many_as_are_asked_for_are_kept),
		TEST(test_they_are_all_that_the_account_has_as_idle),
		TEST(test_what_was_before_the_account_is_none_of_it),
		TEST(test_what_was_not_measured_cuts_them),
		TEST(test_without_gpu_times_there_are_none),
		TEST(test_classes_that_run_at_once_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
