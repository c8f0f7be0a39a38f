// SPDX-License-Identifier: MIT
#include "output/svg/axis.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"

#define SECOND 1000000000ull
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

struct axis_unit {
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
	size_t n = ARRAY_SIZE(steps);
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

/* Without the zeros at its end that say nothing. */
static void add_decimal(struct buf *out, double value, unsigned decimals)
{
	char text[48];
	size_t len = (size_t)snprintf(text, sizeof(text), "%.*f", (int)decimals, value);

	while (decimals && text[len - 1] == '0')
		len--;
	if (text[len - 1] == '.')
		len--;
	buf_add(out, text, len);
}

/* In the largest unit that is not larger than the value, exact to `exact`; 0: two decimals. */
static void add_in_units(struct buf *out, uint64_t value, uint64_t exact,
                         const struct axis_unit *units)
{
	const struct axis_unit *unit = units;
	unsigned decimals = exact ? 0 : 2;

	while (unit[1].name && value >= unit[1].size)
		unit++;
	for (uint64_t size = unit->size; exact && size > exact; size /= 10)
		decimals++;
	add_decimal(out, (double)value / (double)unit->size, decimals);
	buf_puts(out, unit->name);
}

void axis_add_bytes(struct buf *out, uint64_t bytes)
{
	static const struct axis_unit units[] = {
		{ 1, " B" },
		{ 1ull << 10, " KiB" },
		{ 1ull << 20, " MiB" },
		{ 1ull << 30, " GiB" },
		{ 1ull << 40, " TiB" },
		{ 1ull << 50, " PiB" },
		{ 0, NULL },
	};

	add_in_units(out, bytes, 0, units);
}

/* "1 h 10 min", "2 min 30 s": two units, since these are no tens of each other. */
static void add_two_units(struct buf *out, uint64_t ns)
{
	static const struct axis_unit units[] = {
		{ DAY, " d" },
		{ HOUR, " h" },
		{ MINUTE, " min" },
		{ SECOND, " s" },
	};
	const struct axis_unit *unit = units;

	while (ns < unit->size)
		unit++;
	ns += unit[1].size / 2; /* which can make it one of the unit before */
	if (unit > units && ns >= unit[-1].size)
		unit--;
	buf_u64(out, ns / unit->size);
	buf_puts(out, unit->name);
	ns = ns % unit->size / unit[1].size;
	if (!ns)
		return;
	buf_putc(out, ' ');
	buf_u64(out, ns);
	buf_puts(out, unit[1].name);
}

/* "1:23:20.5", "2:30": hours, minutes and seconds. */
static void add_clock(struct buf *out, uint64_t ns, uint64_t exact)
{
	unsigned decimals = 0;

	for (uint64_t size = SECOND; size > exact; size /= 10)
		decimals++;
	if (ns >= HOUR)
		buf_printf(out, "%llu:", (unsigned long long)(ns / HOUR));
	buf_printf(out, ns >= HOUR ? "%02u:" : "%u:", (unsigned)(ns % HOUR / MINUTE));
	if (ns % MINUTE < 10 * SECOND)
		buf_putc(out, '0');
	add_decimal(out, (double)(ns % MINUTE) / (double)SECOND, decimals);
}

void axis_add_ns(struct buf *out, uint64_t ns, uint64_t exact)
{
	static const struct axis_unit units[] = {
		{ 1, " ns" }, { 1000, " us" }, { 1000000, " ms" }, { SECOND, " s" }, { 0, NULL },
	};

	if (!ns)
		buf_putc(out, '0');
	else if (ns < MINUTE)
		add_in_units(out, ns, exact, units);
	else if (!exact || exact >= MINUTE)
		add_two_units(out, ns);
	else
		add_clock(out, ns, exact);
}
