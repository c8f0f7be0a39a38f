// SPDX-License-Identifier: MIT
/*
 * Exports of a trace from elsewhere, in every format. Two bytes of settings, then the file, whose
 * chunks are mutated from within.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "output/sink.h"
#include "tests/fuzz/run_command.h"
#include "tests/fuzz/trace_mutator.h"

#define SETTINGS 2

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	return trace_mutate_behind(data, size, max, seed, SETTINGS);
}

/* For what cannot go to a stream: a file in a folder of this process's own. */
static char folder[] = "/dev/shm/fuzz_exports.XXXXXX", database[64];

static void remove_folder(void)
{
	unlink(database);
	rmdir(folder);
}

static const char *database_path(void)
{
	if (!*database) {
		if (!mkdtemp(folder))
			abort();
		snprintf(database, sizeof(database), "%s/out.sqlite", folder);
		atexit(remove_folder);
	}
	return database;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sink_format *format;
	struct command_line line;
	size_t n = 0;

	if (size < SETTINGS)
		return 0;
	while (sink_formats[n].name)
		n++;
	format = &sink_formats[data[0] % n];
	command_begin(&line, cli_export, "cuscope export");
	command_word(&line, command_file(0, data + SETTINGS, size - SETTINGS));
	command_word(&line, "--format");
	command_word(&line, format->name);
	if (format->whole_file) {
		command_word(&line, "--force");
		command_word(&line, "-o");
		command_word(&line, database_path());
	}
	if (data[1] & 1)
		command_word(&line, "--failed");
	if (data[1] & 2)
		command_word(&line, "--max-events=3");
	if (data[1] & 4)
		command_word(&line, "--min-duration=2us");
	if (data[1] & 8)
		command_word(&line, "--from=2us");
	if (data[1] & 16 && !strcmp(format->name, "chrome"))
		command_word(&line, "--rank=3/8");
	if (data[1] & 16 && !strcmp(format->name, "jsonl"))
		command_word(&line, "--begin-end");
	command_run(&line, !format->binary && strcmp(format->name, "csv") != 0);
	return 0;
}
