// SPDX-License-Identifier: MIT
// How well a GPU was used while each kernel ran.
#include "analysis/kernel_metrics.h"

#include <math.h>
#include <time.h>

#include "support.h"

#define MS      1000000ull
#define EDGE_NS 400000 /* of samples 100 us apart */

static const struct process process = { .id = 0, .pid = 7 };
static const struct kernel product = { .id = 0, .name = "product" },
			   add = { .id = 1, .name = "add" }, tiny = { .id = 2, .name = "tiny" };
static struct kernel_metrics *metrics;

static int begin(void **state)
{
	metrics = kernel_metrics_new();
	return 0;
}

static int end(void **state)
{
	kernel_metrics_free(metrics);
	return 0;
}

/* In percent. */
static void stretch(uint32_t gpu, uint64_t begin_ns, uint64_t end_ns, int sm, int tensor, int dram)
{
	struct gpu_metrics_sample sample = {
		.gpu = gpu, .source = GPU_METRICS_STRETCHES, .begin_ns = begin_ns, .end_ns = end_ns
	};

	for (size_t i = 0; i < GPU_METRICS; i++)
		sample.value[i] = GPU_METRIC_UNKNOWN;
	sample.value[GPU_METRIC_SM] = 100 * sm;
	sample.value[GPU_METRIC_TENSOR] = tensor < 0 ? GPU_METRIC_UNKNOWN : 100 * tensor;
	sample.value[GPU_METRIC_DRAM] = 100 * dram;
	kernel_metrics_event(metrics, &(struct event){ .type = EVENT_METRICS, .metrics = &sample });
}

static void kernel(const struct kernel *kernel, uint64_t begin_ns, uint64_t end_ns)
{
	const struct activity activity = {
		.kind = ACTIVITY_KERNEL, .begin_ns = begin_ns, .end_ns = end_ns, .kernel = kernel
	};

	kernel_metrics_event(metrics, &(struct event){ .type = EVENT_ACTIVITY,
	                                               .process = &process,
	                                               .activity = &activity });
}

static void test_kernels_have_the_means_of_their_time(void **state)
{
	const struct kernel_metrics_row *rows;
	size_t n;

	stretch(0, 0, 10 * MS, 0, 0, 0);
	stretch(0, 10 * MS, 15 * MS, 96, 93, 16);
	kernel(&product, 10 * MS, 15 * MS); /* its record comes before and after its samples */
	kernel(&add, 15 * MS, 18 * MS);
	stretch(0, 15 * MS + 100000, 18 * MS, 99, 0, 87);
	stretch(0, 18 * MS, 30 * MS, 0, 0, 0);
	kernel(&tiny, 20 * MS, 20 * MS + 999000);
	rows = kernel_metrics_rows(metrics, EDGE_NS, &n);
	assert_int_equal(n, 2);
	assert_ptr_equal(rows[0].kernel, &product);
	assert_int_equal(rows[0].runs, 1);
	assert_int_equal(rows[0].ns, 5 * MS);
	assert_float_equal(rows[0].sm, 96, 0.01);
	assert_float_equal(rows[0].tensor, 93, 0.01);
	assert_float_equal(rows[0].dram, 16, 0.01);
	assert_float_equal(rows[1].dram, 87, 0.01);
	assert_int_equal(kernel_metrics_unsampled(metrics) + kernel_metrics_together(metrics), 0);
}

static void test_runs_that_follow_each_other_have_one_stretch(void **state)
{
	const struct kernel_metrics_row *rows;
	size_t n;

	for (uint64_t i = 0; i < 10; i++)
		kernel(&product, i * 2 * MS, (i + 1) * 2 * MS);
	stretch(0, 0, 20 * MS, 96, -1, 16);
	rows = kernel_metrics_rows(metrics, EDGE_NS, &n);
	assert_int_equal(n, 1);
	assert_int_equal(rows[0].runs, 10);
	assert_float_equal(rows[0].sm, 96, 0.01);
	assert_true(isnan(rows[0].tensor)); /* not told by this GPU */
}

/* Samples late by half a millisecond, as long as they may be wrong by more, tell nothing of others.
 */
