// SPDX-License-Identifier: MIT
// How well a GPU was used while each kernel ran.
#include "analysis/kernel_metrics.h"

#include <math.h>

#include "support.h"

#define MS 1000000ull

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
	rows = kernel_metrics_rows(metrics, &n);
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
	rows = kernel_metrics_rows(metrics, &n);
	assert_int_equal(n, 1);
	assert_int_equal(rows[0].runs, 10);
	assert_float_equal(rows[0].sm, 96, 0.01);
	assert_true(isnan(rows[0].tensor)); /* not told by this GPU */
}

static void test_what_is_not_known_is_left_out_and_counted(void **state)
{
	size_t n;

	stretch(0, 0, 2 * MS, 50, 50, 50);
	kernel(&product, 0, 4 * MS); /* half of it was sampled */
	kernel(&add, 100 * MS, 110 * MS);
	stretch(0, 100 * MS, 120 * MS, 50, 50, 50);
	kernel(&product, 105 * MS, 112 * MS); /* beside the other one */
	kernel_metrics_rows(metrics, &n);
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
	kernel_metrics_rows(metrics, &n);
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
	kernel_metrics_rows(metrics, &n);
	assert_int_equal(n, 0);
	assert_true(kernel_metrics_of_several(metrics));
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
	rows = kernel_metrics_rows(metrics, &n);
	assert_int_equal(n, 1);
	assert_int_equal(rows[0].runs, 600);
	assert_int_equal(kernel_metrics_unsampled(metrics), 100000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_kernels_have_the_means_of_their_time, begin,
		                                end),
		cmocka_unit_test_setup_teardown(test_runs_that_follow_each_other_have_one_stretch,
		                                begin, end),
		cmocka_unit_test_setup_teardown(test_what_is_not_known_is_left_out_and_counted,
		                                begin, end),
		cmocka_unit_test_setup_teardown(test_of_several_gpus_nothing_is_told, begin, end),
		cmocka_unit_test_setup_teardown(
			test_gpus_whose_stretches_have_the_same_times_are_several, begin, end),
		cmocka_unit_test_setup_teardown(test_memory_is_bounded, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
