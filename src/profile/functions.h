/* SPDX-License-Identifier: MIT */
/* Time by function, whatever the stacks it is in. Private to src/profile. */
#ifndef CUSCOPE_PROFILE_FUNCTIONS_H
#define CUSCOPE_PROFILE_FUNCTIONS_H

#include "profile/tree.h"

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

#endif
