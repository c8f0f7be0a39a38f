// SPDX-License-Identifier: MIT
/* What processes of one user say of communicators is nothing that another's have to do with. */
#include "nccl_scene.h"

#include "analysis/collectives.h"
#include "probe/person.h"

#define VICTIM  1001 /* whose ranks 0 and 1 are */
#define HOSTILE 1002 /* rank 2 and 3 */

static struct collectives all;

static void scene_event(const struct event *event)
{
	collectives_event(&all, event);
}

static int set_up(void **state)
{
	collectives_init(&all);
	for (uint32_t i = 0; i < RANKS; i++) {
		belong(i, i < 2 ? VICTIM : HOSTILE);
		((struct process *)ranks[i])->machine = 0;
	}
	return 0;
}

static int tear_down(void **state)
{
	collectives_clear(&all);
	return 0;
}

static void reduce(uint32_t rank, double at_us, uint64_t bytes)
{
	struct call call = nccl("ncclAllReduce", at_us, at_us + 8);

	set_arg(&call, "comm", 0x5500 + rank);
	set_arg(&call, "bytes", bytes);
	see(rank, call);
}

static void steps(uint32_t first, uint32_t n, unsigned n_steps)
{
	for (unsigned step = 1; step <= n_steps; step++)
		for (uint32_t i = first; i < first + n; i++)
			reduce(i, 1000 * step + 10 * i, 4096);
}

static void end(void)
{
	struct run_info run = default_run_info();

	collectives_end(&all, &run);
}

/* All five are there, of these two alone. */
static void check_victims(void)
{
	size_t n = 0;

	for (size_t i = 0; i < all.n_all; i++) {
		const struct collective_call *calls = &all.calls[all.all[i].first];

		if (all.comms[all.all[i].comm].person != VICTIM)
			continue;
		n++;
		assert_int_equal(all.all[i].n, 2);
		for (uint32_t k = 0; k < 2; k++)
			assert_int_equal(all.ranks[calls[k].rank].process->pid, 100 + k);
	}
	assert_int_equal(n, 5);
}

static void test_who_says_the_id_of_another_users_communicator_is_not_in_it(void **state)
{
	for (uint32_t i = 0; i < 4; i++)
		init(i, 77);
	steps(0, 2, 5);
	for (unsigned step = 1; step <= 20; step++) /* of other sizes: as if calls were missing */
		reduce(2, 500 * step, 64);
	reduce(3, 100, 64);
	end();
	check_victims();
	assert_int_equal(all.n_comms, 2);
	assert_int_equal(all.comms[0].unlike, 0);
	assert_true(all.comms[0].claimed && all.comms[1].claimed);
	assert_int_equal(all.n_claims, 2);
	assert_int_equal(all.claims[0].person, VICTIM);
	assert_int_equal(all.claims[1].person, HOSTILE);
}

static void test_who_says_what_ras_told_of_others_moves_none_of_them(void **state)
{
	for (uint32_t i = 0; i < 2; i++) { /* since before the recording */
		known(i, 500);
		counted(i, 2600, 2700, 2);
	}
	init(2, 78);
	known(2, 600); /* it is also that of the others, it says */
	counted(2, 2600, 2700, 2);
	steps(0, 3, 5);
	end();
	check_victims();
	for (size_t i = 0; i < all.n_ranks; i++)
		assert_int_equal(all.comms[all.ranks[i].comm].person, i < 2 ? VICTIM : HOSTILE);
}

static void counted_as(uint32_t process, int number, uint64_t reduces)
{
	struct call call;

	told("ras.rank", RAS_RANK);
	call = nccl("ras.rank", 100, 200);
	set_arg(&call, "id", 0xabc);
	set_arg(&call, "id2", 0xdef);
	set_arg(&call, "rank", (uint64_t)number);
	set_arg(&call, "pid", ranks[process]->pid);
	set_arg(&call, "AllReduce", reduces);
	see(process, call);
}

