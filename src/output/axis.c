// SPDX-License-Identifier: MIT
#include "output/axis.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define SECOND 1000000000ull
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

struct unit {
	uint64_t size;
	const char *name;
};

uint64_t axis_step_bytes(uint64_t most, unsigned marks)
{
	uint64_t step = 1;

	while (most / step >= marks && step < 1ull << 62)
		step *= 2;
	return step;
}

/* Above a second: what clocks count in. */
static uint64_t step_of_clock(uint64_t most, unsigned marks)
{
	static const uint64_t steps[] = {
		SECOND,      2 * SECOND,  5 * SECOND, 10 * SECOND, 15 * SECOND,
		30 * SECOND, MINUTE,      2 * MINUTE, 5 * MINUTE,  10 * MINUTE,
		15 * MINUTE, 30 * MINUTE, HOUR,       2 * HOUR,    3 * HOUR,
		6 * HOUR,    12 * HOUR,   DAY,        2 * DAY,     7 * DAY,
	};
	size_t n = sizeof(steps) / sizeof(*steps);
	uint64_t step;

	for (size_t i = 0; i < n; i++) {
		if (most / steps[i] < marks)
			return steps[i];
	}
	for (step = steps[n - 1]; most / step >= marks && step < 1ull << 62;)
		step *= 2;
	return step;
}

uint64_t axis_step_ns(uint64_t most, unsigned marks)
{
	for (uint64_t step = 1; step < SECOND; step *= 10) {
		if (most / step < marks)
			return step;
		if (most / (2 * step) < marks)
			return 2 * step;
		if (most / (5 * step) < marks)
			return 5 * step;
	}
	return step_of_clock(most, marks);
}

/* In the largest unit that is not larger than the value. */
static void add_in_units(struct buf *out, uint64_t value, const struct unit *units)
{
	const struct unit *unit = units;
	char text[48];
	size_t len;

	while (unit[1].name && value >= unit[1].size)
		unit++;
	len = (size_t)snprintf(text, sizeof(text), "%.2f", (double)value / (double)unit->size);
	while (text[len - 1] == '0')
		len--;
	if (text[len - 1] == '.')
		len--;
	buf_add(out, text, len);
	buf_puts(out, unit->name);
}

void axis_add_bytes(struct buf *out, uint64_t bytes)
{
	static const struct unit units[] = {
		{ 1, " B" },
		{ 1ull << 10, " KiB" },
		{ 1ull << 20, " MiB" },
		{ 1ull << 30, " GiB" },
		{ 1ull << 40, " TiB" },
		{ 1ull << 50, " PiB" },
		{ 0, NULL },
	};

	add_in_units(out, bytes, units);
}

void axis_add_ns(struct buf *out, uint64_t ns)
{
	static const struct unit units[] = {
		{ 1, " ns" },       { 1000, " us" }, { 1000000, " ms" }, { SECOND, " s" },
		{ MINUTE, " min" }, { HOUR, " h" },  { DAY, " d" },      { 0, NULL },
	};

	if (ns)
		add_in_units(out, ns, units);
	else
		buf_putc(out, '0');
}
