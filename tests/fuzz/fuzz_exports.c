// SPDX-License-Identifier: MIT
/*
 * Exports and profiles of a trace from elsewhere, in every format. Two bytes of settings, then the
 * file, whose chunks are mutated from within.
 */
#include <dirent.h>
#include <ftw.h>
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
#include "trace/format.h"

#define SETTINGS 2

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	return trace_mutate_behind(data, size, max, seed, SETTINGS);
}

/* For what cannot go to a stream: a file in a folder of this process's own. */
static char folder[] = "/dev/shm/fuzz_exports.XXXXXX", database[64], tree[64];

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
		snprintf(tree, sizeof(tree), "%s/tables", folder);
		atexit(remove_folder);
	}
	return database;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	return remove(path);
}

/* Names of hosts in it are what a trace says, and none may lead out of it. */
static void remove_tree(void)
{
	size_t n = 0;
	DIR *dir = opendir(folder);

	for (struct dirent *entry; (entry = readdir(dir));)
		n += entry->d_name[0] != '.' && strcmp(entry->d_name, "out.sqlite") != 0;
	closedir(dir);
	if (n > 1 || (n && access(tree, F_OK)))
		abort();
	nftw(tree, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void profile(const uint8_t *data, size_t size, unsigned format)
{
	static const char *const endings[] = { "svg", "folded", "html", "pb.gz",
		                               "speedscope.json" };
	struct command_line line;
	char path[80];

	if (size < FORMAT_MAGIC_BYTES || memcmp(data, FORMAT_MAGIC, FORMAT_MAGIC_BYTES) != 0)
		return; /* it would be a command */
	database_path();
	snprintf(path, sizeof(path), "%s/out.%s", folder, endings[format % 5]);
	command_begin(&line, cli_profile, "cuscope profile");
	command_word(&line, command_file(0, data, size));
	if (format / 5 % 2)
		command_word(&line, "--per-thread");
	if (format / 10 % 3) {
		command_word(&line, "-o");
		command_word(&line, path);
	}
	command_run(&line, format / 10 % 3 == 0);
	unlink(path);
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
	if (data[1] & 0x80) {
		profile(data + SETTINGS, size - SETTINGS, data[0]);
		return 0;
	}
	format = &sink_formats[data[0] % n];
	command_begin(&line, cli_export, "cuscope export");
	command_word(&line, command_file(0, data + SETTINGS, size - SETTINGS));
	command_word(&line, "--format");
	command_word(&line, format->name);
	if (format->whole_file) {
		command_word(&line, "--force");
		command_word(&line, "-o");
		database_path();
		command_word(&line, format->many_files ? tree : database);
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
	if (data[1] & 32 && format->many_files)
		command_word(&line, "--rank=3");
	command_run(&line, !format->binary && strcmp(format->name, "csv") != 0);
	if (format->many_files)
		remove_tree();
	return 0;
}
