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
	struct who_feed *feed = who_feed_new(false, false);
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
	struct who_feed *feed = who_feed_new(false, true);
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
	struct who_feed *feed = who_feed_new(false, false);
	struct run_info run = { 0 };

	meet(feed, (uint32_t)getpid(), 1);
	assert_true(is_known(feed, (uint32_t)getpid()));
	meet_many(feed, GONE, MOST);
	meet(feed, (uint32_t)getpid(), GONE + MOST);
	who_feed_fill(feed, &run);
	assert_null(run_identity_of(&run, (uint32_t)getpid(), GONE + MOST));
	who_feed_free(feed);
}

/* A child that is there for as long as nobody has asked who it is. */
static uint32_t child_that_was_held(struct who_feed *feed, uint64_t now_ns)
{
	pid_t child = fork();

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	who_feed_held(feed, child, now_ns);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return (uint32_t)child;
}

static bool is_told(struct who_feed *feed, uint32_t pid, uint64_t since_ns)
{
	struct run_info run = { 0 };
	const struct run_identity *who;

	for (int turn = 0; turn < 4; turn++)
		who_feed_fill(feed, &run);
	who = run_identity_of(&run, pid, since_ns);
	return who && who->since_ns == since_ns && who->words[RUN_IDENTITY_USER];
}

static void test_who_was_held_is_known_after_its_end(void **state)
{
	struct who_feed *feed = who_feed_new(false, false);
	uint32_t by_exec = child_that_was_held(feed, 10), by_call = child_that_was_held(feed, 20);

	meet(feed, by_exec, 9);
	meet(feed, by_call, 500);
	assert_true(is_told(feed, by_exec, 9));
	assert_true(is_told(feed, by_call, 500));
	who_feed_free(feed);
}

static void test_who_was_held_is_no_other_program(void **state)
{
	struct who_feed *feed = who_feed_new(false, false);
	uint32_t later = child_that_was_held(feed, 1000000000),
		 before = child_that_was_held(feed, 10);

	meet(feed, later, 1); /* it was held as the next began */
	meet(feed, later, 999999990);
	meet(feed, before, 9);
	meet(feed, before, 2000000000);
	assert_true(is_told(feed, later, 999999990));
	assert_false(is_told(feed, later, 1));
	assert_true(is_told(feed, before, 9));
	assert_false(is_told(feed, before, 2000000000));
	who_feed_free(feed);
}

static void nvml_tells(struct who_feed *feed, uint64_t read_ns, uint64_t bytes)
{
	static struct gpus_sample sample;

	sample = (struct gpus_sample){ .n = 1, .read_ns = read_ns, .n_processes = bytes != 0 };
	sample.processes[0] = (struct gpu_process){ (uint32_t)getpid(), 1, bytes };
	who_feed_gpus(feed, &sample);
}

/* As of more processes than it has room for: of ours it tells nothing. */
static void nvml_tells_of_some(struct who_feed *feed, uint64_t read_ns)
{
	static struct gpus_sample sample;

	sample = (struct gpus_sample){ .n = 1, .read_ns = read_ns, .processes_cut = 1 };
	who_feed_gpus(feed, &sample);
}

static const struct run_identity *told_of(struct who_feed *feed)
{
	static struct run_info run;

	who_feed_fill(feed, &run);
	assert_int_equal(run.n_identities, 1);
	return &run.identities[0];
}

static void test_memory_of_the_first_most_and_last_reading_is_kept(void **state)
{
	struct who_feed *feed = who_feed_new(false, false);
	const struct run_identity *who;

	meet(feed, (uint32_t)getpid(), 100);
	nvml_tells(feed, 99, 70); /* of who had the number before */
	assert_int_equal(told_of(feed)->memory[RUN_MEMORY_FIRST].time_ns, 0);
	for (uint64_t i = 0; i < 5; i++)
		nvml_tells(feed, 200 + i, (const uint64_t[]){ 500, 900, 900, 800, 700 }[i]);
	nvml_tells(feed, 300, 0); /* it has ended */
	who = told_of(feed);
	assert_int_equal(who->memory[RUN_MEMORY_FIRST].time_ns, 200);
	assert_int_equal(who->memory[RUN_MEMORY_FIRST].bytes, 500);
	assert_int_equal(who->memory[RUN_MEMORY_MOST].time_ns, 201);
	assert_int_equal(who->memory[RUN_MEMORY_MOST].bytes, 900);
	assert_int_equal(who->memory[RUN_MEMORY_LAST].time_ns, 204);
	assert_int_equal(who->memory[RUN_MEMORY_LAST].bytes, 700);
	assert_false(who->memory_whole);
	who_feed_free(feed);
}

