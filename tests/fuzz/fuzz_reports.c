// SPDX-License-Identifier: MIT
/*
 * Reports, the timeline, info and what `why` says of a trace from elsewhere. Three bytes of
 * settings, then the file, whose chunks are mutated from within.
 */
#include <stdint.h>
#include <stdio.h>

#include "cli/cli.h"
#include "report/report.h"
#include "tests/fuzz/run_command.h"
#include "tests/fuzz/trace_mutator.h"

#define SETTINGS 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	return trace_mutate_behind(data, size, max, seed, SETTINGS);
}

static void choose_part(struct command_line *line, unsigned settings)
{
	static const char *const from[] = { NULL, "1us", "2ms", "100s" };

	if (from[settings & 3]) {
		command_word(line, "--from");
		command_word(line, from[settings & 3]);
	}
	if (settings & 4)
		command_word(line, "--to=200s");
	if (settings & 8)
		command_word(line, "--pid=4242,700");
	if (settings & 16)
		command_word(line, "--kernel=*gemm*");
	if (settings & 32)
		command_word(line, "--function=cudaM*");
	if (settings & 64)
		command_word(line, "--max-events=5");
	if (settings & 128)
		command_word(line, "--failed");
}

static void report(const char *path, const uint8_t *settings)
{
	static const char *const forms[] = { "table", "csv", "json", "table" };
	static const char *const names[] = { "", ":base", ":mangled", "" };
	unsigned form = settings[1] & 3, wanted = settings[0];
	struct command_line line;
	size_t n = 0;
	char word[64];

	while (reports[n].name)
		n++;
	wanted %= (unsigned)n;
	if (reports[wanted].page && form == TABLE_FORM_CSV)
		return;
	command_begin(&line, cli_report, "cuscope report");
	command_word(&line, path);
	snprintf(word, sizeof(word), "%s%s", reports[wanted].name,
	         reports[wanted].kernel_names ? names[settings[1] >> 2 & 3] : "");
	command_word(&line, word);
	command_word(&line, "--format");
	command_word(&line, forms[form]);
	if (settings[1] & 16)
		command_word(&line, "--nested");
	if (settings[1] & 32)
		command_word(&line, "--top=2");
	if (settings[1] & 64 && !reports[wanted].page)
		command_word(&line, settings[1] & 128 ? "--sort=name:desc" : "--sort=Time");
	choose_part(&line, settings[2]);
	command_run(&line, form != TABLE_FORM_CSV);
}

static void timeline(const char *path, const uint8_t *settings)
{
	struct command_line line;

	command_begin(&line, cli_timeline, "cuscope timeline");
	command_word(&line, path);
	if (settings[1] & 1)
		command_word(&line, "--tid=4242");
	command_word(&line, settings[1] & 2 ? "--width=40" : "--width=2000");
	choose_part(&line, settings[2]);
	command_run(&line, true);
}

static void info(const char *path, const uint8_t *settings)
{
	struct command_line line;

	command_begin(&line, cli_info, "cuscope info");
	command_word(&line, path);
	if (settings[1] & 1)
		command_word(&line, "--json");
	command_run(&line, true);
}

static void why(const char *path, const uint8_t *settings)
{
	bool json = settings[1] & 1;
	struct command_line line;

	command_begin(&line, cli_why, "cuscope why");
	command_word(&line, path);
	command_word(&line, json ? "--format=json" : "--format=text");
	command_word(&line, settings[1] & 2 ? "--color=always" : "--color=never");
	if (settings[1] & 4)
		command_word(&line, path); /* two of one time */
	command_run(&line, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *path;

	if (size < SETTINGS)
		return 0;
	path = command_file(0, data + SETTINGS, size - SETTINGS);
	if (data[0] >= 0xf0)
		timeline(path, data);
	else if (data[0] >= 0xe0)
		info(path, data);
	else if (data[0] >= 0xc0)
		why(path, data);
	else
		report(path, data);
	return 0;
}
