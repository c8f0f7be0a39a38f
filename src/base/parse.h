/* SPDX-License-Identifier: MIT */
/* Values that users type: durations, sizes, shares, lists. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All return false, and leave the result alone, for what is not wholly such a value. */

/* "10us", "1.5ms", "2s", "3m", "1h"; a bare number is seconds. At most about 290 years. */
bool parse_duration_ns(const char *text, uint64_t *ns);

/* "4096", "64k", "64KiB", "1.5GB", "8M": powers of 1024 either way. */
bool parse_bytes(const char *text, uint64_t *bytes);

/* "5", "2.5%": more than 0, at most 10,000. */
bool parse_percent(const char *text, double *percent);

/* A decimal number of at most `most`. */
bool parse_number(const char *text, uint64_t most, uint64_t *number);

/* "123,456": process ids, appended to *pids (realloc'ed, the caller frees). */
bool parse_pids(const char *text, int **pids, size_t *count);

/* ---- suggest ------------------------------------------------------------------------------- */

/* The nearest name to a mistyped one. */

/*
 * The one of `names` that takes the fewest edits (swapped neighbours count once) to become `typed`,
 * NULL when none is near: more than a third of its letters would change.
 */
const char *suggest(const char *typed, const char *const *names, size_t count);
