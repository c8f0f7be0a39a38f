// SPDX-License-Identifier: MIT
// Samples of GPUs' metrics with a simulated NVML: in order, bounded, and what became of the others.
#include "gpus/gpu_sampler.h"

#include "support.h"

#include "simnvml.h"

#define TICK_NS 50000000ull

static struct gpu_sampler *start(const char *gpus, const char *settings)
{
	struct gpu_sampler *sampler;

	setenv("SIMNVML_GPUS", gpus, 1);
	unsetenv("SIMNVML_FAIL");
	simnvml_set(settings);
	sampler = gpu_sampler_new(GPU_SAMPLING_METRICS, TICK_NS);
	assert_non_null(sampler);
	return sampler;
}

static bool next(struct gpu_sampler *sampler, struct gpu_metrics_sample *sample)
{
	for (int i = 0; i < 200; i++) {
		if (gpu_sampler_take(sampler, sample))
			return true;
		usleep(20000);
	}
	return false;
}

static void test_samples_of_a_gpu_follow_each_other(void **state)
{
	struct gpu_sampler *sampler = start("2", "gpm.2 33.3\n");
	uint64_t end_ns[2] = { 0 };
	struct gpu_metrics_sample sample;

	(void)state;
	for (int i = 0; i < 12; i++) {
		assert_true(next(sampler, &sample));
		assert_in_range(sample.gpu, 0, 1);
		assert_int_equal(sample.source, GPU_METRICS_GPM);
		assert_int_equal(sample.value[GPU_METRIC_SM], 3330);
		assert_true(sample.begin_ns < sample.end_ns);
		if (end_ns[sample.gpu])
			assert_int_equal(sample.begin_ns, end_ns[sample.gpu]);
		end_ns[sample.gpu] = sample.end_ns;
	}
	assert_true(end_ns[0] && end_ns[1]);
	gpu_sampler_free(sampler);
}

/* The simulated GPU was busy for half of a second, and for less of what is shorter. */
static void test_graphics_are_the_mean_of_each_second(void **state)
{
	struct gpu_sampler *sampler = start("1", "gpm.1.span 1\n");
	struct gpu_metrics_sample sample;
	int64_t last = 0;
	size_t values = 0;

	(void)state;
	assert_true(next(sampler, &sample)); /* so that something is known of what is short */
	assert_in_range(sample.value[GPU_METRIC_GRAPHICS], 50, 3000);
	for (int i = 0; i < 45; i++) {
		assert_true(next(sampler, &sample));
		assert_in_range(sample.value[GPU_METRIC_GRAPHICS], 4000, 8000);
		values += sample.value[GPU_METRIC_GRAPHICS] != last;
		last = sample.value[GPU_METRIC_GRAPHICS];
	}
	assert_in_range(values, 1, 8); /* of 45: not one each; seconds may have the same */
	gpu_sampler_free(sampler);
}

static void test_what_is_wanted_before_its_second_is_over_does_not_tell_graphics(void **state)
{
	struct gpu_sampler *sampler = start("1", "");
	struct gpu_metrics_sample sample;

	(void)state;
	assert_true(next(sampler, &sample));
	assert_int_equal(sample.value[GPU_METRIC_GRAPHICS], 9000);
	usleep(4 * TICK_NS / 1000);
	assert_false(gpu_sampler_take(sampler, &sample));
	gpu_sampler_settle(sampler);
	assert_true(gpu_sampler_take(sampler, &sample));
	assert_int_equal(sample.value[GPU_METRIC_GRAPHICS], GPU_METRIC_UNKNOWN);
	assert_int_equal(sample.value[GPU_METRIC_TENSOR], 6000);
	gpu_sampler_free(sampler);
}

static void test_numbers_that_no_gpu_can_have_are_not_believed(void **state)
{
	struct gpu_sampler *sampler =
		start("1", "gpm.2 -1\ngpm.3 1e9\ngpm.5 104\ngpm.20 1e30\ngpm.21 5\n");
	struct gpu_metrics_sample sample;

	(void)state;
	assert_true(next(sampler, &sample));
	assert_int_equal(sample.value[GPU_METRIC_SM], GPU_METRIC_UNKNOWN);
	assert_int_equal(sample.value[GPU_METRIC_OCCUPANCY], GPU_METRIC_UNKNOWN);
	assert_int_equal(sample.value[GPU_METRIC_TENSOR], GPU_SHARE_WHOLE);
	assert_int_equal(sample.value[GPU_METRIC_PCIE_TX], GPU_METRIC_UNKNOWN);
	assert_int_equal(sample.value[GPU_METRIC_PCIE_RX], 5 << 20);
	gpu_sampler_free(sampler);
}

static void test_readings_that_fail_are_counted_and_leave_a_pause(void **state)
{
	struct gpu_sampler *sampler = start("1", "");
	struct gpu_sampler_figures figures;
	struct gpu_metrics_sample sample;
	uint64_t end_ns;

	(void)state;
	assert_true(next(sampler, &sample));
	simnvml_set("fail.gpm_sample 999\n");
	usleep(400000);
	while (gpu_sampler_take(sampler, &sample))
		;
	end_ns = sample.end_ns;
	simnvml_set("");
	assert_true(next(sampler, &sample));
	assert_true(sample.begin_ns > end_ns);
	gpu_sampler_figures(sampler, &figures);
	assert_true(figures.none >= 4);
	assert_true(figures.gpm >= 2);
	assert_int_equal(figures.dropped, 0);
	assert_true(figures.cpu_ns > 0);
	gpu_sampler_free(sampler);
}

static void test_a_gpu_that_hangs_misses_moments_and_the_end_does_not_wait(void **state)
{
	struct gpu_sampler *sampler = start("1", "");
	struct gpu_sampler_figures figures;
	struct gpu_metrics_sample sample;
	uint64_t begin_ns;

	(void)state;
	assert_true(next(sampler, &sample));
	simnvml_set("hang 1\n");
	usleep(500000);
	simnvml_set("");
	usleep(200000);
	gpu_sampler_figures(sampler, &figures);
	assert_true(figures.late >= 5);
	simnvml_set("hang 1\n");
	usleep(200000);
	begin_ns = simnvml_now();
	gpu_sampler_free(sampler);
	assert_in_range(simnvml_now() - begin_ns, 0, 2000000000);
	simnvml_set("");
	usleep(300000);
}

static void test_a_gpu_that_tells_nothing_says_so(void **state)
{
	struct gpu_sampler *sampler = start("1", "gpm 0\nfail.utilization 3\n");
	struct gpu_metrics_sample sample;
	char why[256] = "";

	(void)state;
	for (int i = 0; i < 100 && !*why; i++) {
		usleep(20000);
		gpu_sampler_why(sampler, why, sizeof(why));
	}
	assert_string_equal(why, "this GPU tells neither GPM nor its utilisation");
	assert_false(gpu_sampler_take(sampler, &sample));
	gpu_sampler_free(sampler);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_samples_of_a_gpu_follow_each_other),
		cmocka_unit_test(test_graphics_are_the_mean_of_each_second),
		cmocka_unit_test(
			test_what_is_wanted_before_its_second_is_over_does_not_tell_graphics),
		cmocka_unit_test(test_numbers_that_no_gpu_can_have_are_not_believed),
		cmocka_unit_test(test_readings_that_fail_are_counted_and_leave_a_pause),
		cmocka_unit_test(test_a_gpu_that_hangs_misses_moments_and_the_end_does_not_wait),
		cmocka_unit_test(test_a_gpu_that_tells_nothing_says_so),
	};

	return cmocka_run_group_tests(tests, simnvml_load, simnvml_forget);
}
