// SPDX-License-Identifier: MIT
#include "unwind/python_lines.h"

#include <stdbool.h>

/* Pairs of how far the instruction goes and how far the line does. */
static int64_t line_of_lnotab(const uint8_t *table, size_t bytes, int64_t line,
                              uint32_t instruction)
{
	uint64_t at = 0;

	for (size_t i = 0; i + 1 < bytes; i += 2) {
		at += table[i];
		if (at > instruction)
			break;
		line += (int8_t)table[i + 1];
	}
	return line;
}

/* The same, with stretches that are of no line (-128), and in bytes. */
static int64_t line_of_linetable(const uint8_t *table, size_t bytes, int64_t line,
                                 uint32_t instruction)
{
	uint64_t end = 0, place = (uint64_t)instruction * 2;
	int64_t told = line;

	for (size_t i = 0; i + 1 < bytes; i += 2) {
		int8_t step = (int8_t)table[i + 1];
		uint64_t begin = end;

		end += table[i];
		if (step != -128) {
			line += step;
			told = line;
		}
		if (end > begin && place < end)
			return told;
	}
	return told;
}

/* 6 bits a byte, the lowest first; the 7th bit: more follow. */
static uint32_t read_number(const uint8_t *table, size_t bytes, size_t *at)
{
	uint32_t value = 0;

	for (unsigned shift = 0; *at < bytes; shift += 6) {
		uint8_t byte = table[(*at)++];

		if (shift < 32)
			value |= (uint32_t)(byte & 63) << shift;
		if (!(byte & 64))
			break;
	}
	return value;
}

static int32_t read_signed(const uint8_t *table, size_t bytes, size_t *at)
{
	uint32_t value = read_number(table, bytes, at);

	return value & 1 ? -(int32_t)(value >> 1) : (int32_t)(value >> 1);
}

/* How far the line goes with one entry, whose code has been read; moves behind it. */
static int32_t location_step(unsigned code, const uint8_t *table, size_t bytes, size_t *at)
{
	int32_t step = 0;

	if (code == 15) /* no location */
		return 0;
	if (code == 14) { /* in full: line, lines it spans, columns */
		step = read_signed(table, bytes, at);
		for (int i = 0; i < 3; i++)
			read_number(table, bytes, at);
	} else if (code == 13) { /* without columns */
		step = read_signed(table, bytes, at);
	} else if (code >= 10) { /* a line or two further, columns in two bytes */
		step = (int32_t)code - 10;
		*at += 2;
	} else {
		*at += 1;
	}
	return step;
}

static int64_t line_of_locations(const uint8_t *table, size_t bytes, int64_t line,
                                 uint32_t instruction)
{
	uint64_t end = 0;
	size_t at = 0;

	while (at < bytes) {
		uint8_t head = table[at++];

		end += (head & 7) + 1;
		line += location_step(head >> 3 & 15, table, bytes, &at);
		if (instruction < end)
			break;
	}
	return line;
}

uint32_t python_line_of(enum python_lines kind, const uint8_t *table, size_t bytes,
                        uint32_t first_line, uint32_t instruction)
{
	int64_t line;

	if (kind == PYTHON_LNOTAB)
		line = line_of_lnotab(table, bytes, first_line, instruction);
	else if (kind == PYTHON_LINETABLE)
		line = line_of_linetable(table, bytes, first_line, instruction);
	else
		line = line_of_locations(table, bytes, first_line, instruction);
	return line > 0 && line <= UINT32_MAX ? (uint32_t)line : first_line;
}
