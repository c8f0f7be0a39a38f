// SPDX-License-Identifier: MIT
/* Whom an answer of RAS may speak of. */
#include "support.h"

#include "../../src/capture/ranks_ask.c"

static struct ras_rank ras_rank_of(int rank, int pid, const char *host, uint64_t hash)
{
	struct ras_rank one = { .hash = hash,
		                .host_hash = 1,
		                .pid_hash = 2,
		                .size = 2,
		                .rank = rank,
		                .pid = pid,
		                .counts = { 100 + (uint64_t)rank } };

	snprintf(one.host, sizeof(one.host), "%s", host);
	return one;
}

static void test_a_rank_elsewhere_with_the_same_pid_is_not_the_process_here(void **state)
{
	static struct known_rank processes[1] = {
		{ .pid = 4711, .own_pid = 55, .space = 9, .port = RAS_PORT }
	};
	struct ranks_feed feed = { .processes = processes, .n_processes = 1 };
	struct ras_rank ranks[2] = { ras_rank_of(0, 55, "10.0.0.1", 7),
		                     ras_rank_of(1, 55, "10.0.0.2", 7) };
	struct ras_answer answer = { .ranks = ranks, .n = 2 };

	ranks[1].elsewhere = true;

	struct heard heard;

	heard_begin(&heard, &feed, &processes[0], &answer);
	take_answer(&feed, &heard, true);
	assert_int_equal(feed.n_told, 2);
	assert_false(feed.told[0].own && feed.told[1].own);
}

static void test_an_answer_of_another_port_is_not_of_this_jobs_processes(void **state)
{
	static struct known_rank processes[2] = {
		{ .pid = 4711, .own_pid = 55, .space = 9, .port = 28028 },
		{ .pid = 5711, .own_pid = 55, .space = 9, .port = 28111 }
	};
	struct ranks_feed feed = { .processes = processes, .n_processes = 2 };
	struct ras_rank ranks[1] = { ras_rank_of(0, 55, "10.0.0.1", 8) };
	struct ras_answer answer = { .ranks = ranks, .n = 1 };
	struct heard heard;

	heard_begin(&heard, &feed, &processes[1], &answer);
	take_answer(&feed, &heard, true);
	assert_int_equal(feed.told[0].pid, 5711);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_rank_elsewhere_with_the_same_pid_is_not_the_process_here),
		cmocka_unit_test(test_an_answer_of_another_port_is_not_of_this_jobs_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
