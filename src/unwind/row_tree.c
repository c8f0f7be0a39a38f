// SPDX-License-Identifier: MIT
#include "unwind/row_tree.h"

#include "bpf/unwind_search.h"

/* Nodes that have a place for each of `count` things. */
static uint32_t nodes_for(uint32_t count)
{
	return count ? (count + UNWIND_FAN - 1) / UNWIND_FAN : 1;
}

uint32_t row_tree_nodes(uint32_t n_rows)
{
	uint32_t leaves = nodes_for(n_rows);

	return 1 + nodes_for(leaves) + leaves;
}

static void fill_rest(struct wire_node *node, uint32_t used)
{
	for (uint32_t i = used; i < UNWIND_FAN; i++)
		node->row[i] = (struct wire_row){ .address = UNWIND_UNUSED };
}

static uint32_t used_of(uint32_t count, uint32_t first)
{
	return count - first < UNWIND_FAN ? count - first : UNWIND_FAN;
}

static void fill_leaf(struct wire_node *node, const struct wire_row *rows, uint32_t used,
                      const uint32_t *numbers)
{
	for (uint32_t i = 0; i < used; i++) {
		node->row[i] = rows[i];
		if (numbers)
			node->row[i].rule = numbers[rows[i].rule];
	}
	fill_rest(node, used);
}

/* Nodes above `count` others, the first of which has the number `below`. */
static void fill_upper(struct wire_node *nodes, uint32_t at, uint32_t below, uint32_t count)
{
	for (uint32_t first = 0; first < count; first += UNWIND_FAN, at++) {
		uint32_t used = used_of(count, first);

		for (uint32_t i = 0; i < used; i++) {
			uint32_t number = below + first + i;

			nodes[at].row[i] =
				(struct wire_row){ nodes[number].row[0].address, number };
		}
		fill_rest(&nodes[at], used);
	}
}

void row_tree_fill(struct wire_node *nodes, const struct wire_row *rows, uint32_t n_rows,
                   const uint32_t *numbers)
{
	uint32_t leaves = nodes_for(n_rows), middle = nodes_for(leaves);

	for (uint32_t i = 0; i < leaves; i++) {
		uint32_t first = i * UNWIND_FAN;

		fill_leaf(&nodes[1 + middle + i], rows + first, used_of(n_rows, first), numbers);
	}
	fill_upper(nodes, 1, 1 + middle, leaves);
	fill_upper(nodes, 0, 1, middle);
}

uint32_t row_tree_find(const struct wire_node *nodes, uint32_t address)
{
	uint32_t number = nodes[0].row[unwind_search(&nodes[0], address)].rule;

	number = nodes[number].row[unwind_search(&nodes[number], address)].rule;
	return nodes[number].row[unwind_search(&nodes[number], address)].rule;
}
