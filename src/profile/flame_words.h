/* SPDX-License-Identifier: MIT */
/* What stands in a flame graph: its title, its notes, what a frame tells. Private to src/profile.
 */
#ifndef CUSCOPE_PROFILE_FLAME_WORDS_H
#define CUSCOPE_PROFILE_FLAME_WORDS_H

#include "profile/flame.h"
#include "profile/flame_layout.h"

/* Safe text, in lines: what the profile is of, how whole it is, what is left out. */
void flame_add_notes(const struct flame *flame, const struct flame_layout *layout, struct buf *out);

/* In XML: the name, where it is from, its time and share, each in a line. */
void flame_add_about(const struct flame *flame, uint32_t node, struct buf *out);

/* As much of a name as so many pixels of a usual 12 pixel font hold: "gemm" of "void gemm<...>". */
void flame_add_short(const char *label, double pixels, struct buf *out);

#endif
