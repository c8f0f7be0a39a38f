// SPDX-License-Identifier: MIT
#include "unwind/row_tree.h"

#include "bpf/unwind_search.h"

/* Upper nodes that have a place for each of `count` nodes. */
static uint32_t nodes_above(uint32_t count)
{
	return count ? (count + UNWIND_FAN - 1) / UNWIND_FAN : 1;
}

/* How many rows the leaf has whose first row is `first`. */
static uint32_t leaf_rows(const struct wire_row *rows, uint32_t n_rows, uint32_t first)
{
	uint32_t most = n_rows - first < UNWIND_LEAF_ROWS ? n_rows - first : UNWIND_LEAF_ROWS;

	while (most && rows[first + most - 1].address - rows[first].address > UNWIND_LEAF_SPAN)
		most--;
	return most;
}

static uint32_t count_leaves(const struct wire_row *rows, uint32_t n_rows)
{
	uint32_t count = 0;

	for (uint32_t first = 0; first < n_rows; first += leaf_rows(rows, n_rows, first))
		count++;
	return count ? count : 1;
}

uint32_t row_tree_nodes(const struct wire_row *rows, uint32_t n_rows)
{
	uint32_t leaves = count_leaves(rows, n_rows);

	return leaves > UNWIND_LEAVES_MAX ? 0 : 1 + nodes_above(leaves) + leaves;
}

static void fill_leaf(struct wire_leaf *leaf, const struct wire_row *rows, uint32_t used,
                      const uint32_t *numbers)
{
	uint16_t offset = 0, rule = 0;

	for (uint32_t i = 0; i < UNWIND_LEAF_ROWS; i++) {
		if (i < used) {
			offset = (uint16_t)(rows[i].address - rows[0].address);
			rule = (uint16_t)(numbers ? numbers[rows[i].rule] : rows[i].rule);
		}
		leaf->offset[i] = offset;
		leaf->rule[i] = rule;
	}
}

/* Place `i` of a row of upper nodes, the first of which is `nodes`. */
static void tree_point(struct wire_node *nodes, uint32_t i, uint32_t address, uint32_t below)
{
	nodes[i / UNWIND_FAN].row[i % UNWIND_FAN] = (struct wire_row){ address, below };
}

static void fill_rest(struct wire_node *nodes, uint32_t used)
{
	for (uint32_t i = used; i < nodes_above(used) * UNWIND_FAN; i++)
		tree_point(nodes, i, UNWIND_UNUSED, 0);
}

void row_tree_fill(struct wire_node *nodes, const struct wire_row *rows, uint32_t n_rows,
                   const uint32_t *numbers)
{
	uint32_t leaves = count_leaves(rows, n_rows), middle = nodes_above(leaves), first = 0;

	for (uint32_t i = 0; i < leaves; i++) {
		uint32_t used = n_rows ? leaf_rows(rows, n_rows, first) : 0;

		fill_leaf(&nodes[1 + middle + i].leaf, rows + first, used, numbers);
		tree_point(nodes + 1, i, used ? rows[first].address : 0, 1 + middle + i);
		first += used;
	}
	fill_rest(nodes + 1, leaves);
	for (uint32_t i = 0; i < middle; i++)
		tree_point(nodes, i, nodes[1 + i].row[0].address, 1 + i);
	fill_rest(nodes, middle);
}

uint32_t row_tree_find(const struct wire_node *nodes, uint32_t address)
{
	const struct wire_row *row = &nodes[0].row[unwind_search(&nodes[0], address)];
	const struct wire_leaf *leaf;

	row = &nodes[row->rule].row[unwind_search(&nodes[row->rule], address)];
	leaf = &nodes[row->rule].leaf;
	return leaf->rule[unwind_search_leaf(leaf, address - row->address)];
}
