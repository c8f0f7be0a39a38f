// SPDX-License-Identifier: MIT
/* A nudge of a thread that waits: what it waits for is as if there had been none. */
#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/inject_thread.h"
#include "agent/nudge.h"
#include "base/process.h"

static pid_t begin(int fd, bool by_read)
{
	pid_t pid = fork();
	char byte;

	if (!pid)
		_exit((by_read ? read(fd, &byte, 1) : recv(fd, &byte, 1, 0)) != 1);
	return pid;
}

/* How many were nudged, of a process that then gets what it waits for. */
static size_t nudged(pid_t pid, int other)
{
	struct nudged one = { .pid = pid, .start_time = process_start_time(pid) };
	struct waiting waiting;
	size_t n;
	int status;

	for (int i = 0; i < 5000 && !thread_call(pid, pid, &waiting); i++)
		usleep(1000);
	n = nudge_processes(&one, 1);
	assert_int_equal(one.done, n);
	usleep(20000);
	assert_int_equal(write(other, "x", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	return n;
}

static size_t nudged_with(unsigned limit_s, bool by_read)
{
	const struct timeval limit = { .tv_sec = limit_s };
	int pair[2];
	size_t n;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
	n = nudged(begin(pair[0], by_read), pair[1]);
	close(pair[0]);
	close(pair[1]);
	return n;
}

static void test_who_waits_for_a_socket_goes_on(void **state)
{
	assert_int_equal(nudged_with(0, false), 1);
	assert_int_equal(nudged_with(0, true), 1);
}

/* The kernel would give it EINTR: signal(7). */
static void test_who_waits_for_a_socket_with_a_limit_is_left_alone(void **state)
{
	assert_int_equal(nudged_with(20, false), 0);
	assert_int_equal(nudged_with(20, true), 0);
}

static void test_who_waits_for_a_pipe_goes_on(void **state)
{
	int pair[2];

	assert_int_equal(pipe(pair), 0);
	assert_int_equal(nudged(begin(pair[0], true), pair[1]), 1);
	close(pair[0]);
	close(pair[1]);
}

static void test_another_process_with_the_number_is_left_alone(void **state)
{
	struct nudged other = { 0 };
	int pair[2], status;

	assert_int_equal(pipe(pair), 0);
	other.pid = begin(pair[0], true);
	other.start_time = process_start_time(other.pid) - 1;
	usleep(50000);
	assert_int_equal(nudge_processes(&other, 1), 0);
	assert_int_equal(write(pair[1], "x", 1), 1);
	assert_int_equal(waitpid(other.pid, &status, 0), other.pid);
	close(pair[0]);
	close(pair[1]);
}

/* An agent is brought in by ptrace, too. */
static void test_who_has_another_tracer_has_its_turn_later(void **state)
{
	struct nudged one = { 0 };
	int pair[2], status;

	assert_int_equal(pipe(pair), 0);
	one.pid = begin(pair[0], true);
	one.start_time = process_start_time(one.pid);
	usleep(50000);
	assert_int_equal(ptrace(PTRACE_SEIZE, one.pid, NULL, NULL), 0);
	assert_int_equal(nudge_processes(&one, 1), 0);
	assert_false(one.done);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, one.pid, NULL, NULL), 0);
	assert_int_equal(waitpid(one.pid, &status, __WALL), one.pid);
	assert_int_equal(ptrace(PTRACE_DETACH, one.pid, NULL, NULL), 0);
	assert_int_equal(nudged(one.pid, pair[1]), 1);
	close(pair[0]);
	close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_waits_for_a_socket_goes_on),
		cmocka_unit_test(test_who_waits_for_a_socket_with_a_limit_is_left_alone),
		cmocka_unit_test(test_who_waits_for_a_pipe_goes_on),
		cmocka_unit_test(test_another_process_with_the_number_is_left_alone),
		cmocka_unit_test(test_who_has_another_tracer_has_its_turn_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
