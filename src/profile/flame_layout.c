// SPDX-License-Identifier: MIT
#include "profile/flame_layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

static double width_of(const struct tree *tree, bool mean, uint32_t node)
{
	double sum = 0;

	for (unsigned side = 0; side < (mean ? TREE_SIDES : 1); side++) {
		uint64_t all = tree_total(tree, side, 0);

		if (all)
			sum += (double)tree_total(tree, side, node) / (double)all;
	}
	return mean ? sum / 2 : sum;
}

/* How many nodes are at least so wide; a child is no wider than its parent. */
static size_t count_wide(const struct tree *tree, bool mean, double least)
{
	size_t n = 1;

	for (uint32_t at = tree_next(tree, 0); at != KEEP_NONE;) {
		bool wide = width_of(tree, mean, at) >= least;

		n += wide;
		at = wide ? tree_next(tree, at) : tree_skip(tree, at);
	}
	return n;
}

/* `ends`: for each level, where the next box on it begins. */
static void place_boxes(const struct tree *tree, bool mean, double *ends,
                        struct flame_layout *layout)
{
	for (uint32_t at = tree_next(tree, 0); at != KEEP_NONE;) {
		uint32_t depth = tree->nodes[at].depth;
		double width = width_of(tree, mean, at);

		if (width < layout->least || !(width > 0)) {
			ends[depth] += width;
			at = tree_skip(tree, at);
			continue;
		}
		layout->boxes[layout->n++] = (struct flame_box){ at, ends[depth], width };
		if (depth > layout->deepest)
			layout->deepest = depth;
		if (depth < tree->deepest)
			ends[depth + 1] = ends[depth];
		ends[depth] += width;
		at = tree_next(tree, at);
	}
}

void flame_lay_out(const struct tree *tree, bool mean, struct flame_layout *layout)
{
	double *ends = xcalloc(tree->deepest + 2, sizeof(*ends));
	size_t n;

	layout->least = FLAME_LEAST_SHARE;
	for (n = count_wide(tree, mean, layout->least); n > FLAME_BOXES_MOST;
	     n = count_wide(tree, mean, layout->least))
		layout->least *= 2;
	layout->boxes = xcalloc(n, sizeof(*layout->boxes));
	layout->boxes[layout->n++] = (struct flame_box){ 0, 0, 1 };
	place_boxes(tree, mean, ends, layout);
	layout->left_out = tree->n - layout->n;
	free(ends);
}

void flame_layout_free(struct flame_layout *layout)
{
	free(layout->boxes);
	memset(layout, 0, sizeof(*layout));
}
