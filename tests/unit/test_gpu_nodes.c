// SPDX-License-Identifier: MIT
/* Nodes of graphs are led back to the calls that made them. */
#include "unit.h"

#include "capture/gpu/gpu_nodes.h"

static const struct stack stacks[8];

static void call(struct gpu_nodes *nodes, uint32_t tid, uint64_t begin_ns, uint64_t end_ns,
                 const struct stack *stack)
{
	const struct call one = { .begin_ns = begin_ns, .end_ns = end_ns, .stack = stack };

	gpu_nodes_call(nodes, tid, &one);
}

static void made(struct gpu_nodes *nodes, uint32_t tid, uint64_t node, uint64_t time_ns)
{
	const struct agent_node one = { .node = node, .time_ns = time_ns };

	gpu_nodes_made(nodes, &one, tid);
}

static void copied(struct gpu_nodes *nodes, uint64_t node, uint64_t original)
{
	const struct agent_node one = { .node = node, .original = original, .time_ns = 1 };

	gpu_nodes_made(nodes, &one, 0);
}

static void test_either_comes_first(void **state)
{
	struct gpu_nodes *nodes = gpu_nodes_new(NULL, 1);

	made(nodes, 7, 1, 15);
	made(nodes, 7, 2, 35);
	call(nodes, 7, 10, 20, &stacks[0]);
	call(nodes, 7, 30, 40, &stacks[1]);
	made(nodes, 7, 3, 36);
	made(nodes, 7, 4, 11);
	assert_ptr_equal(gpu_nodes_stack(nodes, 1), &stacks[0]);
	assert_ptr_equal(gpu_nodes_stack(nodes, 2), &stacks[1]);
	assert_ptr_equal(gpu_nodes_stack(nodes, 3), &stacks[1]);
	assert_ptr_equal(gpu_nodes_stack(nodes, 4), &stacks[0]);
	assert_null(gpu_nodes_stack(nodes, 5));
	gpu_nodes_free(nodes);
}

/* Of another thread, or of no call that was captured: before, between and after those that were. */
static void test_a_node_of_no_call_has_none(void **state)
{
	struct gpu_nodes *nodes = gpu_nodes_new(NULL, 1);

	made(nodes, 7, 1, 5);
	made(nodes, 7, 2, 25);
	call(nodes, 7, 10, 20, &stacks[0]);
	call(nodes, 8, 20, 30, &stacks[1]);
	made(nodes, 7, 3, 9);
	made(nodes, 7, 4, 45);
	call(nodes, 7, 30, 40, &stacks[2]);
	made(nodes, 7, 5, 29);
	for (uint64_t node = 1; node <= 5; node++)
		assert_null(gpu_nodes_stack(nodes, node));
	call(nodes, 7, 44, 46, &stacks[3]);
	assert_ptr_equal(gpu_nodes_stack(nodes, 4), &stacks[3]);
	gpu_nodes_free(nodes);
}

/* Of copies of copies, in whichever order they are told; not for ever. */
static void test_a_copy_is_where_its_original_is(void **state)
{
	struct gpu_nodes *nodes = gpu_nodes_new(NULL, 1);

	made(nodes, 7, 1, 15);
	made(nodes, 7, 2, 100); /* a copy is told of as made, too: in a call that is not captured */
	copied(nodes, 2, 1);
	copied(nodes, 3, 2);
	assert_null(gpu_nodes_stack(nodes, 3));
	call(nodes, 7, 10, 20, &stacks[0]);
	assert_ptr_equal(gpu_nodes_stack(nodes, 3), &stacks[0]);
	assert_ptr_equal(gpu_nodes_stack(nodes, 2), &stacks[0]);
	copied(nodes, 4, 5);
	copied(nodes, 5, 4);
	assert_null(gpu_nodes_stack(nodes, 4));
	copied(nodes, 6, 6);
	assert_null(gpu_nodes_stack(nodes, 6));
	gpu_nodes_free(nodes);
}

