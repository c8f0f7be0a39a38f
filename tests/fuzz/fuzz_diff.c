// SPDX-License-Identifier: MIT
/*
 * Two traces from elsewhere side by side. A byte of settings and two of the length of the first
 * file, then both files; a mutation changes one of them from within.
 */
#include <stdint.h>
#include <string.h>

#include "cli/cli.h"
#include "report/diff/diff.h"
#include "tests/fuzz/run_command.h"
#include "tests/fuzz/trace_mutator.h"

#define SETTINGS 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

/* Of the first file. */
static size_t first_bytes(const uint8_t *data, size_t size)
{
	size_t bytes = data[1] | (size_t)data[2] << 8;

	return bytes < size - SETTINGS ? bytes : size - SETTINGS;
}

static size_t change_first(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	static uint8_t second[1 << 16], changed[1 << 16];
	size_t first = first_bytes(data, size), rest = size - SETTINGS - first, room;

	if (rest >= sizeof(second) || max - SETTINGS - rest < first)
		return size;
	room = max - SETTINGS - rest < UINT16_MAX ? max - SETTINGS - rest : UINT16_MAX;
	memcpy(second, data + SETTINGS + first, rest);
	memcpy(changed, data + SETTINGS, first);
	first = trace_mutate(changed, first, room, seed);
	memcpy(data + SETTINGS, changed, first);
	memcpy(data + SETTINGS + first, second, rest);
	data[1] = (uint8_t)first;
	data[2] = (uint8_t)(first >> 8);
	return SETTINGS + first + rest;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	if (size <= SETTINGS || max <= SETTINGS)
		return LLVMFuzzerMutate(data, size, max);
	if (seed % 8 == 0)
		data[0] = (uint8_t)(seed >> 8);
	if (seed % 2)
		return change_first(data, size, max, seed);
	return trace_mutate_behind(data, size, max, seed, SETTINGS + first_bytes(data, size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const forms[] = { "table", "csv", "json", "table" };
	struct command_line line;
	size_t first;

	if (size <= SETTINGS)
		return 0;
	first = first_bytes(data, size);
	command_begin(&line, cli_diff, "cuscope diff");
	command_word(&line, command_file(0, data + SETTINGS, first));
	command_word(&line, command_file(1, data + SETTINGS + first, size - SETTINGS - first));
	for (size_t i = 0; data[0] & 4 && i < 8 && diff_name(i); i++)
		command_word(&line, diff_name(i));
	command_word(&line, "--format");
	command_word(&line, forms[data[0] & 3]);
	if (data[0] & 8)
		command_word(&line, "--nested");
	if (data[0] & 16)
		command_word(&line, "--from=1us");
	command_run(&line, (data[0] & 3) != TABLE_FORM_CSV);
	return 0;
}
