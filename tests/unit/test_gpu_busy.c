// SPDX-License-Identifier: MIT
// When simulated GPUs were busy, by the simulated CUPTI's PM sampling in a process of its own.
#include "gpus/gpu_sampler.h"

#include "support.h"

#include <sys/stat.h>

#include "../simcuda/busy_log.h"
#include "simnvml.h"

#define MICROS      1000ull
#define MS          1000000ull
#define INTERVAL_NS (100 * MICROS)
#define HERE        "/tmp/test_gpu_busy.%d"

static struct busy_log *busy;
static struct gpu_sampler *sampler;
static char folder[64], why[256];

/* Kernels, or copies, of `ns` every `period_ns`, from now to `seconds` after it. */
static void keep_busy(uint64_t ns, uint64_t period_ns, unsigned seconds, bool copies)
{
	uint64_t now_ns = simnvml_now(), n = seconds * 1000000000ull / period_ns;

	assert_true(n < BUSY_ENTRIES);
	busy->n = 0;
	for (uint64_t i = 0; i < n; i++)
		busy->entries[i] = (struct busy_entry){ now_ns + i * period_ns,
			                                now_ns + i * period_ns + ns, 0, copies };
	__atomic_store_n(&busy->n, n, __ATOMIC_RELEASE);
}

static const char *const settings[] = { "SIMCUPTI_PM_PLAIN",    "SIMCUPTI_BEHIND_NS",
	                                "SIMCUPTI_PM_COST_NS",  "SIMCUPTI_PM_FULL",
	                                "SIMCUPTI_PM_BUFFER",   "SIMCUDA_FAIL",
	                                "SIMCUDA_DEVICES",      "SIMCUPTI_PM_HANG",
	                                "SIMCUPTI_PM_SLOW_NS",  "SIMCUPTI_PM_DECODE_NS",
	                                "SIMCUPTI_PM_CLEAR_NS", "SIMCUPTI_PM_CLEAR_NS" };

static void begin_at(uint64_t interval_ns, const char *name, const char *value)
{
	if (name)
		setenv(name, value, 1);
	sampler = gpu_sampler_new(GPU_SAMPLING_STRETCHES, interval_ns);
	assert_non_null(sampler);
}

static void begin(const char *name, const char *value)
{
	begin_at(INTERVAL_NS, name, value);
}

static int end(void **state)
{
	(void)state;
	gpu_sampler_free(sampler);
	sampler = NULL;
	busy->n = 0;
	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++)
		unsetenv(settings[i]);
	return 0;
}

static bool next(struct gpu_metrics_sample *sample)
{
	for (int i = 0; i < 750; i++) {
		if (gpu_sampler_take(sampler, sample))
			return true;
		usleep(20000);
	}
	return false;
}

/* Begins with an idle GPU, and keeps it busy from when the sampler knows its clock. */
static void begin_busy(const char *name, uint64_t ns, uint64_t period_ns, unsigned seconds,
                       bool copies)
{
	struct gpu_metrics_sample sample;

	begin(name, "1");
	assert_true(next(&sample));
	keep_busy(ns, period_ns, seconds, copies);
}

#define WINDOWS 5

struct told {
	double ns, busy, copies; /* the shares: the middle ones of WINDOWS */
	uint64_t n;
};

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct window {
	double ns, busy_ns, copies_ns;
	uint64_t n, lost;
};

static uint64_t lost_now(void)
{
	struct gpu_sampler_figures figures;

	gpu_sampler_figures(sampler, &figures);
	return figures.lost;
}

/* For so long, from when the GPU is busy on; each follows the one before, unless some were lost. */
static struct window window(uint64_t for_ns, uint64_t *last_ns, uint64_t *lost, bool holes)
{
	uint64_t busy_from_ns = busy->n ? busy->entries[0].begin_ns + 2 * INTERVAL_NS : 0;
	struct gpu_metrics_sample sample;
	struct window window = { .lost = *lost };
	uint64_t first_ns = 0;

