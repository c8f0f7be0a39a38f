// SPDX-License-Identifier: MIT
/* Whose the processes of a trace are, where there are more than there is room for. */
#include "capture/who_feed.h"

#include "support.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe/helper.h"

#define MOST RUN_IDENTITIES_MAX
#define GONE 4200000u /* and from here on: no process has such a number */

static struct process process = { .id = 1 };

static void meet(struct who_feed *feed, uint32_t pid, uint64_t now_ns)
{
	process.id++;
	process.pid = pid;
	who_feed_process(feed, &process, now_ns);
}

/* So that few are asked for at a time: those that have ended are given up soon. */
static void meet_many(struct who_feed *feed, uint32_t from, uint32_t count)
{
	struct run_info run = { 0 };

	for (uint32_t i = 0; i < count; i++) {
		meet(feed, from + i, from + i);
		if (i % 50 == 0)
			for (int turn = 0; turn < 3; turn++)
				who_feed_fill(feed, &run);
	}
}

/* Until it is known who has this number. */
static bool is_known(struct who_feed *feed, uint32_t pid)
{
	struct run_info run = { 0 };

	for (int i = 0; i < 40; i++) {
		who_feed_fill(feed, &run);
		if (run_identity_of(&run, pid, UINT64_MAX))
			return true;
		usleep(100000);
	}
	return false;
}

static void test_the_first_are_kept(void **state)
{
	struct who_feed *feed = who_feed_new(false);
	struct run_info run = { 0 };

	meet(feed, (uint32_t)getpid(), 1);
	assert_true(is_known(feed, (uint32_t)getpid()));
	meet_many(feed, GONE, MOST + 9);
	who_feed_fill(feed, &run);
	assert_int_equal(run.n_identities, MOST);
	assert_int_equal(run.identities_left_out, 10);
	assert_non_null(run_identity_of(&run, (uint32_t)getpid(), 1));
	who_feed_free(feed);
}

static void test_the_newest_and_those_that_run_are_kept(void **state)
{
	struct who_feed *feed = who_feed_new(true);
	pid_t child = fork();
	struct run_info run = { 0 };

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	meet(feed, (uint32_t)getpid(), 1);
	assert_true(is_known(feed, (uint32_t)getpid()));
	meet_many(feed, GONE, 3 * MOST);
	meet(feed, (uint32_t)child, 2);
	assert_true(is_known(feed, (uint32_t)child));
	who_feed_fill(feed, &run);
	assert_int_equal(run.n_identities, MOST);
	assert_int_equal(run.identities_left_out, 0);
	assert_int_equal(run.identities[0].pid, getpid());
	assert_int_equal(run.identities[1].pid, GONE + 2 * MOST + 2);
	assert_non_null(run_identity_of(&run, (uint32_t)getpid(), 1));
	who_feed_free(feed);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static void test_who_has_no_room_is_not_who_had_the_number_before(void **state)
{
	struct who_feed *feed = who_feed_new(false);
	struct run_info run = { 0 };

	meet(feed, (uint32_t)getpid(), 1);
	assert_true(is_known(feed, (uint32_t)getpid()));
	meet_many(feed, GONE, MOST);
	meet(feed, (uint32_t)getpid(), GONE + MOST);
	who_feed_fill(feed, &run);
	assert_null(run_identity_of(&run, (uint32_t)getpid(), GONE + MOST));
	who_feed_free(feed);
}

static int begin_helper(void **state)
{
	struct err err;

	(void)state;
	return helper_begin(&err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_first_are_kept),
		cmocka_unit_test(test_the_newest_and_those_that_run_are_kept),
		cmocka_unit_test(test_who_has_no_room_is_not_who_had_the_number_before),
	};

	return cmocka_run_group_tests(tests, begin_helper, NULL);
}
