// SPDX-License-Identifier: MIT
#include "profile/functions.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "profile/words.h"

/* Functions are told apart by their label, as nodes are. */
struct walk {
	const struct tree *tree;
	struct function_time *by_label; /* node 0: not seen yet */
	uint32_t *active;               /* frames of that label on the path */
	uint32_t *path;                 /* labels, by depth */
	uint32_t depth;
};

static void go_to(struct walk *walk, uint32_t node)
{
	const struct tree_node *at = &walk->tree->nodes[node];

	while (walk->depth >= at->depth)
		walk->active[walk->path[walk->depth--]]--;
	walk->depth = at->depth;
	walk->path[at->depth] = at->label;
	walk->active[at->label]++;
}

static void count(struct walk *walk, uint32_t node)
{
	uint32_t label = walk->tree->nodes[node].label;
	struct function_time *time = &walk->by_label[label];

	if (!time->node)
		time->node = node;
	for (unsigned side = 0; side < TREE_SIDES; side++) {
		time->self[side] = words_sum(time->self[side], tree_self(walk->tree, side, node));
		if (walk->active[label] == 1)
			time->total[side] =
				words_sum(time->total[side], tree_total(walk->tree, side, node));
	}
}

struct function_time *functions_of(const struct tree *tree, size_t *n)
{
	struct walk walk = { .tree = tree };

	walk.by_label = xcalloc(tree->labels.n, sizeof(*walk.by_label));
	walk.active = xcalloc(tree->labels.n, sizeof(*walk.active));
	walk.path = xcalloc(tree->deepest + 1, sizeof(*walk.path));
	for (uint32_t node = tree_next(tree, 0); node != KEEP_NONE; node = tree_next(tree, node)) {
		go_to(&walk, node);
		count(&walk, node);
	}
	*n = 0;
	for (size_t i = 0; i < tree->labels.n; i++) {
		if (walk.by_label[i].node)
			walk.by_label[(*n)++] = walk.by_label[i];
	}
	free(walk.active);
	free(walk.path);
	return walk.by_label;
}

static bool is_heavier(const struct tree *tree, uint32_t a, uint32_t b)
{
	uint64_t x = tree_self(tree, 0, a), y = tree_self(tree, 0, b);

	return x != y ? x > y : tree->nodes[a].place < tree->nodes[b].place;
}

size_t functions_heaviest_stacks(const struct tree *tree, uint32_t *nodes, size_t most)
{
	size_t n = 0;

	for (uint32_t at = 1; at < tree->n; at++) {
		size_t place = n;

		if (!tree_self(tree, 0, at))
			continue;
		while (place && is_heavier(tree, at, nodes[place - 1]))
			place--;
		if (place == most)
			continue;
		n += n < most;
		memmove(nodes + place + 1, nodes + place, (n - place - 1) * sizeof(*nodes));
		nodes[place] = at;
	}
	return n;
}
