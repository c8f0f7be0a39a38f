// SPDX-License-Identifier: MIT
/* What nvidia-smi says, read as it runs and when it hangs. */
#include "unit.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "gpus/smi.h"

static struct gpus_sample sample;

static int set_up(void **state)
{
	memset(&sample, 0, sizeof(sample));
	return 0;
}

static void test_a_line_is_a_gpu(void **state)
{
	smi_parse("1, NVIDIA H200, 87, 12288, 143771, 412.34, 700.00, 61", &sample);
	assert_int_equal(sample.n, 2);
	assert_string_equal(sample.gpus[1].name, "NVIDIA H200");
	assert_int_equal(sample.gpus[1].busy_percent, 87);
	assert_int_equal(sample.gpus[1].memory_used_bytes, 12ll << 30);
	assert_int_equal(sample.gpus[1].memory_total_bytes, 143771ll << 20);
	assert_int_equal(sample.gpus[1].power_mw, 412340);
	assert_int_equal(sample.gpus[1].power_limit_mw, 700000);
	assert_int_equal(sample.gpus[1].temperature_c, 61);
}

static void test_what_is_not_told_is_unknown(void **state)
{
	smi_parse("0, NVIDIA H200, 1, 2, 3, 4, 5, 6, GPU-8c0d, 00000000:18:00.0, 1980", &sample);
	assert_string_equal(sample.gpus[0].uuid, "GPU-8c0d");
	assert_string_equal(sample.gpus[0].bus, "00000000:18:00.0");
	assert_int_equal(sample.gpus[0].clock_hz, 1980000000);
	smi_parse("0, NVIDIA A100 MIG, [N/A], 1, 2, [Not Supported], nan, -3", &sample);
	assert_int_equal(sample.gpus[0].busy_percent, GPU_UNKNOWN);
	assert_int_equal(sample.gpus[0].power_mw, GPU_UNKNOWN);
	assert_int_equal(sample.gpus[0].power_limit_mw, GPU_UNKNOWN);
	assert_int_equal(sample.gpus[0].temperature_c, GPU_UNKNOWN);
	smi_parse("0, short", &sample);
	assert_int_equal(sample.gpus[0].memory_used_bytes, GPU_UNKNOWN);
}

static void test_other_lines_are_none(void **state)
{
	static const char *const lines[] = { "",
		                             ",",
		                             "Failed to initialize NVML: Driver Not Loaded",
		                             "-1, x, 1, 2, 3",
		                             "16, x, 1, 2, 3",
		                             "1e300, x" };

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		smi_parse(lines[i], &sample);
	assert_int_equal(sample.n, 0);
}

/* ---- a program in its place ---------------------------------------------------------------- */

static char path[] = "/tmp/test_smi.XXXXXX";

static struct smi *open_script(const char *text)
{
	int fd;
	struct smi *smi;

	strcpy(path, "/tmp/test_smi.XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	assert_int_equal(fchmod(fd, 0700), 0);
	close(fd);
	smi = smi_open(path, 250000000);
	assert_non_null(smi);
	return smi;
}

/* Until it has as many GPUs, for 5 seconds at most. */
static bool read_until(struct smi *smi, size_t n)
{
	bool more = true;

	for (int i = 0; i < 500 && more && sample.n < n; i++)
		more = smi_read(smi, 10, &sample);
	return more;
}

static void test_lines_are_read_as_they_come(void **state)
{
	struct smi *smi =
		open_script("#!/bin/sh\n"
	                    "echo \"0, $3, 1, 2, 3, 4, 5, 6\"\n"
	                    "printf '1, two'; sleep 0.1; echo ' parts, 1, 2, 3, 4, 5, 6'\n"
	                    "exec sleep 100\n");

	assert_true(read_until(smi, 2));
	unlink(path);
	assert_string_equal(sample.gpus[0].name, "--loop-ms=250");
	assert_string_equal(sample.gpus[1].name, "two parts");
	smi_close(smi);
}

static void test_its_end_is_noticed(void **state)
{
	struct smi *smi = open_script("#!/bin/sh\necho 0, last, 1, 2, 3, 4, 5, 6\n");

	while (smi_read(smi, 10, &sample))
		;
	unlink(path);
	assert_int_equal(sample.n, 1);
	smi_close(smi);
}

static void test_closing_ends_it(void **state)
{
	struct smi *smi = open_script("#!/bin/sh\ntrap '' TERM PIPE\necho \"0, $$, 1\"\n"
	                              "while :; do sleep 0.01; done\n");
	pid_t pid;

	assert_true(read_until(smi, 1));
	unlink(path);
	pid = atoi(sample.gpus[0].name);
	assert_int_equal(kill(pid, 0), 0);
	smi_close(smi);
	assert_int_equal(kill(pid, 0), -1);
}

static void test_what_cannot_be_run_is_none(void **state)
{
	struct smi *smi = smi_open("/nonexistent/nvidia-smi", 1000000000);

	while (smi && smi_read(smi, 10, &sample))
		;
	assert_int_equal(sample.n, 0);
	smi_close(smi);
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_line_is_a_gpu),
		TEST(test_what_is_not_told_is_unknown),
		TEST(test_other_lines_are_none),
		TEST(test_lines_are_read_as_they_come),
		TEST(test_its_end_is_noticed),
		TEST(test_closing_ends_it),
		TEST(test_what_cannot_be_run_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
