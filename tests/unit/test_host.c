// SPDX-License-Identifier: MIT
/* What a run tells of the machine that it ran on. */
#include "unit.h"

#include <sys/utsname.h>

#include "capture/host.h"

static void assert_version(const char *text, const char *expected)
{
	char version[64];

	host_driver_version(text, version, sizeof(version));
	assert_string_equal(version, expected);
}

static void test_the_driver_says_its_version_in_a_sentence(void **state)
{
	assert_version("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 "
	               "22:23:56 UTC 2024\n",
	               "550.54.15");
	assert_version("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  "
	               "Release Build  (dvs-builder@U22)\n",
	               "580.65.06");
	assert_version("570.124.06\n", "570.124.06");
}

static void test_a_text_without_a_version_has_none(void **state)
{
	assert_version("", "");
	assert_version("NVRM version: unknown x86_64 2024\n", "");
}

static void test_the_words_of_a_command_are_quoted_as_a_shell_wants_them(void **state)
{
	char *const command[] = { "./app", "--size=4", "two words", "it's", "", NULL };
	struct host *host = host_new(command);
	struct run_info run = { 0 };

	host_describe(host, &run);
	assert_string_equal(run.command, "./app --size=4 'two words' 'it'\\''s' ''");
	assert_non_null(run.hostname);
	assert_non_null(run.kernel_release);
	assert_non_null(run.machine);
	host_free(host);
}

static void test_without_a_command_there_is_none(void **state)
{
	struct host *host = host_new(NULL);
	struct run_info run = { 0 };

	host_describe(host, &run);
	assert_null(run.command);
	host_free(host);
}

static void test_the_machine_and_its_gpus_are_told(void **state)
{
	struct host *host = host_new(NULL);
	struct gpus_sample sample = { .n = 1 };
	struct run_info run = { 0 };
	struct utsname name;

	uname(&name);
	sample.gpus[0] = (struct gpu){ .name = "NVIDIA H200",
		                       .memory_total_bytes = GPU_UNKNOWN,
		                       .compute_major = 9,
		                       .multiprocessors = 132 };
	host_take_gpus(host, &sample);
	host_describe(host, &run);
	assert_string_equal(run.machine, name.machine);
	assert_true(run.cpus > 0 && run.memory_bytes > 0);
	assert_int_equal(run.n_gpus, 1);
	assert_string_equal(run.gpus[0].name, "NVIDIA H200");
	assert_int_equal(run.gpus[0].multiprocessors, 132);
	assert_int_equal(run.gpus[0].memory_bytes, 0);
	host_free(host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_driver_says_its_version_in_a_sentence),
		cmocka_unit_test(test_a_text_without_a_version_has_none),
		cmocka_unit_test(test_the_words_of_a_command_are_quoted_as_a_shell_wants_them),
		cmocka_unit_test(test_without_a_command_there_is_none),
		cmocka_unit_test(test_the_machine_and_its_gpus_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
