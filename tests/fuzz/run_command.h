/* SPDX-License-Identifier: MIT */
/* A command of cuscope, run on the bytes of a trace within the fuzzer. */
#ifndef CUSCOPE_FUZZ_RUN_COMMAND_H
#define CUSCOPE_FUZZ_RUN_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COMMAND_WORDS 24

/* What libFuzzer's -close_fd_mask does, and keeps what is written. */
struct command_line {
	int (*main)(int argc, char **argv);
	const char *words[COMMAND_WORDS];
	int count;
};

void command_begin(struct command_line *line, int (*main)(int argc, char **argv), const char *name);
void command_word(struct command_line *line, const char *word);

/* A path under which the bytes can be read, until the process ends; slot 0 or 1. */
const char *command_file(unsigned slot, const uint8_t *data, size_t size);

/*
 * Runs it. Aborts on a status that is neither 0 nor 1, and where `text` is set on output that
 * could do something to a terminal: escape sequences, other control characters, broken UTF-8.
 */
void command_run(struct command_line *line, bool text);

#endif
