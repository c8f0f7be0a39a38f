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
