// SPDX-License-Identifier: MIT
/* Percentiles of many values in little memory. */
#include "support.h"

#include "analysis/spread.h"
#include "base/array.h"

#define N_VALUES 20000

/* A number that is the same in every run; xorshift64. */
static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	return *state ^= *state << 17;
}

static int compare_values(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void assert_near(uint64_t estimate, uint64_t exact)
{
	double error = exact ? ((double)estimate - (double)exact) / (double)exact : 0;

	if (error > SKETCH_ERROR || error < -SKETCH_ERROR)
		fail_msg("%llu is not near %llu", (unsigned long long)estimate,
		         (unsigned long long)exact);
}

static void test_percentiles_are_within_the_stated_error(void **state)
{
	static const double shares[] = { 0.01, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1 };
	static uint64_t values[N_VALUES];
	struct sketch sketch = { 0 };
	uint64_t seed = 1;

	for (size_t i = 0; i < N_VALUES; i++) {
		/* from nanoseconds to hours: every octave has its share */
		values[i] = next_random(&seed) >> (next_random(&seed) % 64);
		sketch_add(&sketch, values[i]);
	}
	qsort(values, N_VALUES, sizeof(*values), compare_values);
	for (size_t i = 0; i < ARRAY_SIZE(shares); i++)
		assert_near(sketch_percentile(&sketch, shares[i]),
		            values[(size_t)(shares[i] * N_VALUES + 0.5) - 1]);
	sketch_free(&sketch);
}

static void test_every_power_of_two_and_its_neighbours_are_within_the_error(void **state)
{
	for (unsigned bit = 0; bit < 64; bit++) {
		for (int step = -1; step <= 1; step++) {
			uint64_t value = ((uint64_t)1 << bit) + (uint64_t)step;
			struct sketch sketch = { 0 };

			sketch_add(&sketch, value);
			sketch_add(&sketch, value);
			sketch_add(&sketch,
			           UINT64_MAX); /* so that the least and most do not help */
			sketch_add(&sketch, 0);
			assert_near(sketch_percentile(&sketch, 0.5), value);
			sketch_free(&sketch);
		}
	}
}

static void test_small_values_are_exact(void **state)
{
	struct sketch sketch = { 0 };

	for (uint64_t value = 1; value <= 100; value++)
		sketch_add(&sketch, value);
	assert_int_equal(sketch_percentile(&sketch, 0.50), 50);
	assert_int_equal(sketch_percentile(&sketch, 0.95), 95);
	assert_int_equal(sketch_percentile(&sketch, 0.99), 99);
	sketch_free(&sketch);
}

static void test_count_sum_least_and_most_are_exact(void **state)
{
	struct sketch sketch = { 0 };

	sketch_add(&sketch, 1000003);
	sketch_add(&sketch, 7);
	sketch_add(&sketch, 123456789);
	assert_int_equal(sketch.count, 3);
	assert_int_equal(sketch.sum, 1000003 + 7 + 123456789);
	assert_int_equal(sketch.min, 7);
	assert_int_equal(sketch.max, 123456789);
	assert_int_equal(sketch_percentile(&sketch, 1), 123456789);
	sketch_free(&sketch);
}

static void test_an_empty_sketch_has_zeros(void **state)
{
	struct sketch sketch = { 0 };

	assert_int_equal(sketch_percentile(&sketch, 0.5), 0);
	sketch_free(&sketch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_percentiles_are_within_the_stated_error),
		cmocka_unit_test(test_every_power_of_two_and_its_neighbours_are_within_the_error),
		cmocka_unit_test(test_small_values_are_exact),
		cmocka_unit_test(test_count_sum_least_and_most_are_exact),
		cmocka_unit_test(test_an_empty_sketch_has_zeros),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
