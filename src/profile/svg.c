// SPDX-License-Identifier: MIT
/* A profile as one picture that a browser lets one zoom and search: see flame.h. */
#include "profile/flame.h"
#include "profile/writers.h"

void svg_write(const struct profile *profile, const struct profile_info *info, struct lines *lines)
{
	struct tree tree = { 0 };
	struct flame flame = { .tree = &tree, .info = info };

	tree_add(&tree, profile, 0, info_kinds(info));
	tree_finish(&tree);
	flame_draw(&flame, &lines->pending);
	lines_added(lines, NULL);
	tree_free(&tree);
}
