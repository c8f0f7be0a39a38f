/* SPDX-License-Identifier: MIT */
/*
 * What a shell offers when TAB is pressed. The shells have a few lines each (src/cli/completion/),
 * which ask the program itself: `cuscope completion words WORD...`. It answers from the tables that
 * commands parse their options by, so what is offered is what is understood.
 *
 * A command's rows are met where the command hands them to option_parse(). So completion_ask() is
 * said, the command is begun, and option_parse() lets completion_answer() answer rather than
 * parsing.
 *
 * An answer is lines: "CANDIDATE<TAB>WHAT IT IS". One that begins with a colon says what the shell
 * finds better:
 *
 *     :files<TAB>.cuscope        names of files, with this ending or with any
 *     :folders                   names of folders
 *     :users                     names of users
 *     :command<TAB>INDEX         a command and its own words, from the word with this index on
 *
 * Of what other processes choose, such as their names, only that is offered which no shell can
 * obey.
 */
#ifndef CUSCOPE_CLI_COMPLETION_H
#define CUSCOPE_CLI_COMPLETION_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/option.h"

struct completion {
	const char *command;
	char **words; /* what stands after the command; the last one is to be completed */
	size_t count; /* 1 or more */
};

void completion_ask(const struct completion *question);

/* Prints the answer and ends the program, where something was asked; returns where nothing was. */
void completion_answer(const struct option_command *of);

/* ---- values -------------------------------------------------------------------------------- */

/* A value that is typed: `typed` begins it, and stands behind `before` in its word. */
struct completion_value {
	const char *before, *typed;
};

/* The values of an option, as its row says: by `offer`, of `words`, or files where it is a FILE. */
void completion_option_values(const struct option_row *row, const struct completion_value *value);

/* Those of what is no option, by its name in the usage: FILE, NAME. */
void completion_operands(const char *command, const char *name,
                         const struct completion_value *value);

/* Prints a candidate where it begins as what is typed. `text`: what it is, or NULL. */
void completion_offer(const struct completion_value *value, const char *word, const char *text);

/* For rows of options: what this machine has, and what cuscope knows. */
void completion_pids(const struct completion_value *value);
void completion_names(const struct completion_value *value);
void completion_users(const struct completion_value *value);
void completion_variables(const struct completion_value *value);
void completion_folders(const struct completion_value *value);
void completion_traces(const struct completion_value *value);
void completion_functions(const struct completion_value *value);
void completion_features(const struct completion_value *value);
void completion_sinks(const struct completion_value *value);

#endif
