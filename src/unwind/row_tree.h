/* SPDX-License-Identifier: MIT */
/*
 * A file's rows as a tree of nodes, in memory that the programs can search: root, middle ones,
 * leaves, always these three. A path is then a fixed number of steps, 25 of them, whatever the file
 * holds, and a node is what one look into a BPF map gives.
 */
#pragma once

#include <stdint.h>

#include "bpf/wire_unwind.h"

/*
 * How many nodes these rows take; 3 for none and up to UNWIND_LEAF_ROWS that lie close together.
 * `rows` are sorted, each address once, as those of frame_rows.h. 0: more than a tree has.
 */
uint32_t row_tree_nodes(const struct wire_row *rows, uint32_t n_rows);

/*
 * Fills `nodes`, the caller's, of row_tree_nodes(rows, n_rows). numbers[rule] stands in the leaves
 * in place of a row's rule; NULL: the rule itself. Both are less than 65,536.
 */
void row_tree_fill(struct wire_node *nodes, const struct wire_row *rows, uint32_t n_rows,
                   const uint32_t *numbers);

/*
 * For tests: the rule at an address less than UNWIND_UNUSED, from the base of its file, and not
 * before the first row.
 */
uint32_t row_tree_find(const struct wire_node *nodes, uint32_t address);
