/* SPDX-License-Identifier: MIT */
/*
 * A profile as graphs show it: frames of the same name under the same frame are one node. One tree
 * can take two profiles, to compare them. Private to src/profile.
 *
 *     tree_add(&tree, profile, 0, WEIGHTS_ALL);
 *     tree_finish(&tree);
 *     for (uint32_t node = 0; node != KEEP_NONE; node = tree_next(&tree, node)) ...
 *
 * Node 0 stands for all and has no name. Its memory is that of the stacks' frames that differ by
 * name, at some 100 bytes each.
 */
#pragma once

#include "profile/profile_private.h"

#define TREE_SIDES 2 /* profiles that are compared */

struct tree_node {
	/* These three it is found by: */
	uint32_t parent, label;
	uint32_t line;  /* text of file and line, with by_line; 0: none */
	uint32_t frame; /* of profile `side`; KEEP_NONE: stands for no frame */
	uint32_t depth;
	uint32_t first, n_children; /* in `order` */
	uint32_t place;             /* of its own in `order` */
	uint8_t kind, side;
};

struct tree_sums {
	uint64_t self[WEIGHT_KINDS], total[WEIGHT_KINDS]; /* ns */
	uint64_t count;                                   /* of samples that end here */
};

struct tree {
	const struct profile *profiles[TREE_SIDES];
	struct keep_room room;
	struct keep_texts labels;
	struct tree_node *nodes;
	struct tree_sums *sums[TREE_SIDES]; /* by node; NULL: there is no such profile */
	uint32_t *order;                    /* siblings side by side, the heaviest first */
	size_t n, cap_sums[TREE_SIDES];
	struct keep_index by_key;
	uint32_t deepest; /* levels below node 0 */
	bool by_line;     /* set before the first is added: lines of one function are apart */
};

/* `tree` is zeroed before the first, but for by_line. Weights of other kinds than `kinds` are left
 * out. */
void tree_add(struct tree *tree, const struct profile *profile, unsigned side, unsigned kinds);
void tree_finish(struct tree *tree);
void tree_free(struct tree *tree);

const char *tree_label(const struct tree *tree, uint32_t node);

/* Of all kinds. */
uint64_t tree_self(const struct tree *tree, unsigned side, uint32_t node);
uint64_t tree_total(const struct tree *tree, unsigned side, uint32_t node);

/* The next one in depth-first order: children after their parent, the heaviest first. KEEP_NONE
 * after the last. tree_skip() leaves the children out. */
uint32_t tree_next(const struct tree *tree, uint32_t node);

/* Time by function, whatever the stacks it is in. Private to src/profile. */

struct function_time {
	uint32_t node; /* one of its nodes, for name and kind */
	uint64_t self[TREE_SIDES];
	uint64_t total[TREE_SIDES]; /* a function that calls itself counts once */
};

/* Of all functions of the tree, in no order; *n of them. The caller frees them. */
struct function_time *functions_of(const struct tree *tree, size_t *n);

/* The nodes in which most time ends, the heaviest first; returns how many of `most` there are.
 * There has to be room for one more. */
size_t functions_heaviest_stacks(const struct tree *tree, uint32_t *nodes, size_t most);

/* Where the boxes of a flame graph stand, and which are left out. Private to src/profile. */

#define FLAME_LEAST_SHARE 0.001
#define FLAME_BOXES_MOST  20000 /* what a browser still zooms at once */

/* Shares of the whole picture. */
struct flame_box {
	uint32_t node;
	double x, width;
};

struct flame_layout {
	struct flame_box *boxes; /* depth-first; the first is the whole */
	size_t n;
	uint32_t deepest;
	double least;      /* share of the narrowest that is shown */
	uint64_t left_out; /* frames that are narrower */
};

/* `mean`: a frame is as wide as the mean of its shares of both sides. */
void flame_lay_out(const struct tree *tree, bool mean, struct flame_layout *layout);
void flame_layout_free(struct flame_layout *layout);
