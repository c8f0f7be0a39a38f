// SPDX-License-Identifier: MIT
/* Numbers of threads in other pid namespaces. */
#include "unit.h"

#include <grp.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/tids.h"
#include "probe/account.h"
#include "probe/helper.h"

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

/* A process that sleeps, and has that number; 0: nobody may choose one. */
static pid_t process_with_number(pid_t number)
{
	struct clone_args args = { .exit_signal = SIGCHLD,
		                   .set_tid = (uintptr_t)&number,
		                   .set_tid_size = 1 };
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	return pid < 0 ? 0 : (pid_t)pid;
}

/* Who tells of a number while nobody has it does not have it for good. */
static void test_a_number_that_another_process_gets_is_its_own_no_more(void **state)
{
	struct tids *tids = tids_new();
	uint32_t own = (uint32_t)getpid();
	pid_t number = fork(), again;

	if (!number)
		_exit(0);
	waitpid(number, NULL, 0);
	assert_int_equal(tids_host(tids, own, (uint32_t)number, 1), number);
	again = process_with_number(number);
	if (!again) {
		tids_free(tids);
		SKIP("nobody may choose a process's number here");
	}
	assert_int_equal(tids_host(tids, own, (uint32_t)number, 1000000000), 0);
	assert_int_equal(tids_host(tids, (uint32_t)number, (uint32_t)number, 1000000001), number);
	kill(again, SIGKILL);
	waitpid(again, NULL, 0);
	tids_free(tids);
}

/* ---- a process with many threads in a namespace of its own ----------------------------------- */

#define THREADS 4000
#define USER    1234
#define STEP_NS 20000000ull
#define STEPS   200

static void *sleep_for_good(void *data)
{
	pause();
	return data;
}

/* Says that they are there by its parent's number of it. */
static void have_threads(int ready, int number, size_t n_groups)
{
	gid_t *groups = calloc(n_groups, sizeof(*groups));
	pthread_attr_t small;
	pthread_t thread;
	pid_t pid;

	for (size_t i = 0; i < n_groups; i++)
		groups[i] = (gid_t)(4000000000 + i);
	if (n_groups && (setgroups(n_groups, groups) || setuid(USER)))
		_exit(1);
	free(groups);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 16384);
	for (int i = 0; i < (n_groups ? THREADS / 40 : THREADS); i++)
		if (pthread_create(&thread, &small, sleep_for_good, NULL))
			_exit(1);
	if (read(number, &pid, sizeof(pid)) == sizeof(pid) &&
	    write(ready, &pid, sizeof(pid)) == sizeof(pid))
		pause();
	_exit(1);
}

/* A process between enters the namespace: who has one is not looked through for leaks. */
static void have_namespace(int ready, size_t n_groups)
{
	int number[2];
	pid_t pid;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (unshare(CLONE_NEWPID) || pipe(number))
		_exit(1);
	pid = fork();
	if (!pid)
		have_threads(ready, number[0], n_groups);
	if (write(number[1], &pid, sizeof(pid)) == sizeof(pid))
		waitpid(pid, NULL, 0);
	_exit(0);
}

/* 0: there are no namespaces for us. */
static pid_t begin_threads(size_t n_groups)
{
	pid_t pid = 0, between;
	int ready[2];

	assert_int_equal(pipe(ready), 0);
	between = fork();
	if (!between)
		have_namespace(ready[1], n_groups);
	close(ready[1]);
	if (read(ready[0], &pid, sizeof(pid)) != sizeof(pid))
		pid = 0;
	close(ready[0]);
	return pid;
}

static void test_threads_that_are_not_found_take_a_part_of_the_time(void **state)
{
	struct tids *tids = tids_new();
	uint64_t begin_ns, now_ns = 1;
	pid_t pid = begin_threads(0);

	if (!pid) {
		tids_free(tids);
		SKIP("no process with a pid namespace of its own here");
	}
	assert_int_not_equal(tids_host(tids, (uint32_t)pid, 2, now_ns), 0);
	begin_ns = helper_busy_ns();
	for (uint32_t i = 0; i < STEPS; i++, now_ns += STEP_NS)
		assert_int_equal(tids_host(tids, (uint32_t)pid, 1000000 + i, now_ns), 0);
	assert_in_range(helper_busy_ns() - begin_ns, 0, STEPS * STEP_NS / 5);
	kill(pid, SIGKILL);
	wait(NULL);
	tids_free(tids);
}

static uint64_t person; /* 0: who it is */

uint64_t __real_helper_person_of(pid_t pid);
uint64_t __wrap_helper_person_of(pid_t pid);
uint64_t __wrap_helper_person_of(pid_t pid)
{
	return person ? person : __real_helper_person_of(pid);
}

/* Each record of an agent may be of a thread that there never was. */
static void test_numbers_without_end_are_asked_for_in_the_users_time(void **state)
{
	struct tids *tids = tids_new();

	person = 4711;
	assert_int_equal(tids_host(tids, (uint32_t)getpid(), 5000345, 1), 5000345);
	look_time_charge(LOOK_INTO_CALLS, person, ACCOUNT_MOST_NS);
	assert_int_equal(tids_host(tids, (uint32_t)getpid(), 5000345, 2), 5000345);
	assert_int_equal(tids_host(tids, (uint32_t)getpid(), 5000346, 3), 0);
	person = 4712;
	assert_int_equal(tids_host(tids, (uint32_t)getpid(), 5000347, 4), 5000347);
	person = 0;
	tids_free(tids);
}

/* The kernel lists them before the number, and takes its time for it. */
static void test_groups_neither_hide_numbers_nor_take_the_time(void **state)
{
	struct tids *tids = tids_new();
	struct err err;
	uint64_t begin_ns, now_ns = 1;
	pid_t pid;

	assert_int_equal(helper_begin(&err), 0);
	pid = begin_threads(65536);
	if (!pid) {
		tids_free(tids);
		SKIP("no process with a pid namespace of its own here");
	}
	assert_int_equal(tids_host(tids, (uint32_t)pid, 1, now_ns), pid);
	look_time_charge(LOOK_AT_THREADS, USER, ACCOUNT_MOST_NS - STEP_NS);
	begin_ns = helper_busy_ns();
	for (uint32_t i = 0; i < STEPS; i++, now_ns += STEP_NS)
		assert_int_equal(tids_host(tids, (uint32_t)pid, 1000000 + i, now_ns), 0);
	assert_in_range(helper_busy_ns() - begin_ns, 0, STEPS * STEP_NS / 5);
	kill(pid, SIGKILL);
	wait(NULL);
	tids_free(tids);
	helper_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_the_initial_namespace_threads_are_what_they_are),
		cmocka_unit_test(test_threads_of_other_processes_are_none_of_its_own),
		cmocka_unit_test(test_a_process_that_is_gone_counts_like_us),
		cmocka_unit_test(test_a_number_that_another_process_gets_is_its_own_no_more),
		cmocka_unit_test(test_threads_that_are_not_found_take_a_part_of_the_time),
		cmocka_unit_test(test_numbers_without_end_are_asked_for_in_the_users_time),
		cmocka_unit_test(test_groups_neither_hide_numbers_nor_take_the_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
