// SPDX-License-Identifier: MIT
/* Rows as a tree: the search finds what is there, however many there are. */
#include "unit.h"

#include "unwind/row_tree.h"

static struct wire_node *tree_of(const struct wire_row *rows, uint32_t n_rows,
                                 const uint32_t *numbers)
{
	uint32_t n = row_tree_nodes(rows, n_rows);
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
		rows[i] = (struct wire_row){ address, i % 16384 };
		address += 1 + i % 7;
	}
	nodes = tree_of(rows, n_rows, NULL);
	for (uint32_t i = 0; i < n_rows; i++) {
		assert_int_equal(row_tree_find(nodes, rows[i].address), i % 16384);
		assert_int_equal(row_tree_find(nodes, rows[i + 1].address - 1), i % 16384);
	}
	assert_int_equal(row_tree_find(nodes, UNWIND_UNUSED - 1), (n_rows - 1) % 16384);
	free(nodes);
	free(rows);
}

static void test_all_are_found(void **state)
{
	static const uint32_t counts[] = { 1,   2,     255,   256,   257,    511,    512,
		                           513, 65535, 65536, 65537, 131072, 131073, 817693 };

	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		expect_found(counts[i]);
}

static uint32_t nodes_of(uint32_t n_rows, uint32_t apart)
{
	struct wire_row *rows = calloc(n_rows + 1, sizeof(*rows));
	uint32_t nodes;

	assert_non_null(rows);
	for (uint32_t i = 0; i < n_rows; i++)
		rows[i].address = i * apart;
	nodes = row_tree_nodes(rows, n_rows);
	free(rows);
	return nodes;
}

static void test_nodes_that_rows_take(void **state)
{
	assert_int_equal(nodes_of(0, 1), 3);
	assert_int_equal(nodes_of(1, 1), 3);
	assert_int_equal(nodes_of(512, 1), 3);
	assert_int_equal(nodes_of(513, 1), 4);
	assert_int_equal(nodes_of(131072, 1), 1 + 1 + 256);
	assert_int_equal(nodes_of(131073, 1), 1 + 2 + 257);
}

/* A leaf ends where its offsets do. */
static void test_nodes_of_rows_that_lie_far_apart(void **state)
{
	assert_int_equal(nodes_of(2, 0xffff), 3);
	assert_int_equal(nodes_of(2, 0x10000), 4);
	assert_int_equal(nodes_of(3, 0x8000), 4);
	assert_int_equal(nodes_of(512, 128), 3);
	assert_int_equal(nodes_of(512, 129), 4);
	assert_int_equal(nodes_of(0xffff, 0x10000), 1 + 256 + 0xffff);
}

static void test_more_leaves_than_a_tree_has(void **state)
{
	struct wire_row *rows = calloc(UNWIND_LEAVES_MAX + 1024, sizeof(*rows));
	uint32_t n = 0;

	assert_non_null(rows);
	for (; n < 1024; n++)
		rows[n].address = n; /* two leaves in the first 64 KiB */
	for (uint32_t i = 1; i < UNWIND_LEAVES_MAX - 1; i++)
		rows[n++].address = i * 0x10000 + 0x3ff;
	assert_int_equal(row_tree_nodes(rows, n), 1 + UNWIND_FAN + UNWIND_LEAVES_MAX);
	rows[n++].address = 0xfffffffe;
	assert_int_equal(row_tree_nodes(rows, n), 0);
	free(rows);
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

/* Each is found at its own address and up to the next one, over leaves and gaps. */
static void test_rows_that_lie_far_apart(void **state)
{
	static struct wire_row rows[20000];
	struct wire_node *nodes;
	uint32_t address = 0;

	for (uint32_t i = 0; i < 20000; i++) {
		rows[i] = (struct wire_row){ address, i % 16384 };
		address += i % 100 == 99 ? 1000000 : i % 100 < 50 ? 3 : 1500;
	}
	nodes = tree_of(rows, 20000, NULL);
	for (uint32_t i = 0; i < 20000; i++) {
		assert_int_equal(row_tree_find(nodes, rows[i].address), i % 16384);
		if (i)
			assert_int_equal(row_tree_find(nodes, rows[i].address - 1),
			                 (i - 1) % 16384);
	}
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
		cmocka_unit_test(test_nodes_of_rows_that_lie_far_apart),
		cmocka_unit_test(test_more_leaves_than_a_tree_has),
		cmocka_unit_test(test_the_last_addresses),
		cmocka_unit_test(test_rows_that_lie_far_apart),
		cmocka_unit_test(test_rules_get_the_numbers_that_they_have_elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