static void test_what_another_users_ras_says_of_a_rank_is_not_that_rank(void **state)
{
	counted_as(0, 0, 100);
	counted_as(1, 1, 100);
	counted_as(2, 1, 7);
	end();
	assert_int_equal(all.n_told, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(all.told[i].person, i < 2 ? VICTIM : HOSTILE);
		assert_int_equal(all.told[i].counts[COLLECTIVE_ALL_REDUCE], i < 2 ? 100 : 7);
	}
	assert_int_equal(all.n_claims, 2);
}

/* As of the process that stands for all that there is no room for, too. */
static void test_whose_a_process_is_has_to_be_known(void **state)
{
	for (uint32_t i = 0; i < 4; i++) {
		belong(i, PERSON_UNKNOWN);
		init(i, 77);
	}
	steps(0, 4, 5);
	end();
	assert_int_equal(all.n_all, 0);
	assert_int_equal(all.n_comms, 4);
	assert_int_equal(all.n_claims, 4);
}

static void test_an_older_file_does_not_tell_whose_they_are(void **state)
{
	for (uint32_t i = 0; i < 4; i++) {
		belong(i, PROCESS_UNTOLD);
		init(i, 77);
	}
	steps(0, 4, 5);
	end();
	assert_int_equal(all.n_all, 5);
	assert_int_equal(all.n_claims, 0);
}

/* They had no reason of their own before. */
static void test_what_an_older_file_counts_with_names_may_be_calls(void **state)
{
	for (int older = 0; older < 2; older++) {
		struct run_info run = default_run_info();

		run.lost[LOST_OVER_BUDGET] = 1;
		for (uint32_t i = 0; i < 2; i++) {
			belong(i, older ? PROCESS_UNTOLD : VICTIM);
			init(i, 77);
		}
		steps(0, 2, 5);
		collectives_end(&all, &run);
		assert_int_equal(all.lost, older);
		assert_int_equal(all.n_all, older ? 0 : 5);
		collectives_clear(&all);
		collectives_init(&all);
	}
}

static void test_a_uid_is_one_user_on_all_machines_and_a_namespace_is_not(void **state)
{
	for (uint32_t i = 0; i < 4; i++) {
		((struct process *)ranks[i])->machine = i % 2;
		belong(i, i < 2 ? VICTIM : PERSON_NAMESPACE | 4026532000u);
		init(i, 77);
	}
	assert_int_equal(collectives_person(ranks[0]), collectives_person(ranks[1]));
	assert_int_not_equal(collectives_person(ranks[2]), collectives_person(ranks[3]));
	steps(0, 4, 5);
	end();
	check_victims();
	assert_int_equal(all.n_all, 5);
}

/* Of one name, however often it is told to be another's. */
static void test_a_communicator_is_given_another_name_once(void **state)
{
	for (uint32_t i = 0; i < 3; i++)
		belong(i, HOSTILE);
	known(0, 500);
	for (uint32_t i = 1; i < 3; i++) {
		init(i, 80 + i);
		known(i, 600);
	}
	end();
	assert_int_equal(all.ranks[0].comm, all.ranks[1].comm);
	assert_int_not_equal(all.ranks[2].comm, all.ranks[1].comm);
}

static uint64_t left_of(uint64_t person, enum collectives_table table)
{
	for (size_t i = 0; i < all.n_left; i++)
		if (all.left[i].person == person)
			return all.left[i].n[table];
	return 0;
}

static void test_calls_of_one_user_take_no_room_of_anothers(void **state)
{
	for (uint32_t i = 0; i < 3; i++)
		init(i, 77);
	for (unsigned i = 0; i < (1u << 19) + 10; i++)
		reduce(2, i, 64);
	steps(0, 2, 5);
	end();
	check_victims();
	assert_false(all.lost);
	assert_int_equal(left_of(HOSTILE, COLLECTIVES_CALLS), 10);
	assert_int_equal(left_of(VICTIM, COLLECTIVES_CALLS), 0);
	for (size_t i = 0; i < all.n_ranks; i++)
		assert_int_equal(all.ranks[i].lost, all.ranks[i].person == HOSTILE);
}