static void test_times_of_samples_may_be_wrong(void **state)
{
	const struct kernel_metrics_row *rows;
	uint64_t late_ns = 600000;
	size_t n;

	for (uint64_t i = 0; i < 10; i++) {
		uint64_t at_ns = i * 10 * MS;

		kernel(&product, at_ns, at_ns + 3 * MS);
		kernel(&add, at_ns + 3 * MS, at_ns + 8 * MS);
		kernel(&tiny, at_ns + 8 * MS, at_ns + 10 * MS);
		stretch(0, at_ns + late_ns, at_ns + 3 * MS + late_ns, 96, 93, 16);
		stretch(0, at_ns + 3 * MS + late_ns, at_ns + 8 * MS + late_ns, 99, 0, 87);
		stretch(0, at_ns + 8 * MS + late_ns, at_ns + 10 * MS + late_ns, 10, 0, 0);
	}
	rows = kernel_metrics_rows(metrics, 650000, &n);
	assert_int_equal(kernel_metrics_least_ns(metrics), 1600000);
	assert_int_equal(n, 3);
	assert_ptr_equal(rows[0].kernel, &add);
	assert_float_equal(rows[0].tensor, 0, 0.01);
	assert_float_equal(rows[1].tensor, 93, 0.01);
	assert_float_equal(rows[1].dram, 16, 0.01);
	assert_float_equal(rows[2].sm, 10, 0.01);
	rows = kernel_metrics_rows(metrics, 900001, &n);
	assert_int_equal(kernel_metrics_least_ns(metrics), 2600000);
	assert_int_equal(n, 2);
	assert_int_equal(rows[1].runs, 10);
	kernel_metrics_rows(metrics, 2 * MS, &n);
	assert_int_equal(n, 0);
	assert_int_equal(kernel_metrics_unsampled(metrics), 0); /* none is long enough */
	kernel_metrics_rows(metrics, 25 * MS, &n);
	assert_int_equal(n, 0);
	assert_int_equal(kernel_metrics_least_ns(metrics), 0);
	assert_int_equal(kernel_metrics_unsampled(metrics), 0);
	assert_int_equal(kernel_metrics_together(metrics), 0);
	assert_true(kernel_metrics_any(metrics));
}

/* Of a recording without metrics nothing is missing. */
static void test_runs_alone_are_no_use_of_a_gpu(void **state)
{
	size_t n;

	kernel(&product, 0, 4 * MS);
	kernel_metrics_rows(metrics, EDGE_NS, &n);
	assert_int_equal(n, 0);
	assert_int_equal(kernel_metrics_unsampled(metrics), 0);
	assert_false(kernel_metrics_any(metrics));
}

static void test_what_is_not_known_is_left_out_and_counted(void **state)
{
	size_t n;

	stretch(0, 0, 2 * MS, 50, 50, 50);
	kernel(&product, 0, 4 * MS); /* half of it was sampled */
	kernel(&add, 100 * MS, 110 * MS);
	stretch(0, 100 * MS, 120 * MS, 50, 50, 50);
	kernel(&product, 105 * MS, 112 * MS); /* beside the other one */
	kernel_metrics_rows(metrics, EDGE_NS, &n);
	assert_int_equal(n, 0);
	assert_int_equal(kernel_metrics_unsampled(metrics), 1);
	assert_int_equal(kernel_metrics_together(metrics), 2);
}

static void test_of_several_gpus_nothing_is_told(void **state)
{
	size_t n;

	stretch(0, 0, 5 * MS, 96, 93, 16);
	stretch(1, 5 * MS, 9 * MS, 1, 1, 1);
	kernel(&product, 0, 5 * MS);
	kernel_metrics_rows(metrics, EDGE_NS, &n);
	assert_int_equal(n, 0);
	assert_true(kernel_metrics_of_several(metrics));
}

static void test_gpus_whose_stretches_have_the_same_times_are_several(void **state)
{
	size_t n;

	for (uint64_t i = 0; i < 10; i++) {
		stretch(0, i * 5 * MS, (i + 1) * 5 * MS, 10, 10, 10);
		stretch(1, i * 5 * MS, (i + 1) * 5 * MS, 90, 90, 90);
		kernel(&product, i * 5 * MS, i * 5 * MS + 4 * MS);
	}
	kernel_metrics_rows(metrics, EDGE_NS, &n);
	assert_int_equal(n, 0);
	assert_true(kernel_metrics_of_several(metrics));
}

