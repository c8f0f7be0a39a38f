// SPDX-License-Identifier: MIT
/* Numbers of threads in other pid namespaces. */
#include "unit.h"

#include <unistd.h>

#include "capture/tids.h"

static void test_the_innermost_number_counts(void **state)
{
	assert_int_equal(tids_innermost("Name:\tx\nNSpid:\t4711\t12\t7\nNSpgid:\t1\n"), 7);
	assert_int_equal(tids_innermost("Name:\tx\nNSpid:\t4711\nNSpgid:\t99\n"), 4711);
}

static void test_a_kernel_that_does_not_tell(void **state)
{
	assert_int_equal(tids_innermost("Name:\tx\nPid:\t4711\n"), 0);
	assert_int_equal(tids_innermost(""), 0);
}

static void test_in_the_initial_namespace_threads_are_what_they_are(void **state)
{
	struct tids *tids = tids_new();

	assert_int_equal(tids_host(tids, (uint32_t)getpid(), 5000345, 1), 5000345);
	tids_forget(tids, (uint32_t)getpid());
	assert_int_equal(tids_host(tids, (uint32_t)getpid(), 5000346, 2), 5000346);
	tids_free(tids);
}

static void test_threads_of_other_processes_are_none_of_its_own(void **state)
{
	struct tids *tids = tids_new();

	assert_int_equal(tids_host(tids, (uint32_t)getpid(), (uint32_t)getppid(), 1), 0);
	assert_int_equal(tids_host(tids, (uint32_t)getpid(), (uint32_t)getpid(), 2), getpid());
	tids_free(tids);
}

static void test_a_process_that_is_gone_counts_like_us(void **state)
{
	struct tids *tids = tids_new();

	assert_int_equal(tids_host(tids, 5000001, 5000077, 1), 5000077);
	tids_free(tids);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_innermost_number_counts),
		cmocka_unit_test(test_a_kernel_that_does_not_tell),
		cmocka_unit_test(test_in_the_initial_namespace_threads_are_what_they_are),
		cmocka_unit_test(test_threads_of_other_processes_are_none_of_its_own),
		cmocka_unit_test(test_a_process_that_is_gone_counts_like_us),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