static void test_threads_of_one_user_take_no_room_of_anothers(void **state)
{
	for (uint32_t i = 0; i < 3; i++)
		init(i, 77);
	for (uint32_t tid = 0; tid < 4100; tid++) {
		struct call call = nccl("ncclGroupStart", 100, 101);
		struct event event = call_event(ranks[2], tid, &call);

		event.type = EVENT_OTHER_CALL;
		scene_event(&event);
	}
	for (uint32_t i = 0; i < 2; i++) { /* their launches are known by their threads */
		struct call call = launch_at("cuLaunchKernel", 1001, NULL);
		struct event event = call_event(ranks[i], 1, &call);

		call.correlation = 5;
		collectives_event(&all, &event);
	}
	steps(0, 2, 5);
	end();
	check_victims();
	assert_int_equal(left_of(HOSTILE, COLLECTIVES_THREADS), 4);
	assert_int_equal(left_of(VICTIM, COLLECTIVES_THREADS), 0);
}

static void test_ranks_and_their_counts_have_a_share_each(void **state)
{
	for (unsigned i = 0; i < 4100; i++) {
		struct call call = nccl("ncclCommInitRank", 0, 10);

		set_arg(&call, "comm", 0x10000 + i);
		set_arg(&call, "id", 77);
		see(2, call);
	}
	for (int i = 0; i < (1 << 17) + 3; i++)
		counted_as(3, i, 1);
	for (uint32_t i = 0; i < 2; i++)
		init(i, 77);
	counted_as(0, 0, 100);
	steps(0, 2, 5);
	end();
	check_victims();
	assert_int_equal(left_of(HOSTILE, COLLECTIVES_RANKS), 4);
	assert_int_equal(left_of(HOSTILE, COLLECTIVES_COUNTS), 3);
	assert_int_equal(left_of(HOSTILE, COLLECTIVES_TOLD_RANKS), (1 << 16) + 3);
	assert_int_equal(all.n_left, 1);
}

static void test_kernels_of_one_user_take_no_room_of_anothers(void **state)
{
	struct activity run = { .kind = ACTIVITY_KERNEL, .begin_ns = 1, .end_ns = 2 };

	for (unsigned i = 1; i <= (1u << 20) + 7; i++) {
		struct event ran = activity_event(ranks[i > (1u << 20) + 5 ? 0 : 2], &run);

		run.correlation = i;
		collectives_kernel(&all, &ran);
	}
	end();
	assert_int_equal(left_of(HOSTILE, COLLECTIVES_KERNELS), 5);
	assert_int_equal(left_of(VICTIM, COLLECTIVES_KERNELS), 0);
}

#define A_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		A_TEST(test_who_says_the_id_of_another_users_communicator_is_not_in_it),
		A_TEST(test_who_says_what_ras_told_of_others_moves_none_of_them),
		A_TEST(test_what_another_users_ras_says_of_a_rank_is_not_that_rank),
		A_TEST(test_whose_a_process_is_has_to_be_known),
		A_TEST(test_an_older_file_does_not_tell_whose_they_are),
		A_TEST(test_what_an_older_file_counts_with_names_may_be_calls),
		A_TEST(test_a_uid_is_one_user_on_all_machines_and_a_namespace_is_not),
		A_TEST(test_a_communicator_is_given_another_name_once),
		A_TEST(test_calls_of_one_user_take_no_room_of_anothers),
		A_TEST(test_threads_of_one_user_take_no_room_of_anothers),
		A_TEST(test_ranks_and_their_counts_have_a_share_each),
		A_TEST(test_kernels_of_one_user_take_no_room_of_anothers),
	};

	return cmocka_run_group_tests(tests, set_up_all, tear_down_all);
}
