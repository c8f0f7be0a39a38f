// SPDX-License-Identifier: MIT
/* Which ranks of a communicator stand still, by what RAS told of them. */
#include "support.h"

#include "account/standing.h"

#define S(n) ((uint64_t)((n)*1000000000.0))

static struct facts facts;
static struct collective_told rows[100];
static struct standings standings;

static int set_up(void **state)
{
	memset(rows, 0, sizeof(rows));
	memset(&facts, 0, sizeof(facts));
	facts.collectives.told = rows;
	return 0;
}

static int tear_down(void **state)
{
	standings_clear(&standings);
	return 0;
}

/* The next rank of a communicator: told of from the first second to the tenth. */
static struct collective_told *rank_of(uint64_t comm, double moved_s, uint64_t reduces)
{
	struct collective_told *told = &rows[facts.collectives.n_told++];

	*told = (struct collective_told){ .id = { comm, 1 },
		                          .size = 3,
		                          .number = (int32_t)facts.collectives.n_told - 1,
		                          .first_ns = S(1),
		                          .moved_ns = S(moved_s),
		                          .last_ns = S(10) };
	told->counts[COLLECTIVE_ALL_REDUCE] = reduces;
	return told;
}

static size_t judge(void)
{
	standings_add(&standings, &facts);
	standings_judge(&standings);
	return standings.n;
}

static void test_who_lacks_what_others_have_launched_is_behind(void **state)
{
	rank_of(7, 3, 102);
	rank_of(7, 2, 100);
	rank_of(7, 3, 101);
	assert_int_equal(judge(), 1);
	assert_int_equal(standings.of[0].n_behind, 2);
	assert_int_equal(standings.of[0].kind, COLLECTIVE_ALL_REDUCE);
	assert_int_equal(standings.of[0].number, 101);
	assert_int_equal(standings.of[0].still_ns, S(7));
	assert_int_equal(standings.of[0].n, 3);
	assert_true(standings.of[0].ranks[0]->behind && standings.of[0].ranks[1]->behind);
	assert_int_equal(standings.of[0].ranks[0]->told.number, 1);
	assert_false(standings.of[0].ranks[2]->behind);
	assert_int_equal(standings.of[0].ranks[2]->thread, FACTS_NONE);
}

static void test_what_moves_does_not_stand(void **state)
{
	rank_of(7, 9, 102); /* a second before the end */
	rank_of(7, 1, 100);
	assert_int_equal(judge(), 0);
}

static void test_what_is_even_may_be_idle(void **state)
{
	rank_of(7, 1, 102);
	rank_of(7, 1, 102);
	assert_int_equal(judge(), 0);
}

static void test_any_kind_counts(void **state)
{
	rank_of(7, 1, 102)->counts[COLLECTIVE_BROADCAST] = 3;
	rank_of(7, 1, 102)->counts[COLLECTIVE_BROADCAST] = 4;
	assert_int_equal(judge(), 1);
	assert_int_equal(standings.of[0].kind, COLLECTIVE_BROADCAST);
	assert_int_equal(standings.of[0].number, 4);
}

static void test_missing_ranks_have_no_counts(void **state)
{
	rank_of(7, 1, 102);
	rank_of(7, 1, 102);
	rank_of(7, 1, 0)->missing = true;
	assert_int_equal(judge(), 0);
	standings_clear(&standings);
	rows[1].counts[COLLECTIVE_ALL_REDUCE] = 101;
	assert_int_equal(judge(), 1);
	assert_int_equal(standings.of[0].n_missing, 1);
	assert_int_equal(standings.of[0].n_behind, 1);
	assert_int_equal(standings.of[0].n, 2);
}

static void test_communicators_are_judged_by_themselves(void **state)
{
	rank_of(7, 1, 1);
	rank_of(7, 1, 1);
	rank_of(8, 1, 5);
	rank_of(8, 1, 6);
	rank_of(8, 1, 6);
	rank_of(9, 1, 2);
	rank_of(9, 1, 3);
	assert_int_equal(judge(), 2);
	assert_int_equal(standings.of[0].id[0], 8); /* it has more ranks */
	assert_int_equal(standings.of[1].id[0], 9);
}

/* Any process can say that it is a rank that has launched more. */
static void test_what_another_user_says_of_a_communicator_is_of_his_own(void **state)
{
	for (int i = 0; i < 2; i++)
		rank_of(7, 1, 5)->person = 1001;
	for (int i = 0; i < 2; i++) {
		struct collective_told *told = rank_of(7, 1, 5 + 2 * (uint64_t)i);

		told->person = 1002;
		told->number = i;
	}
	assert_int_equal(judge(), 1);
	assert_int_equal(standings.of[0].n_told, 2);
	assert_true(standings.of[0].claimed);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(standings.of[0].ranks[i]->told.person, 1002);
}

