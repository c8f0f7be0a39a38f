// SPDX-License-Identifier: MIT
/* GPU time from launches and the calls that waited for them. */
#include "unit.h"

#include "profile/estimate.h"

static const struct process first = { 0, 10, "a" }, second = { 1, 11, "b" };
static uint64_t given[8]; /* ns, by the launch's name */
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
		                            .end_ns = begin_ns + 100 };

	assert_true(estimate_add(estimate, stream, &at));
}

static void wait_for(struct estimate *estimate, const struct process *process, uint64_t stream,
                     bool all, uint64_t begin_ns, uint64_t end_ns)
{
	const struct estimate_wait wait = { process, all, stream, begin_ns, end_ns };

	assert_true(end_ns - begin_ns >= ESTIMATE_WAIT_NS);

	estimate_waited(estimate, &wait, each, given);
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
	assert_int_equal(estimate_waiting(*state), 0);
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
	assert_int_equal(estimate_waiting(*state), 1);
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

static void test_launches_that_nobody_waits_for_are_bounded(void **state)
{
	const struct estimate_launch at = { .process = &first, .begin_ns = 1000 };

	for (size_t i = 0; i < ESTIMATE_WAITING_MAX; i++)
		assert_true(estimate_add(*state, i % ESTIMATE_STREAMS_MAX, &at));
	assert_false(estimate_add(*state, 1, &at));
	wait_for(*state, &first, 1, false, 1000, 1000 + ESTIMATE_WAITING_MAX);
	assert_true(estimate_add(*state, 1, &at));
	assert_false(estimate_add(*state, ESTIMATE_STREAMS_MAX, &at));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_launches_share_the_time_until_their_wait_ends,
		                                begin, end),
		cmocka_unit_test_setup_teardown(test_a_wait_is_for_its_stream_and_process, begin,
		                                end),
		cmocka_unit_test_setup_teardown(test_what_is_launched_during_a_wait_is_for_the_next,
		                                begin, end),
		cmocka_unit_test_setup_teardown(
			test_a_wait_that_returns_at_once_ends_no_later_than_the_launches, begin,
			end),
		cmocka_unit_test_setup_teardown(test_launches_that_nobody_waits_for_are_bounded,
		                                begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
