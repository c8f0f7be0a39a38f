/* SPDX-License-Identifier: MIT */
/* Texts in the last column of a table that go on in its next rows, where people read them. */
#ifndef CUSCOPE_TABLE_WORDS_H
#define CUSCOPE_TABLE_WORDS_H

#include "base/buf.h"
#include "table/table.h"

/*
 * How many columns a line of it has beside the `before` columns of the other cells. On a terminal
 * it has what is left, elsewhere `otherwise`, and for programs all that there are.
 */
size_t words_width(const struct table *table, size_t before, size_t otherwise);

/*
 * Puts the next line of `*text`, which is not empty, in `line` and moves on behind it: up to the
 * last blank in `width`, or all of a word that is longer. A unit stays with its number. False: no
 * more is left after it.
 */
bool words_line(const char **text, size_t width, struct buf *line);

#endif