/* Parts of the first and of the last, and all between, also where the first ones are forgotten. */
static void test_a_long_run_has_the_mean_of_all_its_stretches(void **state)
{
	static const uint64_t many[] = { 1000, 300000 };
	const struct kernel_metrics_row *rows;
	uint64_t last = 0;
	double sm = 0;
	size_t n;

	for (size_t k = 0; k < 2; k++) {
		for (uint64_t i = last; i < many[k]; i++)
			stretch(0, i * MS, (i + 1) * MS, (int)(i % 100), i % 2 ? 40 : -1, 7);
		last = many[k];
		/* half of a stretch at the begin, and half of one at the end, both of 0 % SM */
		kernel(k ? &add : &product, (last - 900) * MS + MS / 2 - 400000,
		       (last - 100) * MS + MS / 2 + 400000);
	}
	for (uint64_t i = 100; i < 900; i++)
		sm += (double)(i % 100) / 800;
	/* half of the first is missing, and half of the one after the last is there: both are 0 %
	 */
	rows = kernel_metrics_rows(metrics, EDGE_NS, &n);
	assert_int_equal(n, 2);
	for (size_t i = 0; i < n; i++) {
		assert_float_equal(rows[i].sm, sm, 0.001);
		assert_float_equal(rows[i].tensor, 40, 0.001);
		assert_float_equal(rows[i].dram, 7, 0.001);
	}
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Runs whose samples never come, and runs as long as all stretches: each was thousands of steps. */
static void test_no_run_costs_more_than_others(void **state)
{
	double begin = seconds();
	size_t n;

	for (uint64_t i = 0; i < 200000; i++)
		kernel(&product, (1000000 + i) * 2 * MS, (1000000 + i) * 2 * MS + MS);
	for (uint64_t i = 0; i < 200000; i++) {
		stretch(0, i * MS, (i + 1) * MS, 50, 50, 50);
		kernel(&add, (9000000 + i) * MS, (9000001 + i) * MS);
	}
	end(NULL);
	metrics = kernel_metrics_new();
	for (uint64_t i = 0; i < 1u << 18; i++)
		stretch(0, i * MS, (i + 1) * MS, 50, 50, 50);
	for (uint64_t i = 0; i < 65 * 4000; i++) {
		bool is_long = i % 65 == 0;

		kernel(&product, is_long ? 0 : i * MS, is_long ? (1u << 18) * MS : (i + 1) * MS);
	}
	kernel_metrics_rows(metrics, EDGE_NS, &n);
	assert_true(seconds() - begin < 2);
}

/* What is no stretch settles none: each looked at all runs that wait, 68 us. */
static void test_samples_of_other_kinds_cost_nothing(void **state)
{
	struct gpu_metrics_sample sample = { .source = GPU_METRICS_GPM };
	struct event event = { .type = EVENT_METRICS, .metrics = &sample };
	double begin;

	for (uint64_t i = 0; i < 65536; i++)
		kernel(&product, (1000 + i) * MS, (1001 + i) * MS);
	begin = seconds();
	for (uint64_t i = 0; i < 100000; i++) {
		sample.begin_ns = i;
		sample.end_ns = i + 1;
		kernel_metrics_event(metrics, &event);
	}
	assert_true(seconds() - begin < 2);
}

/* Of a recording without samples, and with more stretches than are kept. */
static void test_memory_is_bounded(void **state)
{
	const struct kernel_metrics_row *rows;
	size_t n;

	for (uint64_t i = 0; i < 100000; i++)
		kernel(&product, i * 2 * MS, i * 2 * MS + MS);
	for (uint64_t i = 0; i < 600000; i++) {
		stretch(0, 400000 * MS + i * MS, 400000 * MS + (i + 1) * MS, 50, 50, 50);
		if (i % 1000 == 0)
			kernel(&add, 400000 * MS + i * MS, 400000 * MS + (i + 2) * MS);
	}
	rows = kernel_metrics_rows(metrics, EDGE_NS, &n);
	assert_int_equal(n, 1);
	assert_int_equal(rows[0].runs, 600);
	assert_int_equal(kernel_metrics_unsampled(metrics), 100000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_samples_of_other_kinds_cost_nothing, begin,
		                                end),
		cmocka_unit_test_setup_teardown(test_kernels_have_the_means_of_their_time, begin,
		                                end),
		cmocka_unit_test_setup_teardown(test_runs_alone_are_no_use_of_a_gpu, begin, end),
		cmocka_unit_test_setup_teardown(test_times_of_samples_may_be_wrong, begin, end),
		cmocka_unit_test_setup_teardown(test_runs_that_follow_each_other_have_one_stretch,
		                                begin, end),
		cmocka_unit_test_setup_teardown(test_what_is_not_known_is_left_out_and_counted,
		                                begin, end),
		cmocka_unit_test_setup_teardown(test_of_several_gpus_nothing_is_told, begin, end),
		cmocka_unit_test_setup_teardown(
			test_gpus_whose_stretches_have_the_same_times_are_several, begin, end),
		cmocka_unit_test_setup_teardown(test_a_long_run_has_the_mean_of_all_its_stretches,
		                                begin, end),
		cmocka_unit_test_setup_teardown(test_no_run_costs_more_than_others, begin, end),
		cmocka_unit_test_setup_teardown(test_memory_is_bounded, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
