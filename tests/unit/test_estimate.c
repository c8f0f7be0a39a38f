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
		                            .begin_ns = begin_ns };

	assert_true(estimate_add(estimate, stream, &at));
}

static void wait_for(struct estimate *estimate, const struct process *process, uint64_t stream,
                     bool all, uint64_t begin_ns, uint64_t end_ns)
{
	const struct estimate_wait wait = { process, all, stream, begin_ns, end_ns };

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
	launch(*state, &first, 7, 1, 1000);
	launch(*state, &first, 7, 2, 1200);
	wait_for(*state, &first, 7, false, 1300, 3000);
	assert_int_equal(given[1], 1000);
	assert_int_equal(given[2], 1000);
	wait_for(*state, &first, 7, false, 4000, 5000); /* for nothing */
	assert_int_equal(told, 2);
	assert_int_equal(estimate_waiting(*state), 0);
}

static void test_a_wait_is_for_its_stream_and_process(void **state)
{
	launch(*state, &first, 7, 1, 1000);
	launch(*state, &first, 8, 2, 1000);
	launch(*state, &second, 7, 3, 1000);
	wait_for(*state, &first, 7, false, 1100, 2000);
	assert_int_equal(given[1], 1000);
	assert_int_equal(told, 1);
	launch(*state, &first, 7, 4, 2000);
	wait_for(*state, &first, 0, true, 2100, 3000); /* for all of its streams */
	assert_int_equal(given[2], 2000);
	assert_int_equal(given[4], 1000);
	assert_int_equal(given[3], 0);
	assert_int_equal(estimate_waiting(*state), 1);
}

static void test_what_is_launched_during_a_wait_is_for_the_next(void **state)
{
	launch(*state, &first, 7, 1, 1000);
	launch(*state, &first, 7, 2, 1500); /* by another thread */
	wait_for(*state, &first, 7, false, 1200, 2000);
	assert_int_equal(given[1], 1000);
	assert_int_equal(given[2], 0);
	wait_for(*state, &first, 7, false, 2500, 3500);
	assert_int_equal(given[2], 2000);
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
		cmocka_unit_test_setup_teardown(test_launches_that_nobody_waits_for_are_bounded,
		                                begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