/* An update of a graph gives its nodes other originals; a number is used again. */
static void test_a_number_that_is_told_again_is_another_node(void **state)
{
	struct gpu_nodes *nodes = gpu_nodes_new(NULL, 1);

	call(nodes, 7, 10, 20, &stacks[0]);
	call(nodes, 7, 30, 40, &stacks[1]);
	made(nodes, 7, 1, 15);
	made(nodes, 7, 2, 35);
	copied(nodes, 9, 1);
	assert_ptr_equal(gpu_nodes_stack(nodes, 9), &stacks[0]);
	made(nodes, 7, 9, 100);
	copied(nodes, 9, 2);
	assert_ptr_equal(gpu_nodes_stack(nodes, 9), &stacks[1]);
	made(nodes, 7, 1, 36);
	assert_ptr_equal(gpu_nodes_stack(nodes, 1), &stacks[1]);
	made(nodes, 7, 1, 200); /* waits */
	made(nodes, 7, 1, 300);
	call(nodes, 7, 190, 210, &stacks[2]);
	assert_null(gpu_nodes_stack(nodes, 1));
	call(nodes, 7, 290, 310, &stacks[3]);
	assert_ptr_equal(gpu_nodes_stack(nodes, 1), &stacks[3]);
	gpu_nodes_free(nodes);
}

/* A node that comes long after its call, and many threads and nodes: bounded, the oldest leaves. */
static void test_the_oldest_makes_room(void **state)
{
	struct gpu_nodes *nodes = gpu_nodes_new(NULL, 1);

	for (uint64_t i = 1; i <= 10000; i++)
		call(nodes, 7, i * 100, i * 100 + 50, &stacks[i % 8]);
	made(nodes, 7, 1, 9000 * 100 + 25);
	made(nodes, 7, 2, 1000 * 100 + 25); /* that call is forgotten */
	assert_ptr_equal(gpu_nodes_stack(nodes, 1), &stacks[0]);
	assert_null(gpu_nodes_stack(nodes, 2));
	for (uint32_t tid = 1000; tid < 3000; tid++)
		made(nodes, tid, tid, 5);
	call(nodes, 1000, 1, 9, &stacks[1]);
	call(nodes, 2999, 1, 9, &stacks[1]);
	assert_null(gpu_nodes_stack(nodes, 1000));
	assert_ptr_equal(gpu_nodes_stack(nodes, 2999), &stacks[1]);
	for (uint64_t i = 0; i < GPU_NODES_MOST; i++)
		made(nodes, 5, 10000 + i, i);
	assert_null(gpu_nodes_stack(nodes, 2999));
	call(nodes, 5, 0, GPU_NODES_MOST, &stacks[2]);
	assert_ptr_equal(gpu_nodes_stack(nodes, 10000), &stacks[2]);
	assert_ptr_equal(gpu_nodes_stack(nodes, 9999 + GPU_NODES_MOST), &stacks[2]);
	gpu_nodes_free(nodes);
}

/* What one process is given is its share, and all of it is given back. */
static void test_a_budget_bounds_them(void **state)
{
	struct budget *budget = budget_new(64 << 10, 128 << 10);
	struct gpu_nodes *nodes = gpu_nodes_new(budget, 1);

	for (uint64_t i = 1; i <= 20000; i++) {
		made(nodes, 5, i, i * 10);
		call(nodes, 5, i * 10 - 1, i * 10 + 1, &stacks[3]);
	}
	assert_true(budget_used(budget) <= 64 << 10);
	assert_null(gpu_nodes_stack(nodes, 1));
	assert_ptr_equal(gpu_nodes_stack(nodes, 20000), &stacks[3]);
	gpu_nodes_free(nodes);
	assert_int_equal(budget_used(budget), 0);
	budget_free(budget);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_either_comes_first),
		cmocka_unit_test(test_a_node_of_no_call_has_none),
		cmocka_unit_test(test_a_copy_is_where_its_original_is),
		cmocka_unit_test(test_a_number_that_is_told_again_is_another_node),
		cmocka_unit_test(test_the_oldest_makes_room),
		cmocka_unit_test(test_a_budget_bounds_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
