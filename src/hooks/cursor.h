/* SPDX-License-Identifier: MIT */
/* The inside of src/hooks: where the reading of a text is, and its first mistake. */
#pragma once

#include "hooks/spec.h"

struct cursor {
	const char *text, *at;
	const struct spec_table *tables;
	struct hook_spec *spec;
	struct hook_mistake *mistake;
};

/* Tells a mistake at `where`, and returns false. */
bool cursor_wrong(struct cursor *c, const char *where, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

void cursor_skip_blanks(struct cursor *c);

/* Goes on behind `word` if it comes next. A word of letters has to end there. */
bool cursor_takes(struct cursor *c, const char *word);

/* Letters, digits and _ that come next, as many as fit; 0 where none do. Goes on behind them. */
size_t cursor_name(struct cursor *c, char *name, size_t room);

/* A number, decimal or hexadecimal; false with a mistake where none comes next. */
bool cursor_number(struct cursor *c, uint64_t most, uint64_t *number);

/* A list of words for "did you mean": ": did you mean 'ptr'?" or "". */
const char *cursor_near(const char *typed, const char *const *words, size_t n, char *room,
                        size_t bytes);

/* filter.c: what stands behind "if", up to its end. */
bool filter_read(struct cursor *c);

/* value.c: what stands in the brackets; what a filter names, added as hidden if it is new. */
bool values_read(struct cursor *c);
bool factors_read(struct cursor *c); /* what values are multiplied by: hidden ones, too */
int value_named(struct cursor *c, const char *where, const char *name);
