// SPDX-License-Identifier: MIT
/* GPU time from launches and the calls that waited for them. */
#include "unit.h"

#include "profile/estimate.h"

static const struct process first = { 0, 10, "a" }, second = { 1, 11, "b" };
static uint64_t given[8]; /* ns, by the launch's name */

#define MS      1000000ull
#define US      1000ull
#define CALL_NS 100 /* that a launch takes */
static size_t told;

static void each(void *data, const struct estimate_launch *launch, uint64_t ns)
{
	assert_ptr_equal(data, given);
	given[(uintptr_t)launch->name] += ns;
	told++;
}

static void launch(struct estimate *estimate, const struct process *process, uint64_t stream,
                   uintptr_t name, uint64_t begin_ns)
{
	const struct estimate_launch at = { .name = (void *)name,
		                            .process = process,
		                            .begin_ns = begin_ns,
		                            .end_ns = begin_ns + CALL_NS };

	assert_true(estimate_add(estimate, stream, &at));
}

static void wait_for(struct estimate *estimate, const struct process *process, uint64_t stream,
                     bool all, uint64_t begin_ns, uint64_t end_ns)
{
	const struct estimate_wait wait = { process, all, stream, begin_ns, end_ns };

	assert_true(end_ns - begin_ns >= ESTIMATE_WAIT_NS);

	estimate_waited(estimate, &wait, each, given);
}

static struct estimate_figures figures_of(const struct estimate *estimate)
{
	struct estimate_figures figures;

	estimate_figures(estimate, &figures);
	return figures;
}

/* All under one name. Returns when the last one has returned. */
static uint64_t burst(struct estimate *estimate, uintptr_t name, uint64_t begin_ns, size_t n,
                      uint64_t each_ns)
{
	for (size_t i = 0; i < n; i++)
		launch(estimate, &first, 7, name, begin_ns + i * each_ns);
	return begin_ns + (n - 1) * each_ns + CALL_NS;
}

static int begin(void **state)
{
	memset(given, 0, sizeof(given));
	told = 0;
	*state = estimate_new();
	return 0;
}

static int end(void **state)
{
	estimate_free(*state);
	return 0;
}

static void test_launches_share_the_time_until_their_wait_ends(void **state)
{
	launch(*state, &first, 7, 1, 100000);
	launch(*state, &first, 7, 2, 120000);
	wait_for(*state, &first, 7, false, 130000, 300000);
	assert_int_equal(given[1], 100000);
	assert_int_equal(given[2], 100000);
	wait_for(*state, &first, 7, false, 400000, 500000); /* for nothing */
	assert_int_equal(told, 2);
	assert_int_equal(figures_of(*state).not_waited, 0);
}

static void test_a_wait_is_for_its_stream_and_process(void **state)
{
	launch(*state, &first, 7, 1, 100000);
	launch(*state, &first, 8, 2, 100000);
	launch(*state, &second, 7, 3, 100000);
	wait_for(*state, &first, 7, false, 110000, 200000);
	assert_int_equal(given[1], 100000);
	assert_int_equal(told, 1);
	launch(*state, &first, 7, 4, 200000);
	wait_for(*state, &first, 0, true, 210000, 300000); /* for all of its streams */
	assert_int_equal(given[2], 200000);
	assert_int_equal(given[4], 100000);
	assert_int_equal(given[3], 0);
	assert_int_equal(figures_of(*state).not_waited, 1);
}

static void test_what_is_launched_during_a_wait_is_for_the_next(void **state)
{
	launch(*state, &first, 7, 1, 100000);
	launch(*state, &first, 7, 2, 150000); /* by another thread */
	wait_for(*state, &first, 7, false, 120000, 200000);
	assert_int_equal(given[1], 100000);
	assert_int_equal(given[2], 0);
	wait_for(*state, &first, 7, false, 250000, 350000);
	assert_int_equal(given[2], 200000);
}

/* The GPU was done when the program came to wait: what the program did in between is not the GPU's.
 */
static void test_a_wait_that_returns_at_once_ends_no_later_than_the_launches(void **state)
{
	struct estimate_wait wait = { &first, false, 7, 900000, 900000 + ESTIMATE_WAIT_NS - 1 };

	launch(*state, &first, 7, 1, 1000);
	launch(*state, &first, 7, 2, 2900);
	estimate_waited(*state, &wait, each, given);
	assert_int_equal(given[1], 1000); /* from 1000 to 3000 */
	assert_int_equal(given[2], 1000);
	launch(*state, &first, 7, 3, 1000);
	wait.end_ns++;
	estimate_waited(*state, &wait, each, given);
	assert_int_equal(given[3], wait.end_ns - 1000);
}

