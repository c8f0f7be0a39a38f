// SPDX-License-Identifier: MIT
/* Nodes of graphs are led back to the calls that made them. */
#include "unit.h"

#include "capture/gpu/gpu_nodes.h"

static const struct stack stacks[8];

static void test_a_node_is_where_it_was_made(void **state)
{
	struct gpu_nodes *nodes = gpu_nodes_new(NULL, 1);

	gpu_nodes_made(nodes, 1, &stacks[0]);
	gpu_nodes_made(nodes, 2, NULL);
	assert_ptr_equal(gpu_nodes_stack(nodes, 1), &stacks[0]);
	assert_null(gpu_nodes_stack(nodes, 2));
	assert_null(gpu_nodes_stack(nodes, 3));
	gpu_nodes_free(nodes);
}

/* In whichever order they are told; a copy's own stack, of who copied it, never counts. */
static void test_a_copy_is_where_its_original_is(void **state)
{
	struct gpu_nodes *nodes = gpu_nodes_new(NULL, 1);

	gpu_nodes_made(nodes, 2, &stacks[1]);
	gpu_nodes_copied(nodes, 2, 1);
	gpu_nodes_copied(nodes, 3, 2);
	gpu_nodes_made(nodes, 3, &stacks[2]);
	assert_null(gpu_nodes_stack(nodes, 2));
	assert_null(gpu_nodes_stack(nodes, 3));
	gpu_nodes_made(nodes, 1, &stacks[0]);
	assert_ptr_equal(gpu_nodes_stack(nodes, 2), &stacks[0]);
	assert_ptr_equal(gpu_nodes_stack(nodes, 3), &stacks[0]);
	gpu_nodes_free(nodes);
}

static void test_copies_of_each_other_are_of_nobody(void **state)
{
	struct gpu_nodes *nodes = gpu_nodes_new(NULL, 1);

	gpu_nodes_made(nodes, 1, &stacks[0]);
	gpu_nodes_made(nodes, 2, &stacks[0]);
	gpu_nodes_copied(nodes, 1, 2);
	gpu_nodes_copied(nodes, 2, 1);
	assert_null(gpu_nodes_stack(nodes, 1));
	gpu_nodes_free(nodes);
}

/* A driver's numbers come again when a node is gone. */
static void test_a_number_that_comes_again_is_of_the_new_node(void **state)
{
	struct gpu_nodes *nodes = gpu_nodes_new(NULL, 1);

	gpu_nodes_made(nodes, 1, &stacks[0]);
	gpu_nodes_made(nodes, 1, &stacks[1]);
	assert_ptr_equal(gpu_nodes_stack(nodes, 1), &stacks[1]);
	gpu_nodes_free(nodes);
}

static void test_the_oldest_makes_room(void **state)
{
	struct gpu_nodes *nodes = gpu_nodes_new(NULL, 1);

	for (uint64_t number = 1; number <= GPU_NODES_MOST + 3; number++)
		gpu_nodes_made(nodes, number, &stacks[0]);
	assert_null(gpu_nodes_stack(nodes, 1));
	assert_null(gpu_nodes_stack(nodes, 3));
	assert_ptr_equal(gpu_nodes_stack(nodes, 4), &stacks[0]);
	assert_ptr_equal(gpu_nodes_stack(nodes, GPU_NODES_MOST + 3), &stacks[0]);
	gpu_nodes_free(nodes);
}

static void test_a_budget_bounds_them_and_is_given_back(void **state)
{
	struct budget *budget = budget_new(64 << 10, 128 << 10);
	struct gpu_nodes *nodes = gpu_nodes_new(budget, 7);

	for (uint64_t number = 1; number <= 4096; number++)
		gpu_nodes_made(nodes, number, &stacks[0]);
	assert_true(budget_used(budget) <= 64 << 10);
	assert_null(gpu_nodes_stack(nodes, 1));
	assert_ptr_equal(gpu_nodes_stack(nodes, 4096), &stacks[0]);
	gpu_nodes_free(nodes);
	assert_int_equal(budget_used(budget), 0);
	budget_free(budget);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_node_is_where_it_was_made),
		cmocka_unit_test(test_a_copy_is_where_its_original_is),
		cmocka_unit_test(test_copies_of_each_other_are_of_nobody),
		cmocka_unit_test(test_a_number_that_comes_again_is_of_the_new_node),
		cmocka_unit_test(test_the_oldest_makes_room),
		cmocka_unit_test(test_a_budget_bounds_them_and_is_given_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
