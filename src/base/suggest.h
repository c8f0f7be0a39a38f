/* SPDX-License-Identifier: MIT */
/* The nearest name to a mistyped one. */
#ifndef CUSCOPE_BASE_SUGGEST_H
#define CUSCOPE_BASE_SUGGEST_H

#include <stddef.h>

/*
 * The one of `names` that takes the fewest edits (swapped neighbours count once) to become `typed`,
 * NULL when none is near: more than a third of its letters would change.
 */
const char *suggest(const char *typed, const char *const *names, size_t count);

#endif
