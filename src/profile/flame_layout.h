/* SPDX-License-Identifier: MIT */
/* Where the boxes of a flame graph stand, and which are left out. Private to src/profile. */
#ifndef CUSCOPE_PROFILE_FLAME_LAYOUT_H
#define CUSCOPE_PROFILE_FLAME_LAYOUT_H

#include "profile/tree.h"

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

#endif
