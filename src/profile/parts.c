// SPDX-License-Identifier: MIT
/*
 * Frames are replaced by what they turned out to be in their source: the tree of nodes is gone
 * through from the outside, and what changes gets nodes of its own. The old ones stay, and nothing
 * leads to them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "profile/profile_private.h"

/* What stands for an old node, and the frames of a stack down to there: so many, or fewer. */
struct successor {
	uint32_t node, depth;
};

/* The node that stands for an old one, below the one that stands for its parent. */
static uint32_t replace(struct profile *profile, struct successor *by_node, uint32_t node)
{
	static const struct successor none = { .node = KEEP_NONE };
	const struct profile_node old = profile->nodes[node];
	const struct successor *parent = old.parent == KEEP_NONE ? &none : &by_node[old.parent];
	const struct stack_frame *from =
		old.frame < profile->cap_sources ? profile->sources[old.frame] : NULL;
	uint32_t at = parent->node;

	by_node[node].depth = parent->depth + 1;
	if (!from || !from->n_parts || parent->depth + from->n_parts > STACK_PARTED_DEPTH)
		return at == old.parent ? node : profile_keep_node(profile, at, old.frame);
	by_node[node].depth = parent->depth + (uint32_t)from->n_parts;
	for (size_t i = from->n_parts; i--;) {
		at = profile_keep_node(profile, at, profile_keep_frame(profile, from->parts[i]));
		if (at == KEEP_NONE)
			break;
	}
	return at;
}

static bool has_parts(const struct profile *profile)
{
	for (size_t i = 0; i < profile->cap_sources; i++)
		if (profile->sources[i] && profile->sources[i]->n_parts)
			return true;
	return false;
}

/* Stacks that differed by their places in a function may be the same by now. */
static void replace_rows(struct profile *profile, const struct successor *by_node)
{
	struct profile_row *rows = profile->rows;
	size_t n = profile->n_rows;

	keep_index_free(&profile->rows_by);
	profile->rows = NULL;
	profile->n_rows = profile->cap_rows = 0;
	for (size_t i = 0; i < n; i++) {
		struct profile_row_key key = rows[i].key;
		struct profile_row *row;

		key.node = by_node[key.node].node;
		row = profile_keep_row(profile, &key);
		if (!row)
			row = &profile->rows[PROFILE_ROW_NOT_KEPT];
		for (int kind = 0; kind < WEIGHT_KINDS; kind++) {
			row->sums.ns[kind] += rows[i].sums.ns[kind];
			row->sums.count[kind] += rows[i].sums.count[kind];
		}
	}
	free(rows);
}

void profile_take_parts(struct profile *profile)
{
	size_t n = profile->n_nodes, most = profile->room.most;
	struct successor *by_node;

	if (!has_parts(profile))
		return;
	by_node = xmalloc(n * sizeof(*by_node));
	for (size_t i = 0; i < n; i++) {
		by_node[i].node = replace(profile, by_node, (uint32_t)i);
		if (by_node[i].node == KEEP_NONE) /* no room: it stays what it was */
			by_node[i].node = (uint32_t)i;
	}
	profile->room.most = SIZE_MAX; /* the same rows, or fewer */
	replace_rows(profile, by_node);
	profile->room.most = most > profile->room.used ? most : profile->room.used;
	free(by_node);
	free(profile->sources);
	profile->sources = NULL;
	profile->cap_sources = 0;
}