	do {
		assert_true(next(&sample));
		assert_int_equal(sample.source, GPU_METRICS_STRETCHES);
		assert_true(sample.end_ns > sample.begin_ns && sample.begin_ns >= *last_ns);
		assert_true(sample.end_ns <= simnvml_now());
		/* clocks are known better with time: never by much. What is lost on a busy machine
		 * is told. */
		if (*last_ns && !holes && sample.begin_ns - *last_ns > INTERVAL_NS)
			assert_true(lost_now() > window.lost++);
		*last_ns = sample.end_ns;
		if (sample.begin_ns < busy_from_ns)
			continue;
		double ns = (double)(sample.end_ns - sample.begin_ns) / GPU_SHARE_WHOLE;

		first_ns = first_ns ? first_ns : sample.begin_ns;
		window.ns += ns * GPU_SHARE_WHOLE;
		window.busy_ns += ns * (double)sample.value[GPU_METRIC_BUSY];
		window.copies_ns += ns * (double)sample.value[GPU_METRIC_MEMORY_BUSY];
		window.n++;
	} while (!first_ns || *last_ns - first_ns < for_ns);
	*lost = window.lost;
	return window;
}

/* A clock that is known better from now on makes one window shorter: the middle ones are right. */
static struct told tell(uint64_t for_ns, bool holes)
{
	double busy_shares[WINDOWS], copies_shares[WINDOWS];
	struct told told = { 0 };
	uint64_t last_ns = 0, lost = 0;

	for (size_t i = 0; i < WINDOWS; i++) {
		struct window of = window(for_ns / WINDOWS, &last_ns, &lost, holes);

		busy_shares[i] = of.busy_ns / of.ns;
		copies_shares[i] = of.copies_ns / of.ns;
		told.ns += of.ns;
		told.n += of.n;
	}
	qsort(busy_shares, WINDOWS, sizeof(double), compare);
	qsort(copies_shares, WINDOWS, sizeof(double), compare);
	told.busy = busy_shares[WINDOWS / 2];
	told.copies = copies_shares[WINDOWS / 2];
	return told;
}

static void assert_share(double share, double is)
{
	if (share < is - 0.02 || share > is + 0.02)
		fail_msg("%.3f, not %.3f", share, is);
}

static void assert_why(const char *says)
{
	*why = '\0';
	for (int i = 0; i < 800 && !*why; i++) {
		usleep(20000);
		gpu_sampler_why(sampler, why, sizeof(why));
	}
	if (!strstr(why, says))
		fail_msg("\"%s\", not \"%s\"", why, says);
}

static void test_busy_time_is_what_the_gpu_was_busy(void **state)
{
	struct gpu_sampler_figures figures;
	struct told told;

	(void)state;
	begin_busy(NULL, 300 * MICROS, 1013 * MICROS, 6, false);
	told = tell(800 * MS, false);
	assert_share(told.busy, 300.0 / 1013);
	assert_share(told.copies, 0);
	assert_true((double)told.n > 1.9 * told.ns / (1013 * MICROS)); /* each kernel, each pause */
	gpu_sampler_figures(sampler, &figures);
	assert_true(figures.samples > 8000 * 8 / 10);
	assert_int_equal(figures.interval_ns, INTERVAL_NS);
	assert_in_range(figures.clock_error_ns, INTERVAL_NS, 50 * INTERVAL_NS);
	assert_true(figures.cpu_ns > 0);
}

static void test_kernels_shorter_than_samples_are_apart_are_added_up(void **state)
{
	struct told told;

	(void)state;
	begin_busy(NULL, 10 * MICROS, 40 * MICROS, 2, false);
	told = tell(400 * MS, false);
	assert_share(told.busy, 0.25);
}

static void test_copies_are_told_apart_from_kernels(void **state)
{
	struct told told;

	(void)state;
	begin_busy(NULL, 2 * MS, 4 * MS, 6, true);
	told = tell(600 * MS, false);
	assert_share(told.busy, 0);
	assert_share(told.copies, 0.5);
}

