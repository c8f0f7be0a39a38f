// SPDX-License-Identifier: MIT
/* Rows as a tree: the search finds what is there, however many there are. */
#include "unit.h"

#include "unwind/row_tree.h"

static struct wire_node *tree_of(const struct wire_row *rows, uint32_t n_rows,
                                 const uint32_t *numbers)
{
	uint32_t n = row_tree_nodes(n_rows);
	struct wire_node *nodes = malloc(n * sizeof(*nodes));

	assert_non_null(nodes);
	memset(nodes, 0xa5, n * sizeof(*nodes)); /* no place is left as it was */
	row_tree_fill(nodes, rows, n_rows, numbers);
	return nodes;
}

/* Rows at some distances, each with its own rule; found at their begin, their end and between. */
static void expect_found(uint32_t n_rows)
{
	struct wire_row *rows = malloc((n_rows + 1) * sizeof(*rows));
	struct wire_node *nodes;
	uint32_t address = 0;

	assert_non_null(rows);
	for (uint32_t i = 0; i <= n_rows; i++) {
		rows[i] = (struct wire_row){ address, i };
		address += 1 + i % 7;
	}
	nodes = tree_of(rows, n_rows, NULL);
	for (uint32_t i = 0; i < n_rows; i++) {
		assert_int_equal(row_tree_find(nodes, rows[i].address), i);
		assert_int_equal(row_tree_find(nodes, rows[i + 1].address - 1), i);
	}
	assert_int_equal(row_tree_find(nodes, UNWIND_UNUSED - 1), n_rows - 1);
	free(nodes);
	free(rows);
}

static void test_all_are_found(void **state)
{
	static const uint32_t counts[] = { 1,     2,     255,   256,    257,    511,   512,
		                           65535, 65536, 65537, 131072, 131073, 817693 };

	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		expect_found(counts[i]);
}

static void test_nodes_that_rows_take(void **state)
{
	assert_int_equal(row_tree_nodes(0), 3);
	assert_int_equal(row_tree_nodes(1), 3);
	assert_int_equal(row_tree_nodes(256), 3);
	assert_int_equal(row_tree_nodes(257), 4);
	assert_int_equal(row_tree_nodes(65536), 1 + 1 + 256);
	assert_int_equal(row_tree_nodes(65537), 1 + 2 + 257);
	assert_int_equal(row_tree_nodes(UNWIND_ROWS_MAX), 1 + 256 + 65536);
}

static void test_the_last_addresses(void **state)
{
	static const struct wire_row rows[] = { { 0, 1 }, { 0xfffffffd, 2 }, { 0xfffffffe, 3 } };
	struct wire_node *nodes = tree_of(rows, 3, NULL);

	assert_int_equal(row_tree_find(nodes, 0x80000000), 1);
	assert_int_equal(row_tree_find(nodes, 0xfffffffc), 1);
	assert_int_equal(row_tree_find(nodes, 0xfffffffd), 2);
	assert_int_equal(row_tree_find(nodes, 0xfffffffe), 3);
	free(nodes);
}

static void test_before_the_first_row_is_the_first(void **state)
{
	static const struct wire_row rows[] = { { 100, 7 }, { 200, 8 } };
	struct wire_node *nodes = tree_of(rows, 2, NULL);

	assert_int_equal(row_tree_find(nodes, 99), 7);
	assert_int_equal(row_tree_find(nodes, 200), 8);
	free(nodes);
}

static void test_rules_get_the_numbers_that_they_have_elsewhere(void **state)
{
	static const struct wire_row rows[] = { { 0, 0 }, { 16, 2 }, { 32, 1 } };
	static const uint32_t numbers[] = { 5, 1000, 3 };
	struct wire_node *nodes = tree_of(rows, 3, numbers);

	assert_int_equal(row_tree_find(nodes, 0), 5);
	assert_int_equal(row_tree_find(nodes, 16), 3);
	assert_int_equal(row_tree_find(nodes, 32), 1000);
	free(nodes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_are_found),
		cmocka_unit_test(test_nodes_that_rows_take),
		cmocka_unit_test(test_the_last_addresses),
		cmocka_unit_test(test_before_the_first_row_is_the_first),
		cmocka_unit_test(test_rules_get_the_numbers_that_they_have_elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
