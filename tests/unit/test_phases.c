// SPDX-License-Identifier: MIT
/* Steps of which an account has a part: they are counted, and as long, as they were. */
#include "unit.h"

#include "../../src/account/phases.c"

#define STEP_NS 10000000ull

static uint64_t begins[] = { 0, STEP_NS, 2 * STEP_NS, 3 * STEP_NS, 4 * STEP_NS };
static uint8_t apart[4];
static struct steps steps = {
	.how = STEPS_RANGES, .n = 4, .begin_ns = begins, .apart = apart, .median_ns = STEP_NS
};

static struct phase gather(const struct account *account, enum phase_kind kind)
{
	struct fact_span spans[6];
	struct looker looker = { .account = account, .steps = &steps, .spans = spans };
	struct phase phase = { .kind = kind };

	phase_gather(&looker, &phase);
	return phase;
}

static void test_steps_outside_of_the_account_are_not_counted(void **state)
{
	const struct account account = { .first_ns = 15000000,
		                         .begin_ns = 15000000,
		                         .end_ns = 35000000 };
	struct phase phase = gather(&account, PHASE_STEPS);
	size_t n;

	assert_int_equal(phase.n_steps, 3);
	assert_int_equal(phase.ns, 20000000);
	assert_int_equal(phase.steps_ns / phase.n_steps, STEP_NS);
	assert_int_equal(steps_within(&steps, account.begin_ns, account.end_ns, &n), 20000000);
	assert_int_equal(n, 3);
}

/* "Apart: 1 of 3 steps" is one that is there. */
static void test_a_step_that_is_apart_and_elsewhere_is_not_told(void **state)
{
	const struct account account = { .first_ns = 15000000,
		                         .begin_ns = 15000000,
		                         .end_ns = 35000000 };
	struct phase phase;

	apart[0] = STEP_LONG;
	assert_int_equal(gather(&account, PHASE_LONG).n_steps, 0);
	apart[0] = STEP_USUAL;
	apart[1] = STEP_LONG;
	phase = gather(&account, PHASE_LONG);
	assert_int_equal(phase.n_steps, 1);
	assert_int_equal(phase.ns, 5000000);
	assert_int_equal(phase.steps_ns, STEP_NS);
	apart[1] = STEP_USUAL;
}

static void test_of_all_steps_nothing_may_lie_in_the_account(void **state)
{
	size_t n = 1;

	assert_int_equal(steps_within(&steps, 50000000, 60000000, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(steps_within(&steps, 0, 60000000, &n), 4 * STEP_NS);
	assert_int_equal(n, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps_outside_of_the_account_are_not_counted),
		cmocka_unit_test(test_a_step_that_is_apart_and_elsewhere_is_not_told),
		cmocka_unit_test(test_of_all_steps_nothing_may_lie_in_the_account),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
