// SPDX-License-Identifier: MIT
/* What /proc/PID/stat says, whatever the process is called. */
#include "base/process.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
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
	assert_int_equal(stat.start_time, 8123456);
}

static void test_how_a_thread_is_scheduled(void **state)
{
	const struct sched_param second = { .sched_priority = 2 };
	int own = getpriority(PRIO_PROCESS, 0), end[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(end), 0);
	pid = fork();
	if (pid == 0) {
		alarm(60); /* where an assertion fails nobody ends it */
		close(end[1]);
		_exit(read(end[0], &byte, 1) != 0);
	}
	assert_int_equal(process_priority(pid, pid), 20 + own);
	assert_int_equal(setpriority(PRIO_PROCESS, (id_t)pid, 19), 0);
	assert_int_equal(process_priority(pid, pid), 39);
	assert_int_equal(process_priority(getpid(), pid), 0); /* is no thread of it */
	if (sched_setscheduler(pid, SCHED_FIFO, &second) == 0)
		assert_int_equal(process_priority(pid, pid), -3);
	close(end[1]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(process_priority(pid, pid), 0);
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

static void *end_now(void *data)
{
	return data;
}

/* Its first thread and those that end at once are held by ptrace, and one more goes on. */
static void have_ended_threads(int ended)
{
	pthread_t thread;

	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
	for (int i = 0; i < ended; i++) {
		pthread_create(&thread, NULL, end_now, NULL);
		pthread_detach(thread);
	}
	pthread_create(&thread, NULL, go_on, NULL);
	pthread_exit(NULL);
}

static int threads_that_ended(pid_t pid)
{
	DIR *threads = process_list(pid);
	struct process_stat stat;
	int ended = 0;
	pid_t tid;

	assert_non_null(threads);
	while ((tid = process_next(threads)))
		ended += process_stat_read(pid, tid, &stat) && stat.state == 'Z';
	process_list_end(&threads);
	return ended;
}

/* Lets the threads go on; none is waited for, so those that have ended stay. */
static void go_on_until(pid_t pid, int ended)
{
	while (threads_that_ended(pid) < ended) {
		siginfo_t info = { 0 };

		while (!waitid(P_ALL, 0, &info, WSTOPPED | WNOHANG | __WALL) && info.si_pid) {
			ptrace(PTRACE_CONT, info.si_pid, NULL, NULL);
			info.si_pid = 0;
		}
	}
}

static pid_t living_thread_behind(int ended)
{
	siginfo_t info;
	pid_t pid = fork(), tid;

	if (pid == 0)
		have_ended_threads(ended);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WSTOPPED), 0);
	assert_int_equal(
		ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL), 0);
	ptrace(PTRACE_CONT, pid, NULL, NULL);
	go_on_until(pid, ended + 1);
	tid = process_living_thread(pid);
	kill(pid, SIGKILL);
	while (waitpid(-1, NULL, __WALL) > 0)
		;
	return tid;
}

static void test_a_living_thread_behind_many_that_have_ended_is_not_found(void **state)
{
	assert_int_not_equal(living_thread_behind(0), 0);
	assert_int_not_equal(living_thread_behind(20), 0);
	assert_int_equal(living_thread_behind(100), 0);
}

static bool is_listed(pid_t in, pid_t wanted)
{
	DIR *list = process_list(in);
	bool found = false;
	pid_t number;

	while ((number = process_next(list)))
		found |= number == wanted;
	process_list_end(&list);
	return found;
}

static void test_processes_and_threads_are_listed(void **state)
{
	pid_t child = fork();

	if (child == 0)
		go_on(NULL);
	assert_true(is_listed(0, child));
	assert_true(is_listed(child, child));
	assert_false(is_listed(getpid(), child));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_null(process_list(child));
	assert_false(is_listed(child, child)); /* no list is an empty one */
}

static void test_a_line_of_its_status_is_a_value(void **state)
{
	char name[16];
	int tracer = 7;
	pid_t pid = getpid();

	prctl(PR_SET_NAME, "a (name)");
	assert_true(process_status(pid, 0, "Name: %15[^\n]", name));
	assert_string_equal(name, "a (name)");
	assert_true(process_status(0, 0, "TracerPid: %d", &tracer));
	assert_int_equal(tracer, 0);
	assert_true(process_status(pid, pid, "TracerPid: %d", &tracer));
	assert_false(process_status(pid, 1, "TracerPid: %d", &tracer)); /* no thread of its */
	assert_false(process_status(pid, 0, "NoSuch: %d", &tracer));
}

static void test_a_name_is_cut_to_its_room(void **state)
{
	char name[16], cut[5];

	prctl(PR_SET_NAME, "a long\tname");
	assert_true(process_comm(getpid(), 0, name, sizeof(name)));
	assert_string_equal(name, "a long\tname");
	assert_true(process_comm(getpid(), getpid(), cut, sizeof(cut)));
	assert_string_equal(cut, "a lo");
	assert_false(process_comm(getpid(), 1, name, sizeof(name)));
	assert_string_equal(name, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_fields_are_those_behind_the_name),
		cmocka_unit_test(test_how_a_thread_is_scheduled),
		cmocka_unit_test(test_a_name_with_brackets_is_skipped),
		cmocka_unit_test(test_what_is_cut_is_not_taken),
		cmocka_unit_test(test_a_zombie_with_a_misleading_name),
		cmocka_unit_test(test_a_process_without_its_first_thread_is_not_over),
		cmocka_unit_test(test_a_living_thread_behind_many_that_have_ended_is_not_found),
		cmocka_unit_test(test_processes_and_threads_are_listed),
		cmocka_unit_test(test_a_line_of_its_status_is_a_value),
		cmocka_unit_test(test_a_name_is_cut_to_its_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