static void test_communicators_of_one_user_hide_none_of_anothers(void **state)
{
	for (uint64_t comm = 10; comm < 30; comm++)
		for (uint64_t i = 0; i < 4; i++)
			rank_of(comm, 1, 5 + i)->person = 1002;
	for (uint64_t i = 0; i < 2; i++)
		rank_of(77, 1, 5 + i)->person = 1001;
	assert_int_equal(judge(), STANDING_MAX);
	assert_int_equal(standings.n_more, 13);
	assert_true(standings_are_of(&standings, 1001));
	assert_int_equal(standings.of[STANDING_MAX - 1].person, 1001); /* it has fewest ranks */
	assert_false(standings_are_of(&standings, 0));
}

static void test_of_very_many_ranks_those_behind_are_kept(void **state)
{
	for (int i = 0; i < 99; i++)
		rank_of(7, 1, 5);
	rank_of(7, 1, 4);
	assert_int_equal(judge(), 1);
	assert_int_equal(standings.of[0].n, STANDING_RANKS);
	assert_int_equal(standings.of[0].ranks[0]->told.number, 99);
}

static void next_recording(void)
{
	standings_add(&standings, &facts);
	facts.collectives.n_told = 0;
}

/* Each has the whole job by RAS, and a process of its own. */
static void test_recordings_of_ranks_are_put_together(void **state)
{
	const struct process *first = new_process(41, "train"), *second = new_process(41, "train");

	rank_of(7, 3, 102)->process = first;
	rank_of(7, 2, 100);
	next_recording();
	rank_of(7, 9, 102); /* it began when the job stood already */
	rank_of(7, 9, 100)->process = second;
	assert_int_equal(judge(), 1);
	assert_int_equal(standings.of[0].n_told, 2);
	assert_int_equal(standings.of[0].n_behind, 1);
	assert_int_equal(standings.of[0].still_ns, S(7));
	assert_int_equal(standings.of[0].ranks[0]->told.number, 1);
	assert_ptr_equal(standings.of[0].ranks[0]->told.process, second);
	assert_ptr_equal(standings.of[0].ranks[1]->told.process, first);
}

/* One that ended before knows less, whatever its clock says. */
static void test_a_recording_that_tells_of_more_launches_is_later(void **state)
{
	rank_of(7, 1, 101);
	rank_of(7, 1, 100);
	next_recording();
	rank_of(7, 9, 300);
	rank_of(7, 9, 301);
	assert_int_equal(judge(), 0);
}

/* Calls that were seen, where no RAS is: of one time alone. */
static void test_calls_count_where_nobody_told(void **state)
{
	const struct process *processes[] = { new_process(41, "train"), new_process(42, "train") };
	struct collective_rank ranks[] = { { .process = processes[0],
		                             .number = 0,
		                             .made = true,
		                             .n_calls = 2,
		                             .last_ns = S(2) },
		                           { .process = processes[1],
		                             .number = 1,
		                             .made = true,
		                             .n_calls = 1,
		                             .last_ns = S(1) } };
	struct collective_call calls[] = { { .rank = 0 }, { .rank = 0 }, { .rank = 1 } };
	struct collective_comm comm = { .id = { 7 }, .size = 2, .n_ranks = 2 };
	struct collectives *of = &facts.collectives;
	struct facts made;

	facts_init(&made);
	facts.own = made.own;
	facts.end_ns = S(10);
	of->ranks = ranks;
	of->calls = calls;
	of->comms = &comm;
	of->n_ranks = 2;
	of->n_calls = 3;
	of->n_comms = 1;
	assert_int_equal(judge(), 1);
	assert_int_equal(standings.of[0].number, 2);
	assert_int_equal(standings.of[0].still_ns, S(8));
	assert_int_equal(standings.of[0].ranks[0]->pid, 42);
	standings_clear(&standings);
	ranks[1].made = false; /* what came before is not known */
	ranks[1].uncounted[COLLECTIVE_ALL_REDUCE] = true;
	assert_int_equal(judge(), 0);
	standings_clear(&standings);
	ranks[1].made = true;
	standings_add(&standings, &facts);
	assert_int_equal(judge(), 0);
	standings_clear(&standings);
	of->lost = true;
	assert_int_equal(judge(), 0);
	facts_clear(&made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_who_lacks_what_others_have_launched_is_behind,
		                                set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_moves_does_not_stand, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_is_even_may_be_idle, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_any_kind_counts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_missing_ranks_have_no_counts, set_up,
		                                tear_down),
		cmocka_unit_test_setup_teardown(test_communicators_are_judged_by_themselves, set_up,
		                                tear_down),
		cmocka_unit_test_setup_teardown(
			test_what_another_user_says_of_a_communicator_is_of_his_own, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_communicators_of_one_user_hide_none_of_anothers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_recordings_of_ranks_are_put_together, set_up,
		                                tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_recording_that_tells_of_more_launches_is_later, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_calls_count_where_nobody_told, set_up,
		                                tear_down),
		cmocka_unit_test_setup_teardown(test_of_very_many_ranks_those_behind_are_kept,
		                                set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
