// SPDX-License-Identifier: MIT
/* Which rank is named as late. */
#include "support.h"

#include "account/ranks.h"
#include "account/facts.h"

static void test_a_rank_late_in_two_communicators_is_named(void **state)
{
	struct run_info run = default_run_info();
	struct facts facts = { .run = &run };
	struct accounts accounts = { 0 };
	struct collective_comm comms[2] = { { .id = { 1, 0 }, .size = 2, .n_ranks = 2 },
		                            { .id = { 2, 0 }, .size = 2, .n_ranks = 2 } };
	struct collective_rank rows[4];
	struct collective_call calls[80];
	struct collective all[40];
	const struct process *p[2] = { new_process(100, "a"), new_process(101, "b") };
	struct ranks ranks;

	for (uint32_t i = 0; i < 4; i++)
		rows[i] = (struct collective_rank){ .process = p[i % 2],
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
	assert_non_null(ranks.late);
	assert_int_equal(ranks.late->rank->process->pid, 101);
	ranks_clear(&ranks);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(
		test_a_rank_late_in_two_communicators_is_named) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
