// SPDX-License-Identifier: MIT
// The account of recordings in which calls are known, and of GPUs only when they were busy.
#include "support.h"

#include "account_scene.h"

#define RESOLUTION_US 100

/* Of GPU 0, or another, in percent. */
static void gpu_was(uint32_t gpu, double begin_us, double end_us, int kernels, int copies)
{
	struct gpu_metrics_sample sample = { .gpu = gpu,
		                             .source = GPU_METRICS_STRETCHES,
		                             .begin_ns = US(begin_us),
		                             .end_ns = US(end_us) };
	struct event event = { .type = EVENT_METRICS,
		               .time_ns = US(end_us),
		               .process = the_process(),
		               .metrics = &sample };

	for (size_t i = 0; i < GPU_METRICS; i++)
		sample.value[i] = GPU_METRIC_UNKNOWN;
	sample.value[GPU_METRIC_BUSY] = 100 * kernels;
	sample.value[GPU_METRIC_MEMORY_BUSY] = 100 * copies;
	see(event);
}

static void idle(double begin_us, double end_us)
{
	gpu_was(0, begin_us, end_us, 0, 0);
}

static void busy(double begin_us, double end_us)
{
	gpu_was(0, begin_us, end_us, 100, 0);
}

static const struct account *the_account(double end_us)
{
	info.stretches.interval_ns = RESOLUTION_US * 1000;
	make_accounts(end_us);
	assert_all_add_up();
	assert_int_equal(accounts.n, 1);
	return &accounts.of[0];
}

/* A launch each 2 ms from line 30, each of 500 us, and what the thread did in between. */
static void test_a_pause_is_what_the_thread_did_that_asked_for_its_end(void **state)
{
	const struct account *account;

	(void)state;
	idle(0, 1005);
	for (int i = 0; i < 10; i++) {
		double at = 1000 + 2000 * i;

		launch(at, 30);
		busy(at + 5, at + 505);
		idle(at + 505, at + 2005);
		waited(WAIT_SLEEP, at + 600, at + 1900, 0, 40);
	}
	account = the_account(21005);
	assert_int_equal(account->device, 0);
	assert_us(account, ACCOUNT_KERNELS, 0, 10 * 500);
	assert_us(account, ACCOUNT_SLEEP, 40, 10 * 1300);
	assert_int_equal(facts.resolution_ns, 100000);
}

/* The same as records have it: what the GPU's samples add is no more than they are apart. */
static void test_records_and_stretches_give_the_same_account(void **state)
{
	double sleep[2], kernels[2];

	(void)state;
	for (int sampled = 0; sampled < 2; sampled++) {
		if (sampled) {
			close_scene(state);
			open_scene(state);
			idle(0, 1047); /* the GPU's clock is late, and so are edges */
		}
		for (int i = 0; i < 50; i++) {
			double at = 1000 + 3000 * i;
			uint64_t of = launch(at, 30);

			if (sampled) {
				busy(at + 47, at + 1053);
				idle(at + 1053, at + 3047);
			} else {
				ran(of, at + 5, at + 1005);
			}
			call_from(at + 10, at + 1010, "cuStreamSynchronize", 35);
			waited(WAIT_SLEEP, at + 1100, at + 2900, 0, 40);
		}
		info.stretches.interval_ns = sampled ? RESOLUTION_US * 1000 : 0;
		make_accounts(151005);
		assert_all_add_up();
		sleep[sampled] = us_of(&accounts.of[0], ACCOUNT_SLEEP, ANY) / accounts.of[0].ns;
		kernels[sampled] = us_of(&accounts.of[0], ACCOUNT_KERNELS, ANY) / accounts.of[0].ns;
	}
	assert_true(sleep[1] > 0.97 * sleep[0] && sleep[1] < 1.03 * sleep[0]);
	assert_true(kernels[1] > 0.97 * kernels[0] && kernels[1] < 1.03 * kernels[0]);
}

/* 10 us of every 50: none is told apart, their sum is known, and the host launches in between. */
static void test_kernels_shorter_than_the_samples_are_apart_are_those_of_the_launches(void **state)
{
	const struct account *account;

	(void)state;
	idle(0, 1000);
	for (int i = 0; i < 200; i++)
		launch(1000 + 50 * i, 30);
	for (int i = 0; i < 10; i++)
		gpu_was(0, 1000 + 1000 * i, 2000 + 1000 * i, 20, 0);
	idle(11000, 12000);
	account = the_account(11000);
	assert_true(us_of(account, ACCOUNT_KERNELS, ANY) > 1980 &&
	            us_of(account, ACCOUNT_KERNELS, ANY) < 2005);
	assert_true(us_of(account, ACCOUNT_LAUNCHING, ANY) > 7500);
}

