// SPDX-License-Identifier: MIT
/* How late ranks are, added up while they run. */
#include "nccl_scene.h"

#include "analysis/lateness.h"
#include "cuda/api.h"

#define END_US 1e8 /* behind all calls */

static struct lateness *late;

static void scene_event(const struct event *event)
{
	lateness_event(late, event);
}

static int set_up(void **state)
{
	late = lateness_new(4096);
	return 0;
}

static int tear_down(void **state)
{
	lateness_free(late);
	return 0;
}

static void reduce(uint32_t rank, double at_us)
{
	struct call call = nccl("ncclAllReduce", at_us, at_us + 8);

	set_arg(&call, "comm", 0x5500 + rank);
	set_arg(&call, "bytes", 4096);
	see(rank, call);
}

static void cuda(uint32_t rank, const char *function, uint64_t handle, double begin_us,
                 double duration_us)
{
	struct call call = call_at(function, begin_us, duration_us);
	struct event event = call_event(ranks[rank], 1, &call);

	call.args.event = handle;
	scene_event(&event);
}

static void two(void)
{
	init(0, 77);
	init(1, 77);
}

static void turn(double at_us)
{
	lateness_turn(late, US(at_us));
}

static const struct lateness_rank *of(uint32_t rank)
{
	const struct collectives *all = lateness_collectives(late);

	for (size_t i = 0; i < all->n_ranks; i++)
		if (all->ranks[i].process == ranks[rank])
			return lateness_of(late, i);
	fail_msg("rank %u is not known", rank);
	return NULL;
}

static void test_one_rank_is_late_and_the_others_wait(void **state)
{
	for (uint32_t i = 0; i < RANKS; i++)
		init(i, 77);
	for (uint32_t step = 0; step < 10; step++)
		for (uint32_t i = 0; i < RANKS; i++)
			reduce(i, 1000 * step + (i == 2 ? 700 : 10 * i));
	turn(END_US);
	for (uint32_t i = 0; i < RANKS; i++) {
		assert_int_equal(of(i)->n, 10);
		assert_int_equal(of(i)->n_last, i == 2 ? 10 : 0);
		assert_int_equal(of(i)->late_ns, i == 2 ? US(6700) - US(0) : 0);
		assert_int_equal(of(i)->waited_ns, i == 2 ? 0 : US(10 * (700 - 10 * i)) - US(0));
		assert_int_equal(of(i)->missing_ns, 0);
	}
}

/* The sums are the same whenever they are asked for, and nothing counts twice. */
static void test_turns_cut_nothing(void **state)
{
	two();
	for (uint32_t step = 0; step < 1000; step++) {
		reduce(0, 10000 * step);
		reduce(1, 10000 * step + 4000);
		turn(10000 * step + 4500);
	}
	assert_true(of(1)->n < 1000); /* the last are too young */
	turn(END_US);
	assert_int_equal(of(1)->n, 1000);
	assert_int_equal(of(1)->late_ns, US(4000000) - US(0));
}

/* A host that runs ahead calls much earlier: what it waits for began when the step before did. */
static void test_one_that_runs_ahead_waits_no_longer_than_time_passes(void **state)
{
	two();
	for (uint32_t step = 0; step < 10; step++) {
		reduce(0, 20 * step);
		reduce(1, 8000 * (step + 1));
	}
	turn(END_US);
	assert_int_equal(of(1)->late_ns, US(80000) - US(0));
	assert_int_equal(of(0)->waited_ns, of(1)->late_ns);
}

/* Its host is later than the other's, but its GPU was busy for longer than that: nobody waited. */
static void test_a_wait_for_what_was_recorded_before_is_no_lateness(void **state)
{
	two();
	for (uint32_t step = 0; step < 10; step++) {
		double at = 20000 * step;

		cuda(1, "cuEventRecord", 5 + step % 2, at, 1);
		reduce(0, at + 10);
		reduce(1, at + 8000);
		cuda(1, "cuEventSynchronize", 5 + step % 2, at + 8010, 11000);
	}
	turn(END_US);
	assert_int_equal(of(1)->late_ns, 0);
	assert_int_equal(of(1)->n, 10);
}

/* Whoever waits for its GPU itself is late from the end of that on. */
static void test_a_rank_that_waited_is_late_from_then_on(void **state)
{
	two();
	for (uint32_t step = 0; step < 10; step++) {
		double at = 20000 * (step + 1);

		reduce(0, at);
		cuda(1, "cuStreamSynchronize", 0, at - 1000, 6000);
		reduce(1, at + 8000);
	}
	turn(END_US);
	assert_int_equal(of(1)->late_ns, US(30000) - US(0));
}

