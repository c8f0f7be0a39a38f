// SPDX-License-Identifier: MIT
/* What /proc/PID/stat says, whatever the process is called. */
#include "base/process.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

#define FIELDS " S 1 7 7 0 -1 4194560 91 0 0 0 3 4 5 6 20 0 12 0 8123456 1 2 3\n"

static void test_the_fields_are_those_behind_the_name(void **state)
{
	struct process_stat stat;

	assert_true(process_stat_parse("42 (python3)" FIELDS, &stat));
	assert_int_equal(stat.state, 'S');
	assert_int_equal(stat.parent, 1);
	assert_int_equal(stat.flags, 4194560);
	assert_int_equal(stat.priority, 20);
	assert_int_equal(stat.start_time, 8123456);
}

static void test_a_name_with_brackets_is_skipped(void **state)
{
	struct process_stat stat;

	assert_true(process_stat_parse("42 () R 9 9 (x) y)" FIELDS, &stat));
	assert_int_equal(stat.state, 'S');
	assert_int_equal(stat.start_time, 8123456);
}

static void test_what_is_cut_is_not_taken(void **state)
{
	struct process_stat stat;

	assert_false(process_stat_parse("", &stat));
	assert_false(process_stat_parse("42 (python3", &stat));
	assert_false(process_stat_parse("42 (python3) S 1 7 7 0 -1 4194560 91", &stat));
}

static void test_a_zombie_with_a_misleading_name(void **state)
{
	struct process_stat stat;
	siginfo_t info;
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_NAME, ") R 1\n2 3)");
		_exit(0);
	}
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_true(process_stat_read(pid, 0, &stat));
	assert_int_equal(stat.state, 'Z');
	assert_true(process_stat_read(pid, pid, &stat));
	assert_int_equal(stat.state, 'Z');
	assert_true(process_start_time(pid) >= process_start_time(getpid()));
	assert_true(process_is_over(pid));
	waitpid(pid, NULL, 0);
	assert_false(process_stat_read(pid, 0, &stat));
	assert_int_equal(process_start_time(pid), 0);
	assert_true(process_is_over(pid));
}

static void *go_on(void *data)
{
	pause();
	return data;
}

static void test_a_process_without_its_first_thread_is_not_over(void **state)
{
	struct process_stat stat;
	pthread_t thread;
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pthread_create(&thread, NULL, go_on, NULL);
		pthread_exit(NULL);
	}
	do
		assert_true(process_stat_read(pid, 0, &stat));
	while (stat.state != 'Z');
	assert_false(process_is_over(pid));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_true(process_is_over(pid));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_fields_are_those_behind_the_name),
		cmocka_unit_test(test_a_name_with_brackets_is_skipped),
		cmocka_unit_test(test_what_is_cut_is_not_taken),
		cmocka_unit_test(test_a_zombie_with_a_misleading_name),
		cmocka_unit_test(test_a_process_without_its_first_thread_is_not_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
