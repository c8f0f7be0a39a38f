// SPDX-License-Identifier: MIT
/* Which calls are walked, by who records them; and that what an agent has judged so the programs
 * grant, and hardly more. */
#include "unit.h"

#include "bpf/wire_due.h"

#define SECOND   1000000000ull
#define START    (5 * SECOND)
#define PROBE_NS 900u /* what the way into the kernel takes */

static __u64 paid[2];

static int begin(void **state)
{
	paid[0] = paid[1] = 0;
	return 0;
}

/* Calls of a kind, so many `between` apart; how many were due by the one rule. */
static unsigned due(const struct wire_due *how, uint32_t kind, unsigned calls, uint64_t between)
{
	unsigned n = 0;

	for (unsigned i = 0; i < calls; i++)
		n += (unsigned)due_call(how, &paid[0], kind, START + i * between, i * 7u);
	return n;
}

static void test_launches_at_a_distance_are_all_walked(void **state)
{
	const struct wire_due how = { .call_ns = 1000000 };

	assert_int_equal(due(&how, STACK_OF_LAUNCH, 1000, 40000000), 1000);
}

static void test_a_burst_has_what_was_saved_and_no_more(void **state)
{
	const struct wire_due how = { .call_ns = 1000000 };
	unsigned n = due(&how, STACK_OF_LAUNCH, 100000, 100);

	assert_in_range(n, DUE_AHEAD / 2, DUE_AHEAD + 10);
}

static void test_without_a_distance_all_are(void **state)
{
	const struct wire_due how = { 0 };

	assert_int_equal(due(&how, STACK_OF_LAUNCH, 1000, 1), 1000);
	assert_int_equal(due(&how, STACK_OF_COPY, 1000, 1), 1000);
}

static void test_one_in_many_is_by_chance_alone(void **state)
{
	const struct wire_due how = { .one_in = 7, .call_ns = SECOND };

	assert_int_equal(due(&how, STACK_OF_COPY, 700, 1), 700); /* chance is 7 times i */
	assert_false(due_call(&how, &paid[0], STACK_OF_COPY, START, 8));
}

static void test_waits_have_their_own_rate_whatever_launches_have(void **state)
{
	const struct wire_due how = { .call_ns = 1 };

	assert_in_range(due(&how, STACK_OF_WAIT, 100000, 100), DUE_AHEAD / 2, DUE_AHEAD + 10);
}

static void test_allocations_are_walked_up_to_a_second_ahead(void **state)
{
	const struct wire_due how = { 0 };

	assert_int_equal(due(&how, STACK_OF_ALLOCATION, 20000, 1), SECOND / DUE_ALLOCATION_NS + 1);
	assert_false(due_call(&how, &paid[0], STACK_OF_FREE, START + 20000, 0));
	assert_true(due_call(&how, &paid[0], STACK_OF_FREE, START + 2 * DUE_ALLOCATION_NS, 0));
}

/* Of each that an agent asks for, a moment later. */
static void granted(const struct wire_due *how, uint32_t kind, uint64_t between)
{
	unsigned asked = 0;

	for (unsigned i = 0; i < 50000; i++) {
		uint64_t now = START + i * between + i % 3 * (between / 4);

		if (!due_call(how, &paid[0], kind, now, i * 2654435761u >> 7))
			continue;
		asked++;
		assert_true(due_asked(how, &paid[1], kind, now + PROBE_NS / (i % 5 + 1)));
	}
	assert_in_range(asked, 1, 50000);
}

static void test_what_an_agent_asks_for_by_the_rules_it_gets(void **state)
{
	const struct wire_due some = { .call_ns = 1000000 }, each = { 0 };
	static const uint64_t between[] = { 50, 3000, 99000, 1000000 };

	for (size_t i = 0; i < sizeof(between) / sizeof(*between); i++) {
		for (uint32_t kind = STACK_OF_LAUNCH; kind <= STACK_OF_FREE; kind++) {
			begin(NULL);
			granted(&some, kind, between[i]);
			begin(NULL);
			granted(&each, kind, between[i]);
		}
	}
}

static unsigned got(uint32_t kind)
{
	const struct wire_due how = { .call_ns = 1000000 };
	unsigned n = 0;

	for (unsigned i = 0; i < 200000; i++)
		n += (unsigned)due_asked(&how, &paid[1], kind, START + i);
	return n;
}

static void test_who_asks_all_the_time_gets_little_more(void **state)
{
	assert_in_range(got(STACK_OF_LAUNCH), DUE_AHEAD, DUE_AHEAD + 2);
	begin(NULL);
	assert_in_range(got(STACK_OF_WAIT), DUE_AHEAD, DUE_AHEAD + 2);
	begin(NULL);
	assert_in_range(got(STACK_OF_ALLOCATION), SECOND / DUE_ALLOCATION_NS,
	                SECOND / DUE_ALLOCATION_NS + 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_launches_at_a_distance_are_all_walked, begin),
		cmocka_unit_test_setup(test_a_burst_has_what_was_saved_and_no_more, begin),
		cmocka_unit_test_setup(test_without_a_distance_all_are, begin),
		cmocka_unit_test_setup(test_one_in_many_is_by_chance_alone, begin),
		cmocka_unit_test_setup(test_waits_have_their_own_rate_whatever_launches_have,
		                       begin),
		cmocka_unit_test_setup(test_allocations_are_walked_up_to_a_second_ahead, begin),
		cmocka_unit_test_setup(test_what_an_agent_asks_for_by_the_rules_it_gets, begin),
		cmocka_unit_test_setup(test_who_asks_all_the_time_gets_little_more, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
