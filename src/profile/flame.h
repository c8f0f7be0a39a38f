/* SPDX-License-Identifier: MIT */
/*
 * A flame graph: each frame a box, below the one that called it, as wide as its share of all time.
 * The picture is whole without its script; with it, it can be zoomed and searched. Private to
 * src/profile.
 */
#ifndef CUSCOPE_PROFILE_FLAME_H
#define CUSCOPE_PROFILE_FLAME_H

#include "base/buf.h"
#include "profile/tree.h"
#include "profile/words.h"

struct flame {
	const struct tree *tree;
	const struct profile_info *info;
	/* With it, side 0 of the tree is before, side 1 after: colours tell what changed, and a
	 * frame is as wide as the mean of its two shares. */
	const struct profile_info *before;
	bool in_page; /* a part of a page, which has title, style and script itself */
};

void flame_draw(const struct flame *flame, struct buf *out);

/* Of pictures, and of pages around them; what the first needs of colours. */
extern const char flame_style[], flame_script[], page_style[], page_script[];
void flame_add_colours(const struct flame *flame, struct buf *out);

/* Not yet safe: for xml_add_text(). */
void flame_add_title(const struct flame *flame, struct buf *out);

/* "#f3b27a" */
const char *flame_colour(enum profile_kind kind);

#endif