/* By multiprocessors and memory: each sample with a kernel in it counts as a whole. */
static void test_a_gpu_that_tells_of_no_engines_is_told_by_what_it_tells(void **state)
{
	struct told told;

	(void)state;
	begin_busy("SIMCUPTI_PM_PLAIN", 2 * MS, 4013 * MICROS, 6, true);
	told = tell(600 * MS, false);
	assert_share(told.copies, 0.52);
	end(state);
	begin_busy("SIMCUPTI_PM_PLAIN", 2 * MS, 4013 * MICROS, 6, false);
	told = tell(600 * MS, false);
	assert_share(told.busy, 0.52);
}

/* A GPU counts from when its driver was loaded, or as it likes. */
static void test_times_are_this_machines(void **state)
{
	struct gpu_metrics_sample sample = { 0 };
	size_t near = 0;

	(void)state;
	keep_busy(50 * MS, 100 * MS, 6, false);
	begin("SIMCUPTI_BEHIND_NS", "12345678901");
	while (sample.value[GPU_METRIC_BUSY] != GPU_SHARE_WHOLE ||
	       sample.end_ns - sample.begin_ns < 5 * MS)
		assert_true(next(&sample));
	for (size_t i = 0; i < 20 && near < 3; i++) { /* to the first of a kernel */
		struct gpu_sampler_figures before, after;

		gpu_sampler_figures(sampler, &before);
		while (sample.value[GPU_METRIC_BUSY])
			assert_true(next(&sample));
		while (!sample.value[GPU_METRIC_BUSY])
			assert_true(next(&sample));
		gpu_sampler_figures(sampler, &after);
		uint64_t at_ns = (sample.begin_ns - busy->entries[0].begin_ns) % (100 * MS);
		uint64_t late_ns = at_ns < 50 * MS ? at_ns : 100 * MS - at_ns;

		if (late_ns > before.clock_error_ns && late_ns > after.clock_error_ns)
			fail_msg("it began %llu us late", (unsigned long long)late_ns / 1000);
		near += late_ns <= 2 * MS;
	}
	assert_int_equal(near, 3);
}

static void test_samples_that_cost_much_become_fewer(void **state)
{
	struct gpu_sampler_figures before, figures;
	uint64_t begin_ns;

	(void)state;
	keep_busy(300 * MICROS, 1013 * MICROS, 10, false);
	begin("SIMCUPTI_PM_COST_NS", "40000"); /* 40 % of a CPU */
	tell(2500 * MS, true);
	gpu_sampler_figures(sampler, &before);
	assert_in_range(before.interval_ns, 3 * INTERVAL_NS, 100 * INTERVAL_NS);
	begin_ns = simnvml_now();
	tell(800 * MS, true);
	gpu_sampler_figures(sampler, &figures);
	if (figures.cpu_ns - before.cpu_ns > (simnvml_now() - begin_ns) / 7)
		fail_msg("%.1f ms of %.1f", (double)(figures.cpu_ns - before.cpu_ns) / 1e6,
		         (double)(simnvml_now() - begin_ns) / 1e6);
}

/* Readings are frequent at first, which is not what they cost. */
static void test_samples_that_can_be_paid_for_stay_as_they_are(void **state)
{
	struct gpu_sampler_figures figures;

	(void)state;
	setenv("SIMCUPTI_PM_DECODE_NS", "2500000", 1);
	setenv("SIMCUPTI_PM_CLEAR_NS", "3000000", 1);
	begin_at(750 * MICROS, "SIMCUPTI_PM_COST_NS", "10000");
	tell(2500 * MS, true);
	gpu_sampler_figures(sampler, &figures);
	assert_int_equal(figures.interval_ns, 750 * MICROS);
	assert_int_equal(figures.lost, 0);
}

