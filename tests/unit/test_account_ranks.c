// SPDX-License-Identifier: MIT
/* Which rank is named as late. */
#include "support.h"

#include "account/ranks.h"
#include "account/facts.h"

/* Who is named of two communicators, the second one's ranks of that person: the second rank is late
 * in both. */
static struct ranks ranks_of(uint64_t person)
{
	static struct run_info run;
	static struct facts facts;
	static struct collective_comm comms[2] = { { .id = { 1, 0 }, .size = 2, .n_ranks = 2 },
		                                   { .id = { 2, 0 }, .size = 2, .n_ranks = 2 } };
	static struct collective_rank rows[4];
	static struct collective_call calls[80];
	static struct collective all[40];
	const struct process *p[2] = { new_process(100, "a"), new_process(101, "b") };
	struct accounts accounts = { 0 };
	struct ranks ranks;

	run = default_run_info();
	facts = (struct facts){ .run = &run };

	for (uint32_t i = 0; i < 4; i++)
		rows[i] = (struct collective_rank){ .process = p[i % 2],
			                            .person = i / 2 ? person : 0,
			                            .handle = i,
			                            .comm = i / 2,
			                            .number = (int32_t)(i % 2),
			                            .n_calls = 20 };
	/* steps of 10 ms: process b comes 4 ms late to a collective of one, then 3 ms to one of the
	 * other */
	for (uint32_t k = 0; k < 40; k++) {
		uint32_t comm = k / 20, step = k % 20;
		uint64_t at = US(10000 * step + 5000 * comm);

		calls[2 * k] = (struct collective_call){
			.begin_ns = at, .end_ns = at + 1000, .rank = 2 * comm, .bytes = 4
		};
		calls[2 * k + 1] =
			(struct collective_call){ .begin_ns = at + (comm ? 3000000 : 4000000),
			                          .rank = 2 * comm + 1,
			                          .bytes = 4 };
		all[k] = (struct collective){ .comm = comm,
			                      .first = 2 * k,
			                      .n = 2,
			                      .last = 2 * k + 1,
			                      .first_ns = at,
			                      .last_ns = calls[2 * k + 1].begin_ns };
	}
	facts.collectives = (struct collectives){ .ranks = rows,
		                                  .n_ranks = 4,
		                                  .comms = comms,
		                                  .n_comms = 2,
		                                  .calls = calls,
		                                  .n_calls = 80,
		                                  .all = all,
		                                  .n_all = 40 };
	ranks_make(&ranks, &facts, &accounts);
	return ranks;
}

static void test_a_rank_late_in_two_communicators_is_named(void **state)
{
	struct ranks ranks = ranks_of(0);

	assert_int_equal(ranks.n_late, 1);
	assert_int_equal(ranks.late[0]->rank->process->pid, 101);
	ranks_clear(&ranks);
}

/* The other one's is waited for longer. */
static void test_each_user_has_his_late_rank_named(void **state)
{
	struct ranks ranks = ranks_of(1001);

	assert_int_equal(ranks.n_late, 2);
	assert_int_equal(ranks.late[0]->rank->person, 0);
	assert_int_equal(ranks.late[1]->rank->person, 1001);
	assert_int_equal(ranks.late[1]->rank->process->pid, 101);
	ranks_clear(&ranks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_rank_late_in_two_communicators_is_named),
		cmocka_unit_test(test_each_user_has_his_late_rank_named)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
