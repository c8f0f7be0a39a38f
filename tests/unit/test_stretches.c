// SPDX-License-Identifier: MIT
// When a GPU was busy, of samples of its counters.
#include "gpus/gpu_metrics.h"

#include "support.h"

#define SAMPLE 100u
#define MOST   64

static struct gpu_stretch told[MOST];
static size_t n_told;
static uint64_t now;
static struct stretches stretches;

static void tell(void *data, const struct gpu_stretch *stretch)
{
	(void)data;
	assert_true(n_told < MOST);
	assert_true(stretch->end_ns > stretch->begin_ns);
	if (n_told)
		assert_true(stretch->begin_ns >= told[n_told - 1].end_ns);
	told[n_told++] = *stretch;
}

static int begin(void **state)
{
	(void)state;
	stretches = (struct stretches){ .each = tell };
	n_told = 0;
	now = 1000;
	return 0;
}

/* `n` samples that say the same, in percent. */
static void samples(int n, int busy, int copies)
{
	for (int i = 0; i < n; i++) {
		struct pm_sample sample = { now,       now + SAMPLE, 100 * busy, 100 * copies,
			                    60 * busy, -1,           10 * busy };

		stretches_add(&stretches, &sample);
		now += SAMPLE;
	}
}

static void is(size_t i, uint64_t begin_ns, uint64_t end_ns, int busy, int copies)
{
	assert_true(i < n_told);
	assert_int_equal(told[i].begin_ns, begin_ns);
	assert_int_equal(told[i].end_ns, end_ns);
	assert_int_equal(told[i].busy, busy);
	assert_int_equal(told[i].copies, copies);
}

static void test_samples_that_say_the_same_are_one_stretch(void **state)
{
	(void)state;
	samples(3, 0, 0);
	samples(2, 100, 0);
	samples(1, 0, 100);
	samples(1, 0, 0);
	stretches_end(&stretches);
	assert_int_equal(n_told, 4);
	is(0, 1000, 1300, 0, 0);
	is(1, 1300, 1500, GPU_SHARE_WHOLE, 0);
	is(2, 1500, 1600, 0, GPU_SHARE_WHOLE);
	is(3, 1600, 1700, 0, 0);
	assert_int_equal(told[1].sm, 6000);
	assert_int_equal(told[1].dram, 1000);
	assert_int_equal(told[1].tensor, GPU_METRIC_UNKNOWN);
}

/* Samples of 100 us, all busy. */
static void busy_samples(int n, int tensor, int dram)
{
	for (int i = 0; i < n; i++) {
		struct pm_sample sample = { now,  now + 100000, GPU_SHARE_WHOLE, 0,
			                    9000, 100 * tensor, 100 * dram };

		stretches_add(&stretches, &sample);
		now += 100000;
	}
}

static void test_kernels_without_a_pause_between_them_are_told_apart(void **state)
{
	(void)state;
	busy_samples(50, 93, 16);
	busy_samples(20, 0, 87);
	busy_samples(2, 93, 16); /* too short to be told apart from what follows */
	busy_samples(10, 90, 18);
	stretches_end(&stretches);
	assert_int_equal(n_told, 3);
	assert_int_equal(told[0].tensor, 9300);
	assert_int_equal(told[0].end_ns, 1000 + 5000000);
	assert_int_equal(told[1].tensor, 0);
	assert_int_equal(told[1].dram, 8700);
	assert_int_equal(told[2].tensor, 9050);
	for (size_t i = 0; i < n_told; i++)
		assert_int_equal(told[i].busy, GPU_SHARE_WHOLE);
}

/* A kernel from 1,270 to 1,430. */
static void test_where_a_stretch_begins_and_ends_within_a_sample_its_share_says(void **state)
{
	(void)state;
	samples(2, 0, 0);
	samples(1, 30, 0);
	samples(1, 100, 0);
	samples(1, 30, 0);
	samples(1, 0, 0);
	stretches_end(&stretches);
	assert_int_equal(n_told, 3);
	is(0, 1000, 1270, 0, 0);
	is(1, 1270, 1430, GPU_SHARE_WHOLE, 0);
	is(2, 1430, 1600, 0, 0);
}