/* As on an H200, where a decoding takes 0.8 ms, a cleared image 3 ms and a sample 31 us. */
static void test_samples_stay_as_near_as_they_can_be_paid_for(void **state)
{
	struct gpu_sampler_figures before, figures;
	uint64_t begin_ns;

	(void)state;
	keep_busy(300 * MICROS, 1013 * MICROS, 10, false);
	setenv("SIMCUPTI_PM_DECODE_NS", "800000", 1);
	setenv("SIMCUPTI_PM_CLEAR_NS", "3000000", 1);
	begin("SIMCUPTI_PM_COST_NS", "28000");
	tell(1500 * MS, true);
	gpu_sampler_figures(sampler, &before);
	begin_ns = simnvml_now();
	tell(1000 * MS, true);
	gpu_sampler_figures(sampler, &figures);
	assert_in_range(figures.interval_ns, 3 * INTERVAL_NS, 9 * INTERVAL_NS);
	if (figures.cpu_ns - before.cpu_ns > (simnvml_now() - begin_ns) / 8)
		fail_msg("%.1f ms of %.1f", (double)(figures.cpu_ns - before.cpu_ns) / 1e6,
		         (double)(simnvml_now() - begin_ns) / 1e6);
}

/* Where it does not begin again at once, it does so from its beginning. */
static void test_a_sampler_that_cannot_be_paced_begins_again(void **state)
{
	struct gpu_sampler_figures figures;

	(void)state;
	setenv("SIMCUDA_FAIL", "cuptiPmSamplingEnable:2=26", 1);
	begin("SIMCUPTI_PM_COST_NS", "40000");
	tell(2500 * MS, true);
	gpu_sampler_figures(sampler, &figures);
	assert_in_range(figures.interval_ns, 3 * INTERVAL_NS, 100 * INTERVAL_NS);
	gpu_sampler_why(sampler, why, sizeof(why));
	assert_string_equal(why, "");
}

/* As on a machine whose CPUs are others': it costs little, and is never done. */
static void test_samples_that_come_faster_than_they_are_read_become_fewer(void **state)
{
	struct gpu_sampler_figures figures;

	(void)state;
	begin("SIMCUPTI_PM_SLOW_NS", "300000");
	tell(100 * MS, true);
	gpu_sampler_figures(sampler, &figures);
	assert_in_range(figures.interval_ns, 3 * INTERVAL_NS, 100 * INTERVAL_NS);
	assert_true(figures.lost > 0);
}

/* It has room for less than it was asked for, and what finds none is lost. */
static void test_an_image_that_is_full_leaves_a_hole_and_is_used_again(void **state)
{
	struct gpu_sampler_figures before, after;

	(void)state;
	keep_busy(300 * MICROS, 1013 * MICROS, 6, false);
	begin("SIMCUPTI_PM_FULL", "1");
	tell(300 * MS, true);
	gpu_sampler_figures(sampler, &before);
	assert_true(before.lost > 0);
	tell(300 * MS, true);
	gpu_sampler_figures(sampler, &after);
	assert_true(after.lost > before.lost && after.samples > before.samples);
}

static void test_a_buffer_that_is_full_leaves_a_hole(void **state)
{
	struct gpu_sampler_figures figures;

	(void)state;
	keep_busy(300 * MICROS, 1013 * MICROS, 6, false);
	begin("SIMCUPTI_PM_BUFFER", "202"); /* it is read every 300, once the clock is known */
	for (int i = 0; i < 250; i++) {
		usleep(20000);
		gpu_sampler_figures(sampler, &figures);
		if (figures.lost)
			break;
	}
	assert_true(figures.lost > 0);
}

static void test_why_there_is_none_is_said(void **state)
{
	(void)state;
	begin("SIMCUDA_FAIL", "cuptiPmSamplingEnable:*=26");
	assert_why("another program samples GPU 0");
	end(state);
	begin("SIMCUDA_FAIL", "cuptiPmSamplingEnable:*=35");
	assert_why("CUPTI cannot sample GPU 0 (error 35)");
	end(state);
	begin("SIMCUDA_FAIL", "cuptiPmSamplingDecodeData:20=999");
	assert_why("CUPTI gives no samples of GPU 0 any more");
	end(state);
	begin("SIMCUDA_DEVICES", "0");
	assert_why("CUDA finds no GPU");
}

static void test_a_cupti_that_does_not_come_back_ends_its_process(void **state)
{
	(void)state;
	begin("SIMCUPTI_PM_HANG", "30"); /* the clock is known after 10 */
	tell(20 * MS, true);
	assert_why("the process that samples GPUs ended");
}

