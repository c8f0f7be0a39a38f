// SPDX-License-Identifier: MIT
/* Which rank is named as late. */
#include "support.h"

#include "account/ranks.h"
#include "account/facts.h"

static const struct process *process_a(void)
{
	static const struct process *process;

	return process ? process : (process = new_process(100, "a"));
}

static const struct process *process_b(void)
{
	static const struct process *process;

	return process ? process : (process = new_process(101, "b"));
}

static uint32_t steps = 20, late_us = 4000;

/* Who is named of two communicators, the second one's ranks of that person: the second rank is late
 * in both. */
static struct ranks ranks_of(uint64_t person, const struct accounts *given)
{
	static struct run_info run;
	static struct facts facts;
	static struct collective_comm comms[2] = { { .id = { 1, 0 }, .size = 2, .n_ranks = 2 },
		                                   { .id = { 2, 0 }, .size = 2, .n_ranks = 2 } };
	static struct collective_rank rows[4];
	static struct collective_call calls[80];
	static struct collective all[40];
	const struct process *p[2] = { process_a(), process_b() };
	const struct accounts none = { 0 };
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
	for (uint32_t k = 0; k < 2 * steps; k++) {
		uint32_t comm = k / steps, step = k % steps;
		uint64_t at = US(10000 * step + 5000 * comm);

		calls[2 * k] = (struct collective_call){
			.begin_ns = at, .end_ns = at + 1000, .rank = 2 * comm, .bytes = 4
		};
		calls[2 * k + 1] =
			(struct collective_call){ .begin_ns =
			                                  at + (comm ? 3000000 : late_us * 1000),
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
		                                  .n_all = 2 * steps };
	ranks_make(&ranks, &facts, given ? given : &none);
	return ranks;
}

/* The others' waiting begins before the late rank's own first collective. */
static void test_nobody_is_waited_for_longer_than_it_took(void **state)
{
	struct ranks ranks;

	steps = 2;
	late_us = 4900;
	ranks = ranks_of(0, NULL);
	assert_int_equal(ranks.n_late, 1);
	assert_true(rank_held(ranks.late[0]) > 0.6 && rank_held(ranks.late[0]) < 0.7);
	ranks_clear(&ranks);
	steps = 20;
	late_us = 4000;
}

static void test_a_rank_late_in_two_communicators_is_named(void **state)
{
	struct ranks ranks = ranks_of(0, NULL);

	assert_int_equal(ranks.n_late, 1);
	assert_int_equal(ranks.late[0]->rank->process->pid, 101);
	ranks_clear(&ranks);
}

/* The other one's is waited for longer. */
static void test_each_user_has_his_late_rank_named(void **state)
{
	struct ranks ranks = ranks_of(1001, NULL);

	assert_int_equal(ranks.n_late, 2);
	assert_int_equal(ranks.late[0]->rank->person, 0);
	assert_int_equal(ranks.late[1]->rank->person, 1001);
	assert_int_equal(ranks.late[1]->rank->process->pid, 101);
	ranks_clear(&ranks);
}

/* Parts of an account, of 100 in all. */
#define PART(what, at, share)                                                                      \
	{                                                                                          \
		.cause = (what), .chain = (at), .thread = FACTS_NONE, .ns = (share)                \
	}

/* The late one sleeps while the other one's GPU still runs its kernels, which then waits while the
 * late one's does so: what both do alike made neither late. */
static void test_a_late_rank_does_something_for_longer(void **state)
{
	struct account_part a[] = { PART(ACCOUNT_KERNELS, 1, 30), PART(ACCOUNT_LAUNCHING, 2, 5),
		                    PART(ACCOUNT_COMMUNICATION, 4, 65) };
	struct account_part b[] = { PART(ACCOUNT_KERNELS, 1, 20), PART(ACCOUNT_KERNELS, 1, 12),
		                    PART(ACCOUNT_SLEEP, 3, 22), PART(ACCOUNT_LAUNCHING, 2, 25),
		                    PART(ACCOUNT_SLEEP, 5, 21) };
	struct account both[] = { { .process = process_a(), .ns = 100, .parts = a, .n_parts = 3 },
		                  { .process = process_b(), .ns = 100, .parts = b, .n_parts = 5 } };
	struct account_via root = { 0 };
	const struct accounts accounts = { .of = both, .n = 2, .vias = &root };
	struct ranks ranks = ranks_of(0, &accounts);

	assert_int_equal(ranks.n_late, 1);
	assert_true(ranks.late[0]->beside);
	assert_ptr_equal(ranks.late[0]->why, &b[2]);
	assert_int_equal((int)(100 * ranks.late[0]->why_ns + 0.5), 22);
	assert_int_equal((int)(100 * ranks.late[0]->why_of_ns + 0.5), 22 + 2 + 20 + 21);
	ranks_clear(&ranks);
}

/* Nothing to compare it with. */
static void test_alone_it_is_what_it_does_while_others_wait(void **state)
{
	struct account_part b[] = { PART(ACCOUNT_SLEEP, 3, 60), PART(ACCOUNT_KERNELS, 1, 40) };
	struct account one = { .process = process_b(), .ns = 100, .parts = b, .n_parts = 2 };
	struct account_via root = { 0 };
	const struct accounts accounts = { .of = &one, .n = 1, .vias = &root };
	struct ranks ranks = ranks_of(0, &accounts);

	assert_int_equal(ranks.n_late, 1);
	assert_null(ranks.late[0]->why);
	assert_false(ranks.late[0]->beside);
	ranks_clear(&ranks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nobody_is_waited_for_longer_than_it_took),
		cmocka_unit_test(test_a_rank_late_in_two_communicators_is_named),
		cmocka_unit_test(test_each_user_has_his_late_rank_named),
		cmocka_unit_test(test_a_late_rank_does_something_for_longer),
		cmocka_unit_test(test_alone_it_is_what_it_does_while_others_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