static void test_a_rank_that_hangs_is_missing_for_as_long(void **state)
{
	two();
	reduce(0, 1000);
	reduce(1, 1000);
	reduce(0, 2000);
	turn(12e6);
	assert_int_equal(of(1)->missing_ns, US(12e6) - US(2000));
	assert_int_equal(of(0)->missing_ns, 0);
	assert_int_equal(of(1)->late_ns, 0);
	reduce(1, 13e6); /* too young to be judged, but there */
	turn(13e6 + 100);
	assert_int_equal(of(1)->missing_ns, 0);
	turn(END_US);
	assert_int_equal(of(1)->late_ns, US(13e6) - US(2000));
}

static void test_nobody_waits_for_a_rank_that_has_ended(void **state)
{
	struct event gone = { .type = EVENT_EXIT, .process = ranks[2] };

	for (uint32_t i = 0; i < 3; i++)
		init(i, 77);
	for (uint32_t i = 0; i < 3; i++)
		reduce(i, 1000);
	scene_event(&gone);
	for (uint32_t step = 2; step < 5; step++)
		for (uint32_t i = 0; i < 2; i++)
			reduce(i, 1000 * step + 100 * i);
	turn(END_US);
	assert_int_equal(of(2)->n, 1);
	assert_int_equal(of(1)->n, 4);
	assert_int_equal(of(1)->late_ns, US(300) - US(0));
	assert_int_equal(of(1)->missing_ns, 0);
}

static void test_a_rank_alone_has_nobody_to_be_late_for(void **state)
{
	init(0, 77);
	for (uint32_t step = 0; step < 10; step++)
		reduce(0, 1000 * step);
	turn(END_US);
	assert_int_equal(of(0)->n, 0);
	assert_int_equal(lateness_collectives(late)->n_calls, 0);
}

/* Whose calls they were is not known: none has its number any more, until RAS tells of it. */
static void test_after_a_loss_ras_tells_the_numbers_anew(void **state)
{
	for (uint32_t i = 0; i < 2; i++)
		known(i, 10);
	for (uint32_t step = 0; step < 10; step++)
		for (uint32_t i = 0; i < 2; i++)
			reduce(i, 1000 + 1000 * step + 100 * i);
	for (uint32_t i = 0; i < 2; i++)
		counted(i, 5300, 5400, 105);
	turn(3e6);
	assert_int_equal(of(0)->n, 10);
	lateness_distrust(late);
	for (uint32_t step = 0; step < 10; step++)
		for (uint32_t i = 0; i < 2; i++)
			reduce(i, 4e6 + 1000 * step + 100 * i);
	turn(7e6);
	assert_int_equal(of(0)->n, 10);
	assert_true(collectives_want_ras(lateness_collectives(late), US(4e6)));
	for (uint32_t i = 0; i < 2; i++)
		counted(i, 4e6 + 5300, 4e6 + 5400, 126);
	turn(8e6);
	assert_int_equal(of(0)->n, 20);
	assert_int_equal(of(1)->late_ns, US(2000) - US(0));
	assert_false(collectives_want_ras(lateness_collectives(late), US(4e6)));
}

/* RAS' answer: one launches as many as these. */
static void all_counted(double at_us, uint64_t reduces, uint32_t behind, uint64_t by)
{
	for (uint32_t i = 0; i < RANKS; i++)
		counted(i, at_us, at_us + 100, i == behind ? reduces - by : reduces);
}

static void all_known(void)
{
	for (uint32_t i = 0; i < RANKS; i++)
		known(i, 10);
}

static void test_a_rank_that_hung_before_is_missing_by_what_was_counted(void **state)
{
	all_known();
	all_counted(1e6, 100, 2, 1);
	turn(2e6);
	assert_int_equal(of(2)->missing_ns, 0); /* it may be but a little late */
	all_counted(4e6, 100, 2, 1);
	turn(5e6);
	assert_int_equal(of(2)->missing_ns, US(5e6) - US(1e6));
	assert_int_equal(of(0)->missing_ns, 0);
	turn(7e6);
	assert_int_equal(of(2)->missing_ns, US(7e6) - US(1e6));
	reduce(2, 8e6); /* it comes */
	turn(9e6);
	assert_int_equal(of(2)->missing_ns, 0);
}

static void test_a_loss_hides_no_rank_that_hangs(void **state)
{
	all_known();
	all_counted(1e6, 100, RANKS, 0);
	for (uint32_t i = 0; i < RANKS; i++)
		if (i != 1)
			reduce(i, 1.5e6);
	turn(4e6);
	lateness_distrust(late);
	turn(5e6);
	assert_int_equal(of(1)->missing_ns, 0);
	assert_true(collectives_want_ras(lateness_collectives(late), US(5e6)));
	all_counted(6e6, 101, 1, 1);
	all_counted(9e6, 101, 1, 1);
	lateness_distrust(late);
	turn(10e6);
	assert_int_equal(of(1)->missing_ns, US(10e6) - US(6e6 + 100));
}