/* A training step, 38 ms of other work, and a small copy that is waited for. */
static void test_a_pause_before_a_short_end_is_not_the_gpus(void **state)
{
	uint64_t done_ns = burst(*state, 1, MS, 60, 50 * US), copy_ns = done_ns + 38 * MS;

	launch(*state, &first, 7, 2, copy_ns);
	wait_for(*state, &first, 7, false, copy_ns + 5 * US, copy_ns + 30 * US);
	assert_int_equal(given[1] / 60, (done_ns - MS + 25 * US) / 60); /* as late as the wait */
	assert_int_equal(given[2], 30 * US);
	assert_int_equal(figures_of(*state).left_out_ns, 38 * MS - 25 * US);
	assert_int_equal(told, 61);
}

static void test_each_pause_is_looked_at_by_itself(void **state)
{
	uint64_t at_ns = MS;

	for (uintptr_t step = 1; step <= 5; step++)
		at_ns = burst(*state, step, at_ns, 100, 50 * US) + 38 * MS;
	at_ns -= 38 * MS;
	wait_for(*state, &first, 7, false, at_ns, at_ns + 50 * US);
	for (uintptr_t step = 1; step <= 5; step++)
		assert_in_range(given[step], 5 * MS - 100 * US, 5 * MS + 50 * US);
	assert_int_equal(figures_of(*state).left_out_ns, 4 * (38 * MS - 50 * US));
}

/* What comes after the pause takes long: there was a queue. */
static void test_work_behind_a_queue_keeps_its_pauses(void **state)
{
	const uint64_t waits[] = { 3 * MS, 100 * MS };

	for (size_t i = 0; i < 2; i++) {
		uint64_t done_ns = burst(*state, 1, MS, 60, 50 * US), copy_ns = done_ns + 38 * MS;

		given[1] = given[2] = 0;
		launch(*state, &first, 7, 2, copy_ns);
		wait_for(*state, &first, 7, false, copy_ns + 5 * US, copy_ns + waits[i]);
		assert_in_range(given[1] + given[2], copy_ns + waits[i] - MS - 61,
		                copy_ns + waits[i] - MS);
	}
	assert_int_equal(figures_of(*state).left_out_ns, 0);
}

static void test_a_launch_that_blocks_tells_of_a_queue(void **state)
{
	struct estimate_launch blocked = { .name = (void *)2, .process = &first };
	uint64_t done_ns = burst(*state, 1, MS, 60, 50 * US);

	blocked.begin_ns = done_ns + 38 * MS;
	blocked.end_ns = blocked.begin_ns + 3 * MS;
	assert_true(estimate_add(*state, 7, &blocked));
	wait_for(*state, &first, 7, false, blocked.end_ns, blocked.end_ns + 25 * US);
	assert_in_range(given[1] + given[2], blocked.end_ns + 25 * US - MS - 61,
	                blocked.end_ns + 25 * US - MS);
}

/* Nothing else was on the stream: it ran when the wait began. */
static void test_a_wait_for_a_stream_is_for_its_last_launch(void **state)
{
	launch(*state, &first, 7, 1, MS);
	launch(*state, &first, 8, 2, 39 * MS);
	wait_for(*state, &first, 7, false, 40 * MS, 40 * MS + 30 * US);
	assert_int_equal(given[1], 39 * MS + 30 * US);
	assert_int_equal(figures_of(*state).left_out_ns, 0);
}

static void test_a_wait_for_all_streams_is_for_those_that_were_used_last(void **state)
{
	for (uint64_t stream = 1; stream <= 4; stream++)
		launch(*state, &first, stream, stream, stream * 10 * MS);
	wait_for(*state, &first, 0, true, 40 * MS + 5 * US, 40 * MS + 50 * US);
	for (uintptr_t stream = 1; stream < 4; stream++)
		assert_int_equal(given[stream], CALL_NS + 45 * US);
	assert_int_equal(given[4], 50 * US);
	for (uint64_t stream = 1; stream <= 4; stream++)
		launch(*state, &first, stream, stream, 100 * MS + stream * 10 * MS);
	memset(given, 0, sizeof(given));
	wait_for(*state, &first, 0, true, 141 * MS, 160 * MS);
	for (uintptr_t stream = 1; stream <= 4; stream++)
		assert_int_equal(given[stream], 60 * MS - stream * 10 * MS);
}

