// SPDX-License-Identifier: MIT
#include "base/parse.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/vec.h"
#include "base/xalloc.h"

/* ---- suggest ------------------------------------------------------------------------------- */

#define LONGEST 63

static size_t suggest_least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Optimal string alignment distance; longer names than LONGEST are never near. */
static size_t suggest_distance(const char *a, const char *b)
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
			now[j] = suggest_least(suggest_least(before[j] + 1, now[j - 1] + 1),
			                       before[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = suggest_least(now[j], two[j - 2] + 1);
		}
	}
	return row[la % 3][lb];
}

const char *suggest(const char *typed, const char *const *names, size_t count)
{
	const char *best = NULL;
	size_t best_distance = LONGEST;

	for (size_t i = 0; i < count; i++) {
		size_t d = names[i] ? suggest_distance(typed, names[i]) : LONGEST;

		if (d < best_distance) {
			best_distance = d;
			best = names[i];
		}
	}
	return best && best_distance <= (strlen(best) + 2) / 3 ? best : NULL;
}

/* ---- parse --------------------------------------------------------------------------------- */

struct parse_unit {
	const char *name;
	double factor;
};

/* A decimal number with a unit after it; no sign, no hexadecimal, no blank before. */
static bool parse_scaled(const char *text, const struct parse_unit *units, size_t count,
                         double most, double *value)
{
	double number;
	char *end;

	if (!isdigit((unsigned char)text[0]) && text[0] != '.')
		return false;
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		return false;
	errno = 0;
	number = strtod(text, &end);
	if (errno || end == text || !isfinite(number))
		return false;
	while (*end == ' ')
		end++;
	for (size_t i = 0; i < count; i++) {
		if (strcasecmp(end, units[i].name))
			continue;
		number *= units[i].factor;
		if (number > most)
			return false;
		*value = number;
		return true;
	}
	return false;
}

bool parse_duration_ns(const char *text, uint64_t *ns)
{
	static const struct parse_unit units[] = {
		{ "", 1e9 },  { "ns", 1 },   { "us", 1e3 },   { "\xc2\xb5s", 1e3 }, { "ms", 1e6 },
		{ "s", 1e9 }, { "m", 60e9 }, { "min", 60e9 }, { "h", 3600e9 }
	};
	double value;

	if (!parse_scaled(text, units, ARRAY_SIZE(units), 9e18, &value))
		return false;
	*ns = value;
	return true;
}

bool parse_bytes(const char *text, uint64_t *bytes)
{
	static const struct parse_unit units[] = {
		{ "", 1 },        { "b", 1 },        { "k", 1024 },      { "kb", 1024 },
		{ "kib", 1024 },  { "m", 1 << 20 },  { "mb", 1 << 20 },  { "mib", 1 << 20 },
		{ "g", 1 << 30 }, { "gb", 1 << 30 }, { "gib", 1 << 30 }, { "t", 0x1p40 },
		{ "tb", 0x1p40 }, { "tib", 0x1p40 },
	};
	double value;

	if (!parse_scaled(text, units, ARRAY_SIZE(units), 9e18, &value))
		return false;
	*bytes = value;
	return true;
}

bool parse_percent(const char *text, double *percent)
{
	static const struct parse_unit units[] = { { "", 1 }, { "%", 1 } };
	double value;

	if (!parse_scaled(text, units, ARRAY_SIZE(units), 10000, &value) || value <= 0)
		return false;
	*percent = value;
	return true;
}

bool parse_number(const char *text, uint64_t most, uint64_t *number)
{
	unsigned long long value;
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || *end || value > most)
		return false;
	*number = value;
	return true;
}

bool parse_pids(const char *text, int **pids, size_t *count)
{
	char *copy = xstrdup(text), *rest = copy, *one;
	size_t total = *count;
	bool good = true;

	while (good && (one = strsep(&rest, ","))) {
		uint64_t pid;

		good = parse_number(one, 1 << 30, &pid) && pid > 0;
		if (good) {
			*pids = vec_room(*pids, total, sizeof(**pids));
			(*pids)[total++] = pid;
		}
	}
	free(copy);
	if (good)
		*count = total;
	return good;
}
