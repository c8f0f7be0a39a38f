// SPDX-License-Identifier: MIT
#include "base/suggest.h"

#include <string.h>

#define LONGEST 63

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Optimal string alignment distance; longer names than LONGEST are never near. */
static size_t distance(const char *a, const char *b)
{
	size_t la = strlen(a), lb = strlen(b), row[3][LONGEST + 1];

	if (la > LONGEST || lb > LONGEST)
		return LONGEST;
	for (size_t j = 0; j <= lb; j++)
		row[0][j] = j;
	for (size_t i = 1; i <= la; i++) {
		size_t *now = row[i % 3], *before = row[(i - 1) % 3], *two = row[(i + 1) % 3];

		now[0] = i;
		for (size_t j = 1; j <= lb; j++) {
			now[j] = least(least(before[j] + 1, now[j - 1] + 1),
			               before[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = least(now[j], two[j - 2] + 1);
		}
	}
	return row[la % 3][lb];
}

const char *suggest(const char *typed, const char *const *names, size_t count)
{
	const char *best = NULL;
	size_t best_distance = LONGEST;

	for (size_t i = 0; i < count; i++) {
		size_t d = names[i] ? distance(typed, names[i]) : LONGEST;

		if (d < best_distance) {
			best_distance = d;
			best = names[i];
		}
	}
	return best && best_distance <= (strlen(best) + 2) / 3 ? best : NULL;
}