static void test_of_a_job_that_goes_on_nobody_is_missing(void **state)
{
	all_known();
	all_counted(1e6, 100, 2, 1);
	all_counted(4e6, 101, 2, 1);
	all_counted(5e6, 101, 2, 1); /* still for a second */
	turn(6e6);
	assert_int_equal(of(2)->missing_ns, 0);
	all_counted(8e6, 101, 2, 1);
	reduce(0, 9e6); /* that call is behind what rank 2 lacked, which was lost */
	turn(10e6);
	assert_int_equal(of(2)->missing_ns, 0);
}

static void test_where_not_all_are_told_of_nobody_is_missing(void **state)
{
	all_known();
	for (uint32_t i = 0; i + 1 < RANKS; i++)
		for (double at = 1e6; at < 9e6; at += 3e6)
			counted(i, at, at + 100, i ? 100 : 99);
	turn(10e6);
	assert_int_equal(of(0)->missing_ns, 0);
	all_counted(10e6, 100, 0, 1);
	counted(3, 14e6, 14e6 + 100, 99); /* two are */
	all_counted(14e6, 100, 0, 1);
	counted(3, 18e6, 18e6 + 100, 99);
	turn(19e6);
	assert_int_equal(of(0)->missing_ns, 0);
}

/* Also of those that are too young to be judged. */
static void test_what_each_rank_has_called_is_known(void **state)
{
	struct collective_counts *counts;

	two();
	for (uint32_t step = 0; step < 10; step++)
		reduce(0, 1000 * step);
	turn(2e6 + 5000);
	reduce(0, 2e6 + 5500);
	counts = collectives_count(lateness_collectives(late));
	assert_true(counts[0].known && counts[1].known);
	assert_int_equal(counts[0].of[COLLECTIVE_ALL_REDUCE], 11);
	assert_int_equal(counts[1].of[COLLECTIVE_ALL_REDUCE], 0);
	free(counts);
	lateness_distrust(late);
	counts = collectives_count(lateness_collectives(late));
	assert_false(counts[0].known);
	assert_true(counts[0].of[COLLECTIVE_ALL_REDUCE] == UINT64_MAX);
	free(counts);
}

/* Their numbers are not right, so no later ones are either. */
static void test_ranks_that_say_different_things_are_not_believed(void **state)
{
	struct call call;

	two();
	reduce(0, 1000);
	call = nccl("ncclAllReduce", 1100, 1110);
	set_arg(&call, "comm", 0x5501);
	set_arg(&call, "bytes", 8);
	see(1, call);
	turn(4e6);
	for (uint32_t step = 0; step < 10; step++)
		for (uint32_t i = 0; i < 2; i++)
			reduce(i, 5e6 + 1000 * step + 100 * i);
	turn(END_US);
	assert_int_equal(of(0)->n, 0);
	assert_int_equal(lateness_unmatched(late).unlike, 1);
	assert_int_equal(lateness_unmatched(late).uncounted, 20);
}

static void test_calls_without_end_are_not_all_kept(void **state)
{
	two();
	for (uint32_t i = 0; i < 5000; i++)
		reduce(0, 10 * i);
	turn(10e6);
	assert_int_equal(lateness_unmatched(late).lost, 5000);
	assert_int_equal(lateness_collectives(late)->n_calls, 0);
	/* nor those of communicators that nothing is known of */
	for (uint32_t i = 0; i < 4000; i++)
		reduce(2, 11e6 + 10 * i);
	turn(11e6 + 50000);
	assert_true(lateness_collectives(late)->n_calls <= 2048);
	turn(END_US);
	assert_int_equal(lateness_unmatched(late).unknown, 4000);
}

#define IN_SCENE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_SCENE(test_one_rank_is_late_and_the_others_wait),
		IN_SCENE(test_turns_cut_nothing),
		IN_SCENE(test_one_that_runs_ahead_waits_no_longer_than_time_passes),
		IN_SCENE(test_a_wait_for_what_was_recorded_before_is_no_lateness),
		IN_SCENE(test_a_rank_that_waited_is_late_from_then_on),
		IN_SCENE(test_a_rank_that_hangs_is_missing_for_as_long),
		IN_SCENE(test_nobody_waits_for_a_rank_that_has_ended),
		IN_SCENE(test_a_rank_alone_has_nobody_to_be_late_for),
		IN_SCENE(test_after_a_loss_ras_tells_the_numbers_anew),
		IN_SCENE(test_a_rank_that_hung_before_is_missing_by_what_was_counted),
		IN_SCENE(test_a_loss_hides_no_rank_that_hangs),
		IN_SCENE(test_of_a_job_that_goes_on_nobody_is_missing),
		IN_SCENE(test_where_not_all_are_told_of_nobody_is_missing),
		IN_SCENE(test_what_each_rank_has_called_is_known),
		IN_SCENE(test_ranks_that_say_different_things_are_not_believed),
		IN_SCENE(test_calls_without_end_are_not_all_kept),
	};

	return cmocka_run_group_tests(tests, set_up_all, tear_down_all);
}
