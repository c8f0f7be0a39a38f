// SPDX-License-Identifier: MIT
/* A command that is traced: one of its processes is let go, and goes on as if nothing had been. */
#include "unit.h"

#include <errno.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe/hold.h"

static void look(void *data, pid_t pid, bool begins)
{
	assert_true(begins); /* nothing sends these a signal */
	++*(int *)data;
}

static enum held ours(void *data, pid_t tid)
{
	return HELD_NOT;
}

static int tracer_of(pid_t pid)
{
	char path[64], line[128];
	int tracer = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "TracerPid: %d", &tracer) == 1)
			break;
	if (file)
		fclose(file);
	return tracer;
}

static struct hold *start(const char *script, pid_t *pid, int *looks)
{
	char *const argv[] = { "sh", "-c", (char *)script, NULL };
	struct command command = { .argv = argv, .hold = true, .follow = true };
	struct hold *hold = NULL;
	struct err err = { 0 };
	bool held = false;

	assert_int_equal(hold_prepare(&command, look, ours, looks, &hold, pid, &held, &err), 0);
	if (!held) {
		hold_free(hold);
		SKIP("a command cannot be held here: ptrace is refused");
	}
	assert_int_equal(hold_go(hold, &err), 0);
	return hold;
}

static int status_of(struct hold *hold)
{
	struct pollfd fd = { .fd = hold_fd(hold), .events = POLLIN };
	int status = -1;

	assert_int_equal(poll(&fd, 1, 5000), 1);
	assert_true(hold_ended(hold, &status));
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_a_process_that_is_let_go_runs_on_untraced(void **state)
{
	int looks = 0;
	pid_t pid;
	struct hold *hold = start("sleep 0.3; exit 7", &pid, &looks);

	assert_int_not_equal(tracer_of(pid), 0);
	assert_int_equal(hold_let_go(hold, pid), 0);
	assert_int_equal(tracer_of(pid), 0);
	assert_int_equal(hold_let_go(hold, pid), 0); /* again: nothing to do */
	assert_int_equal(status_of(hold), 7);
	hold_free(hold);
}

static void test_signals_reach_a_process_that_was_let_go(void **state)
{
	int looks = 0;
	pid_t pid;
	struct hold *hold = start("trap 'exit 5' TERM; while :; do sleep 0.01; done", &pid, &looks);

	usleep(50000);
	assert_int_equal(hold_let_go(hold, pid), 0);
	kill(pid, SIGTERM);
	assert_int_equal(status_of(hold), 5);
	hold_free(hold);
}

static void test_others_of_the_command_are_still_looked_at(void **state)
{
	int looks = 0, before;
	pid_t pid;
	struct hold *hold =
		start("(sleep 0.2; sh -c true) & sleep 0.5; wait; exit 3", &pid, &looks);

	usleep(100000);
	before = looks;
	assert_int_equal(hold_let_go(hold, pid), 0);
	assert_int_equal(status_of(hold), 3);
	assert_true(looks > before); /* the other shell's child has executed a program */
	hold_free(hold);
}

static void test_a_process_that_is_gone_is_free(void **state)
{
	int looks = 0;
	pid_t pid;
	struct hold *hold = start("exit 0", &pid, &looks);

	assert_int_equal(status_of(hold), 0);
	assert_int_equal(hold_let_go(hold, pid), 0);
	hold_free(hold);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_process_that_is_let_go_runs_on_untraced),
		cmocka_unit_test(test_signals_reach_a_process_that_was_let_go),
		cmocka_unit_test(test_others_of_the_command_are_still_looked_at),
		cmocka_unit_test(test_a_process_that_is_gone_is_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