/* The folder that a test makes has copies of what it says. */
static void library(const char *name, const char *of)
{
	char command[8400];

	snprintf(command, sizeof(command), "cp '%s%s' '%s/%s'", getenv("SIM_LIBRARIES"), of, folder,
	         name);
	assert_int_equal(system(command), 0);
}

static void unlink_from(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(unlink(path), 0);
}

static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), HERE ".d", (int)getpid());
	return mkdir(folder, 0755);
}

static int remove_folder(void **state)
{
	char command[128];

	end(state);
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

static void test_libraries_that_do_not_fit_are_named(void **state)
{
	char *libraries = strdup(getenv("LD_LIBRARY_PATH"));

	(void)state;
	setenv("LD_LIBRARY_PATH", folder, 1);
	library("libcuda.so.1", "/push/libcuda.so.1");
	library("libcupti.so.13", "/libcupti.so.13");
	begin(NULL, NULL);
	assert_why("libnvperf_host.so is not beside it");
	end(state);
	library("libnvperf_host.so", "/libnvperf_host.so");
	unlink_from("libcupti.so.13");
	library("libcupti.so.13", "/libcupti.so.12"); /* of CUDA 12.4 */
	begin(NULL, NULL);
	assert_why("it is of before CUDA 12.8");
	end(state);
	chmod(folder, 0777);
	begin(NULL, NULL);
	assert_why("others than root may change");
	setenv("LD_LIBRARY_PATH", libraries, 1);
	free(libraries);
}

static int load(void **state)
{
	static char log[64];
	char path[8400], at[4096], *slash;

	if (simnvml_load(state))
		return -1;
	snprintf(at, sizeof(at), "%s", getenv("LD_LIBRARY_PATH"));
	slash = strrchr(at, '/'); /* of /simnvml */
	snprintf(slash, sizeof(at) - (size_t)(slash - at), "/simcuda");
	setenv("SIM_LIBRARIES", at, 1);
	snprintf(path, sizeof(path), "%s/push:%s", at, at);
	setenv("LD_LIBRARY_PATH", path, 1);
	snprintf(log, sizeof(log), HERE, (int)getpid());
	setenv("SIMCUDA_BUSY", log, 1);
	busy = busy_log_open();
	return busy ? 0 : -1;
}

static int forget(void **state)
{
	(void)state;
	return unlink(getenv("SIMCUDA_BUSY"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_busy_time_is_what_the_gpu_was_busy, end),
		cmocka_unit_test_teardown(test_kernels_shorter_than_samples_are_apart_are_added_up,
		                          end),
		cmocka_unit_test_teardown(test_copies_are_told_apart_from_kernels, end),
		cmocka_unit_test_teardown(
			test_a_gpu_that_tells_of_no_engines_is_told_by_what_it_tells, end),
		cmocka_unit_test_teardown(test_times_are_this_machines, end),
		cmocka_unit_test_teardown(test_samples_stay_as_near_as_they_can_be_paid_for, end),
		cmocka_unit_test_teardown(test_samples_that_can_be_paid_for_stay_as_they_are, end),
		cmocka_unit_test_teardown(test_a_sampler_that_cannot_be_paced_begins_again, end),
		cmocka_unit_test_teardown(test_samples_that_cost_much_become_fewer, end),
		cmocka_unit_test_teardown(
			test_samples_that_come_faster_than_they_are_read_become_fewer, end),
		cmocka_unit_test_teardown(
			test_an_image_that_is_full_leaves_a_hole_and_is_used_again, end),
		cmocka_unit_test_teardown(test_a_buffer_that_is_full_leaves_a_hole, end),
		cmocka_unit_test_teardown(test_why_there_is_none_is_said, end),
		cmocka_unit_test_teardown(test_a_cupti_that_does_not_come_back_ends_its_process,
		                          end),
		cmocka_unit_test_setup_teardown(test_libraries_that_do_not_fit_are_named,
		                                make_folder, remove_folder),
	};

	return cmocka_run_group_tests(tests, load, forget);
}
