// SPDX-License-Identifier: MIT
#include "tests/fuzz/run_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

const char *argp_program_version = "cuscope";

void command_begin(struct command_line *line, int (*main)(int argc, char **argv), const char *name)
{
	*line = (struct command_line){ .main = main };
	command_word(line, name);
}

void command_word(struct command_line *line, const char *word)
{
	if (line->count == COMMAND_WORDS - 1)
		abort();
	line->words[line->count++] = word;
}

const char *command_file(unsigned slot, const uint8_t *data, size_t size)
{
	static char paths[2][64];
	static int fds[2];

	if (!fds[slot])
		fds[slot] = memfd_create("trace", MFD_CLOEXEC);
	if (ftruncate(fds[slot], 0) || pwrite(fds[slot], data, size, 0) != (ssize_t)size)
		abort();
	snprintf(paths[slot], sizeof(paths[slot]), "/proc/self/fd/%d", fds[slot]);
	return paths[slot];
}

/* The length of the character there, 0 where it is none to print. */
static size_t harmless(const unsigned char *at, size_t left)
{
	size_t more = *at >= 0xf0 ? 3 : *at >= 0xe0 ? 2 : *at >= 0xc0 ? 1 : 0;

	if (*at < 0x80)
		return *at == '\n' || (*at >= ' ' && *at != 0x7f);
	if (!more || more >= left || (*at == 0xc2 && at[1] < 0xa0)) /* C1 control characters */
		return 0;
	for (size_t i = 1; i <= more; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	}
	return more + 1;
}

static void check_text(const char *text, size_t size)
{
	size_t len;

	for (size_t at = 0; at < size; at += len) {
		len = harmless((const unsigned char *)text + at, size - at);
		if (!len)
			abort();
	}
}

void command_run(struct command_line *line, bool text)
{
	FILE *real_out = stdout, *real_err = stderr;
	char *words[COMMAND_WORDS], *out = NULL, *messages = NULL;
	size_t out_size = 0, messages_size = 0;
	int status;

	for (int i = 0; i < line->count; i++)
		words[i] = strdup(line->words[i]);
	words[line->count] = NULL;
	stdout = open_memstream(&out, &out_size);
	stderr = open_memstream(&messages, &messages_size);
	status = line->main(line->count, words);
	fclose(stdout);
	fclose(stderr);
	stdout = real_out;
	stderr = real_err;
	if (status != 0 && status != 1)
		abort();
	if (text)
		check_text(out, out_size);
	check_text(messages, messages_size);
	free(out);
	free(messages);
	for (int i = 0; i < line->count; i++)
		free(words[i]);
}
