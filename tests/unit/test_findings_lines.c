// SPDX-License-Identifier: MIT
/* Lines of code that findings are of. */
#include "finding_events.h"
#include "stack_events.h"

#include "report/findings/findings_lines.h"

static struct call from(struct call call, uint32_t line)
{
	call.stack = stack_of_line(line);
	return call;
}

static void assert_line(const struct finding *finding, size_t i, const char *line, uint64_t count,
                        uint64_t cost_us)
{
	assert_true(i < finding->n_lines);
	assert_string_equal(finding->lines[i].line, line);
	assert_int_equal(finding->lines[i].count, count);
	assert_int_equal(finding->lines[i].cost_ns, cost_us * 1000);
}

static void test_waits_are_of_the_lines_that_waited(void **state)
{
	const struct finding *finding;

	for (unsigned round = 0; round <= ROUNDS; round++) {
		launch_round(round);
		see(from(call_at("cudaDeviceSynchronize", round * ROUND_US + 20, 50),
		         round % 4 ? 95 : 120));
	}
	finding = found("needless_sync");
	assert_int_equal(finding->n_lines, 2);
	assert_string_equal(finding->lines[0].line, "step (train.py:95)");
	assert_in_range((int)finding->lines[0].share, 70, 80);
	assert_int_equal(finding->lines[0].count + finding->lines[1].count, finding->count);
	assert_int_equal((int)finding->walked, 100);
}

static void test_calls_without_a_stack_are_not_known(void **state)
{
	const struct finding *finding;

	for (unsigned round = 0; round < ROUNDS; round++) {
		struct call copy = lasting(
			copy_at("cudaMemcpy", round * ROUND_US, DIRECTION_H2D, 1 << 20), 50);

		see(round % 4 ? copy : from(copy, 31));
	}
	finding = found("sync_copies");
	assert_int_equal(finding->n_lines, 1);
	assert_line(finding, 0, "step (train.py:31)", ROUNDS / 4, 50 * ROUNDS / 4);
	assert_int_equal((int)finding->lines[0].share, 25);
	assert_int_equal((int)finding->walked, 25);
}

static void test_work_that_comes_late_is_of_its_calls_line(void **state)
{
	uint64_t asked[ROUNDS];
	const struct finding *finding;

	for (unsigned round = 0; round < ROUNDS; round++) {
		struct call copy = lasting(
			copy_at("cudaMemcpyAsync", round * ROUND_US, DIRECTION_H2D, 1 << 20), 50);

		asked[round] = see(from(copy, round % 2 ? 31 : 32));
	}
	for (unsigned round = 0; round < ROUNDS; round++)
		ran(copy_of(DIRECTION_H2D, ACTIVITY_MEMORY_PAGEABLE, 1 << 20), asked[round],
		    round * ROUND_US + 10, 40);
	finding = found("pageable_copies");
	assert_int_equal(finding->n_lines, 2);
	assert_line(finding, 0, "step (train.py:31)", ROUNDS / 2, 50 * ROUNDS / 2);
	assert_line(finding, 1, "step (train.py:32)", ROUNDS / 2, 50 * ROUNDS / 2);
}

static void test_work_that_comes_early_is_of_its_calls_line(void **state)
{
	const struct finding *finding;

	for (unsigned round = 0; round < ROUNDS; round++) {
		ran(copy_of(DIRECTION_H2D, ACTIVITY_MEMORY_PAGEABLE, 1 << 20), correlation + 1,
		    round * ROUND_US + 10, 30);
		see(from(lasting(copy_at("cudaMemcpyAsync", round * ROUND_US, DIRECTION_H2D,
		                         1 << 20),
		                 50),
		         33));
	}
	finding = found("pageable_copies");
	assert_int_equal(finding->n_lines, 1);
	assert_line(finding, 0, "step (train.py:33)", ROUNDS, 50 * ROUNDS);
}

static void test_many_stacks_are_never_more_than_they_are(void **state)
{
	struct finding_stacks stacks = { 0 }, other = { 0 };
	uint64_t sum = 0;

	for (uint32_t i = 0; i < 3 * FINDING_STACKS; i++) {
		finding_stack_add(&stacks, &(struct finding_stack){ stack_of_line(300), 1, 1000 });
		finding_stack_add(&stacks,
		                  &(struct finding_stack){ stack_of_line(301 + i % 40), 1, 10 });
	}
	finding_add_stacks(&other, &stacks);
	for (size_t i = 0; i < FINDING_STACKS; i++) {
		sum += other.of[i].cost_ns;
		if (other.of[i].stack == stack_of_line(300))
			assert_int_equal(other.of[i].cost_ns, 3 * FINDING_STACKS * 1000);
	}
	assert_true(sum <= other.cost_ns);
	assert_int_equal(other.cost_ns, 3 * FINDING_STACKS * 1010);
	assert_int_equal(other.of[0].cost_ns, 3 * FINDING_STACKS * 1000);
}

/* Two stacks share the one place that lighter stacks leave, each with a little at a time. */
static void test_stacks_that_alternate_displace_lighter_ones(void **state)
{
	struct finding_stacks stacks = { 0 };
	unsigned found = 0;

	for (uint32_t i = 0; i < FINDING_STACKS; i++)
		finding_stack_add(&stacks,
		                  &(struct finding_stack){ stack_of_line(301 + i), 1, 1000000 });
	for (unsigned round = 0; round < 100000; round++) {
		finding_stack_add(&stacks, &(struct finding_stack){ stack_of_line(330), 1, 50000 });
		finding_stack_add(&stacks, &(struct finding_stack){ stack_of_line(331), 1, 50000 });
	}
	for (size_t i = 0; i < FINDING_STACKS; i++) {
		const struct finding_stack *one = &stacks.of[i];

		if (one->stack != stack_of_line(330) && one->stack != stack_of_line(331))
			continue;
		assert_in_range(one->count, 99000, 100000);
		assert_int_equal(one->cost_ns, 50000 * one->count);
		found++;
	}
	assert_int_equal(found, 2);
}

/* Of work without a cost the number of cases counts. */
static void test_stacks_without_a_cost_displace_those_seen_less(void **state)
{
	struct finding_stacks stacks = { 0 };
	unsigned found = 0;

	for (uint32_t i = 0; i < FINDING_STACKS; i++)
		finding_stack_add(&stacks,
		                  &(struct finding_stack){ stack_of_line(301 + i), 20, 0 });
	for (unsigned round = 0; round < 1000; round++) {
		finding_stack_add(&stacks, &(struct finding_stack){ stack_of_line(330), 1, 0 });
		finding_stack_add(&stacks, &(struct finding_stack){ stack_of_line(331), 1, 0 });
	}
	for (size_t i = 0; i < FINDING_STACKS; i++)
		found += stacks.of[i].stack == stack_of_line(330) ||
		         stacks.of[i].stack == stack_of_line(331);
	assert_int_equal(found, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(test_waits_are_of_the_lines_that_waited),
		TEST(test_calls_without_a_stack_are_not_known),
		TEST(test_work_that_comes_late_is_of_its_calls_line),
		TEST(test_work_that_comes_early_is_of_its_calls_line),
		TEST(test_many_stacks_are_never_more_than_they_are),
		TEST(test_stacks_that_alternate_displace_lighter_ones),
		TEST(test_stacks_without_a_cost_displace_those_seen_less),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