static void test_copies_are_of_the_call_that_copies(void **state)
{
	const struct account *account;

	(void)state;
	idle(0, 1005);
	for (int i = 0; i < 10; i++) {
		double at = 1000 + 3000 * i;

		call_from(at, at + 5, "cuMemcpyHtoDAsync_v2", 20);
		launch(at + 10, 30);
		gpu_was(0, at + 5, at + 2005, 0, 100);
		busy(at + 2005, at + 2505);
		idle(at + 2505, at + 3005);
	}
	account = the_account(31000);
	assert_us(account, ACCOUNT_COPIES, 20, 10 * 2000);
	assert_us(account, ACCOUNT_KERNELS, 0, 10 * 500);
}

static void test_time_without_samples_is_not_measured(void **state)
{
	const struct account *account;

	(void)state;
	launch(1000, 30);
	busy(1005, 2005);
	idle(2005, 3005);
	launch(7000, 30);
	busy(7005, 9005);
	idle(9005, 9505);
	account = the_account(9505);
	assert_int_equal(account->not_measured_ns, 4000000);
	assert_us(account, ACCOUNT_KERNELS, 0, 3000);
}

/* It was busy for others before the program asked for anything. */
static void test_work_of_before_the_first_call_is_of_no_call(void **state)
{
	const struct account *account;

	(void)state;
	busy(100, 600);
	idle(600, 1005);
	launch(1000, 30);
	busy(1005, 2005);
	account = the_account(2005);
	assert_us(account, ACCOUNT_KERNELS, 0, 1500);
}

static void test_of_several_busy_gpus_it_is_not_known_whose_they_are(void **state)
{
	(void)state;
	launch(1000, 30);
	launch(1800, 30);
	busy(1005, 2005);
	gpu_was(3, 1000, 2000, 100, 0);
	info.stretches.interval_ns = 100000;
	make_accounts(2005);
	assert_int_equal(accounts.n, 1); /* of the thread */
	assert_int_equal(accounts.of[0].device, FACTS_NONE);
	assert_int_equal(facts.gpus_busy, 2);
}

static void test_records_are_better_than_stretches(void **state)
{
	(void)state;
	ran(launch(1000, 30), 1005, 1505);
	busy(1005, 1600);
	make_accounts(2005);
	assert_us(&accounts.of[0], ACCOUNT_KERNELS, 30, 500);
	assert_int_equal(facts.resolution_ns, 0);
}

/* What a file says may overlap, come in any order, and be of the end of time. */
static void test_stretches_that_cannot_be_make_an_account_that_adds_up(void **state)
{
	unsigned seed = 7;

	(void)state;
	for (int i = 0; i < 2000; i++) {
		double at = (seed = seed * 1103515245 + 12345) % 100000u;

		gpu_was(0, at, at + (seed >> 16) % 3000, (seed >> 8) % 101, seed % 2 ? 100 : 0);
		if (i % 3 == 0)
			launch(at, 30);
	}
	gpu_was(0, 5, 1e15, 100, 0);
	info.stretches = (struct run_stretches){ .interval_ns = UINT64_MAX, .clock_error_ns = 7 };
	make_accounts(100000);
	assert_all_add_up();
}

/* Of a stretch so short that no kernel is left of it; then nothing is told for a while. */
static void test_a_gpu_that_was_busy_for_nothing_has_no_account(void **state)
{
	(void)state;
	launch(1000, 30);
	gpu_was(0, 1005, 1005.05, 1, 0);
	idle(5000, 6000);
	info.stretches.interval_ns = RESOLUTION_US * 1000;
	make_accounts(6000);
	assert_all_add_up();
	assert_int_equal(accounts.n, 1); /* of the thread */
	assert_int_equal(accounts.of[0].device, FACTS_NONE);
	assert_int_equal(facts.n_unmeasured, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)
	const struct CMUnitTest tests[] = {
		TEST(test_a_pause_is_what_the_thread_did_that_asked_for_its_end),
		TEST(test_records_and_stretches_give_the_same_account),
		TEST(test_kernels_shorter_than_the_samples_are_apart_are_those_of_the_launches),
		TEST(test_copies_are_of_the_call_that_copies),
		TEST(test_time_without_samples_is_not_measured),
		TEST(test_work_of_before_the_first_call_is_of_no_call),
		TEST(test_of_several_busy_gpus_it_is_not_known_whose_they_are),
		TEST(test_records_are_better_than_stretches),
		TEST(test_stretches_that_cannot_be_make_an_account_that_adds_up),
		TEST(test_a_gpu_that_was_busy_for_nothing_has_no_account),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