static void test_short_pauses_are_those_of_a_program_that_launches(void **state)
{
	uint64_t done_ns = burst(*state, 1, MS, 10, ESTIMATE_PAUSE_NS);

	wait_for(*state, &first, 7, false, done_ns, done_ns + 25 * US);
	assert_int_equal(given[1], (done_ns + 25 * US - MS) / 10 * 10);
}

/* Bursts before the last one end with their launches, too. */
static void test_a_wait_that_returns_at_once_tells_of_no_delay(void **state)
{
	const struct estimate_wait wait = { &first, false, 7, 90 * MS, 90 * MS + 5 * US };
	uint64_t done_ns = burst(*state, 1, MS, 10, 50 * US);

	burst(*state, 2, 50 * MS, 10, 50 * US);
	estimate_waited(*state, &wait, each, given);
	assert_int_equal(given[1], (done_ns - MS) / 10 * 10);
	assert_int_equal(given[2], (done_ns - MS) / 10 * 10);
	assert_int_equal(figures_of(*state).left_out_ns, wait.end_ns - MS - 2 * (done_ns - MS));
}

/* ---- memory -------------------------------------------------------------------------------- */

static uint64_t fill(struct estimate *estimate, const struct process *process, uint64_t streams)
{
	const struct estimate_launch at = { .process = process, .begin_ns = 1000 };
	uint64_t n = 0;

	while (n < 1000 * 1000 && estimate_add(estimate, n % streams, &at))
		n++;
	return n;
}

static void test_a_process_has_a_share_of_the_memory(void **state)
{
	assert_int_equal(fill(*state, &first, 1), 131072);
	assert_int_equal(figures_of(*state).refused, 1);
	assert_int_equal(figures_of(*state).refused_pid, first.pid);
	assert_int_equal(fill(*state, &second, 1), 131072);
	wait_for(*state, &first, 0, true, 1000, 1000 + 30 * US);
	assert_int_equal(fill(*state, &first, 1), 131072);
}

static void test_streams_are_paid_for(void **state)
{
	uint64_t n = fill(*state, &first, 1000 * 1000);

	assert_in_range(n, 1000, ESTIMATE_EACH_BYTES / (16 * sizeof(struct estimate_launch)));
}

static void test_a_small_part_is_left_where_all_is_taken(void **state)
{
	struct process more[4] = { 0 };

	for (uint32_t i = 0; i < 4; i++) {
		more[i].pid = 100 + i;
		if (i < 3)
			assert_in_range(fill(*state, &more[i], 1000 * 1000), 1000, 20000);
	}
	assert_in_range(fill(*state, &more[3], 1), 200, 600);
	assert_int_equal(figures_of(*state).refused_pid, 100);
}

static void test_what_a_process_had_is_free_when_it_ends(void **state)
{
	for (int i = 0; i < 5; i++) {
		assert_int_equal(fill(*state, &first, 1), 131072);
		estimate_ended(*state, first.pid);
	}
	assert_int_equal(figures_of(*state).not_waited, 5 * 131072);
	estimate_ended(*state, second.pid); /* had nothing */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(test_launches_share_the_time_until_their_wait_ends),
		TEST(test_a_wait_is_for_its_stream_and_process),
		TEST(test_what_is_launched_during_a_wait_is_for_the_next),
		TEST(test_a_wait_that_returns_at_once_ends_no_later_than_the_launches),
		TEST(test_a_pause_before_a_short_end_is_not_the_gpus),
		TEST(test_each_pause_is_looked_at_by_itself),
		TEST(test_work_behind_a_queue_keeps_its_pauses),
		TEST(test_a_launch_that_blocks_tells_of_a_queue),
		TEST(test_a_wait_for_a_stream_is_for_its_last_launch),
		TEST(test_a_wait_for_all_streams_is_for_those_that_were_used_last),
		TEST(test_short_pauses_are_those_of_a_program_that_launches),
		TEST(test_a_wait_that_returns_at_once_tells_of_no_delay),
		TEST(test_a_process_has_a_share_of_the_memory),
		TEST(test_streams_are_paid_for),
		TEST(test_a_small_part_is_left_where_all_is_taken),
		TEST(test_what_a_process_had_is_free_when_it_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
