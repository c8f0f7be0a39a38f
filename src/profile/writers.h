/* SPDX-License-Identifier: MIT */
/* The writers of each format. Private to src/profile. */
#pragma once

#include "base/buf.h"
#include "base/lines.h"
#include "profile/profile_write.h"
#include "profile/tree.h"
#include "profile/words.h"

/* Each appends to lines->pending; lines_added() after a piece. A failure is kept in `lines`. */
void folded_write(const struct profile *profile, const struct profile_info *info,
                  struct lines *lines);
void folded_write_tree(const struct tree *tree,
                       struct lines *lines); /* two numbers for two sides */
void pprof_write(const struct profile *profile, const struct profile_info *info,
                 struct lines *lines);
void speedscope_write(const struct profile *profile, const struct profile_info *info,
                      struct lines *lines);
void html_write(const struct profile *profile, const struct profile_info *info,
                struct lines *lines);
void svg_write(const struct profile *profile, const struct profile_info *info, struct lines *lines);

/* The kinds of weights that are asked for. */
static inline unsigned info_kinds(const struct profile_info *info)
{
	return info->kinds ? info->kinds & WEIGHTS_ALL : WEIGHTS_ALL;
}

/* ---- flame ---------------------------------------------------------------------------------- */

struct flame {
	const struct tree *tree;
	const struct profile_info *info;
	/* With it, side 0 of the tree is before, side 1 after: colours tell what changed, and a
	 * frame is as wide as the mean of its two shares. */
	const struct profile_info *before;
	bool in_page; /* a part of a page, which has title, style and script itself */
};

void flame_draw(const struct flame *flame, struct buf *out);

/* What the style of a picture needs of colours. */
void flame_add_colours(const struct flame *flame, struct buf *out);

/* Not yet safe: for xml_add_text(). */
void flame_add_title(const struct flame *flame, struct buf *out);