static void test_kernels_shorter_than_a_sample_are_a_share_of_it(void **state)
{
	(void)state;
	samples(2, 0, 0);
	samples(1, 40, 0);
	samples(1, 0, 0);
	samples(25, 25, 0);
	samples(1, 0, 0);
	stretches_end(&stretches);
	assert_int_equal(n_told, 7);
	is(1, 1200, 1300, 4000, 0);
	is(3, 1400, 2400, 2500, 0); /* ten samples at most */
	is(5, 3400, 3900, 2500, 0);
	is(6, 3900, 4000, 0, 0);
}

/* Copies from 1,240 to 1,350, then kernels from the middle of a sample on. */
static void test_copies_begin_and_end_within_samples_too(void **state)
{
	(void)state;
	samples(2, 0, 0);
	samples(1, 0, 60);
	samples(1, 0, 100);
	samples(1, 0, 50);
	samples(2, 0, 0);
	samples(1, 0, 40);
	samples(1, 0, 0);
	samples(1, 0, 70);
	samples(1, 0, 0);
	samples(1, 0, 100);
	samples(1, 20, 80);
	samples(1, 100, 0);
	stretches_end(&stretches);
	assert_int_equal(n_told, 7);
	is(1, 1240, 1450, 0, GPU_SHARE_WHOLE);
	is(2, 1450, 1900, 0, 0); /* less than half of a sample is none */
	is(3, 1900, 2000, 0, GPU_SHARE_WHOLE);
	is(6, 2280, 2400, GPU_SHARE_WHOLE, 0);
}

static void test_a_hole_ends_what_goes_on(void **state)
{
	(void)state;
	samples(2, 100, 0);
	now += 5000;
	samples(1, 50, 0);
	now += 5000;
	samples(2, 100, 0);
	stretches_end(&stretches);
	assert_int_equal(n_told, 3);
	is(0, 1000, 1200, GPU_SHARE_WHOLE, 0);
	is(1, 6200, 6300, 5000, 0);
	is(2, 11300, 11500, GPU_SHARE_WHOLE, 0);
}

static void test_what_goes_on_for_long_is_told_meanwhile(void **state)
{
	struct pm_sample sample = { 0, 15000000, 0, 0, 0, 0, 0 };

	(void)state;
	for (int i = 0; i < 4; i++) {
		stretches_add(&stretches, &sample);
		sample.begin_ns += 15000000;
		sample.end_ns += 15000000;
	}
	assert_true(n_told >= 2);
	stretches_end(&stretches);
	is(n_told - 1, told[n_told - 2].end_ns, 60000000, 0, 0);
}

static void test_shares_that_are_next_to_nothing_or_all_are_so(void **state)
{
	(void)state;
	samples(1, 99, 0);
	samples(1, 0, 10);
	stretches_end(&stretches);
	assert_int_equal(n_told, 2);
	is(0, 1000, 1100, GPU_SHARE_WHOLE, 0);
	is(1, 1100, 1200, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_samples_that_say_the_same_are_one_stretch, begin),
		cmocka_unit_test_setup(test_kernels_without_a_pause_between_them_are_told_apart,
		                       begin),
		cmocka_unit_test_setup(
			test_where_a_stretch_begins_and_ends_within_a_sample_its_share_says, begin),
		cmocka_unit_test_setup(test_kernels_shorter_than_a_sample_are_a_share_of_it, begin),
		cmocka_unit_test_setup(test_copies_begin_and_end_within_samples_too, begin),
		cmocka_unit_test_setup(test_a_hole_ends_what_goes_on, begin),
		cmocka_unit_test_setup(test_what_goes_on_for_long_is_told_meanwhile, begin),
		cmocka_unit_test_setup(test_shares_that_are_next_to_nothing_or_all_are_so, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