static void test_who_nvml_did_not_know_at_first_is_whole(void **state)
{
	struct who_feed *feed = who_feed_new(false, false), *of_command = who_feed_new(true, false);

	meet(feed, (uint32_t)getpid(), 100);
	nvml_tells(feed, 99, 0); /* before it was met: what came until then is not known */
	assert_false(told_of(feed)->memory_whole);
	nvml_tells(feed, 0, 0); /* NVML did not answer */
	assert_false(told_of(feed)->memory_whole);
	nvml_tells(feed, 101, 0);
	nvml_tells(feed, 102, 500);
	assert_true(told_of(feed)->memory_whole);
	meet(of_command, (uint32_t)getpid(), 100);
	nvml_tells(of_command, 102, 500);
	assert_true(told_of(of_command)->memory_whole);
	who_feed_free(feed);
	who_feed_free(of_command);
}

static void test_who_nvml_had_no_room_for_is_not_whole(void **state)
{
	struct who_feed *feed = who_feed_new(false, false);

	meet(feed, (uint32_t)getpid(), 100);
	nvml_tells_of_some(feed, 101);
	nvml_tells(feed, 102, 500);
	assert_false(told_of(feed)->memory_whole);
	who_feed_free(feed);
}

static int begin_helper(void **state)
{
	struct err err;

	(void)state;
	return helper_begin(&err);
}

/* Where one user's processes come and go by the hundred, or many more of them than there is room
 * for were met first. */
static void test_processes_of_one_user_leave_others_room(void **state)
{
	struct who_feed *feed = who_feed_new(false, false);
	struct run_info run = { 0 };

	process.person = 1000;
	for (uint32_t i = 0; i < 300; i++)
		meet(feed, GONE + i, 1 + i);
	process.person = 1001;
	meet(feed, (uint32_t)getpid(), 400);
	assert_true(is_known(feed, (uint32_t)getpid()));
	who_feed_fill(feed, &run);
	assert_int_equal(run.identities_left_out, 300 - 192);
	process.person = 1000;
	meet_many(feed, GONE + 300, MOST);
	process.person = 1001;
	meet(feed, (uint32_t)getppid(), 9000);
	assert_true(is_known(feed, (uint32_t)getppid()));
	process.person = 0;
	who_feed_free(feed);
}

/* Of living ones the reader has as many as it can read; each that is known makes room for another.
 */
static void test_living_processes_of_one_user_keep_no_place_of_others(void **state)
{
	enum { LIVING = 300 };
	struct who_feed *feed = who_feed_new(false, true);
	struct run_info run = { 0 };
	pid_t pids[LIVING];

	process.person = 1000;
	for (uint32_t i = 0; i < LIVING; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			pause();
			_exit(0);
		}
		meet(feed, (uint32_t)pids[i], 1 + i);
		if (i % 100 == 99)
			assert_true(is_known(feed, (uint32_t)pids[i]));
	}
	process.person = 1001;
	meet(feed, (uint32_t)getpid(), 400);
	assert_true(is_known(feed, (uint32_t)getpid()));
	who_feed_fill(feed, &run);
	assert_int_equal(run.identities_left_out, 0);
	process.person = 0;
	for (uint32_t i = 0; i < LIVING; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	who_feed_free(feed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_processes_of_one_user_leave_others_room),
		cmocka_unit_test(test_living_processes_of_one_user_keep_no_place_of_others),
		cmocka_unit_test(test_the_first_are_kept),
		cmocka_unit_test(test_memory_of_the_first_most_and_last_reading_is_kept),
		cmocka_unit_test(test_who_nvml_did_not_know_at_first_is_whole),
		cmocka_unit_test(test_who_nvml_had_no_room_for_is_not_whole),
		cmocka_unit_test(test_who_was_held_is_known_after_its_end),
		cmocka_unit_test(test_who_was_held_is_no_other_program),
		cmocka_unit_test(test_the_newest_and_those_that_run_are_kept),
		cmocka_unit_test(test_who_has_no_room_is_not_who_had_the_number_before),
	};

	return cmocka_run_group_tests(tests, begin_helper, NULL);
}
