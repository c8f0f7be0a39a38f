/* SPDX-License-Identifier: MIT */
/* The writers of each format. Private to src/profile. */
#ifndef CUSCOPE_PROFILE_WRITERS_H
#define CUSCOPE_PROFILE_WRITERS_H

#include "base/lines.h"
#include "profile/profile_write.h"
#include "profile/tree.h"

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

#endif
