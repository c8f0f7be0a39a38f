/* SPDX-License-Identifier: MIT */
/*
 * `cuscope completion SHELL`, and `completion words`, by which the shells ask. It stands apart from
 * what answers: option_parse() needs that part in every program that parses options, this one needs
 * the table of all commands.
 */
#include "cli/completion.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

/* Of src/cli/embedded.S */
extern const char completion_bash[], completion_zsh[], completion_fish[];

static const struct {
	const char *name, *script;
} shells[] = {
	{ "bash", completion_bash },
	{ "zsh", completion_zsh },
	{ "fish", completion_fish },
	{ NULL, NULL },
};

/* The first word: a command. */
static int offer_commands(const char *typed)
{
	const struct completion_value value = { .before = "", .typed = typed };

	for (const struct cli_command *c = cli_commands; c->name; c++)
		completion_offer(&value, c->name, c->help);
	completion_offer(&value, "help", "what a command does, and its options");
	if (*typed == '-') {
		completion_offer(&value, "--help", "the commands");
		completion_offer(&value, "--version", "the version");
	}
	return 0;
}

static int offer_shells(const char *typed)
{
	const struct completion_value value = { .before = "", .typed = typed };

	for (size_t i = 0; shells[i].name; i++)
		completion_offer(&value, shells[i].name, NULL);
	return 0;
}

/* What the command says of a word before that is wrong is not for a shell that completes. */
static int ask_command(const struct cli_command *command, char **words, size_t count)
{
	static char help[] = "--help";
	const struct completion question = { command->name, words, count };
	char *argv[4] = { (char *)command->name, help };
	int argc = 2;

	if (!strcmp(command->name, "watch") && count > 1 && words[0][0] != '-') {
		argv[1] = words[0]; /* its options are those of the tools that it names */
		argv[2] = help;
		argc = 3;
	}
	if (!freopen("/dev/null", "w", stderr))
		return EXIT_FAILURE;
	completion_ask(&question);
	return command->main(argc, argv);
}

static int answer(char **words, size_t count)
{
	if (count < 2)
		return offer_commands(count ? words[0] : "");
	if (!strcmp(words[0], "help"))
		return count == 2 ? offer_commands(words[1]) : 0;
	if (!strcmp(words[0], "completion"))
		return count == 2 ? offer_shells(words[1]) : 0;
	for (const struct cli_command *c = cli_commands; c->name; c++) {
		if (!strcmp(words[0], c->name))
			return ask_command(c, words + 1, count - 1);
	}
	return 0;
}

int cli_completion(int argc, char **argv)
{
	const char *shell = argc > 1 ? argv[1] : "";

	if (!strcmp(shell, "words"))
		return answer(argv + 2, (size_t)argc - 2);
	for (size_t i = 0; argc == 2 && shells[i].name; i++) {
		if (!strcmp(shells[i].name, shell))
			return fputs(shells[i].script, stdout) < 0 || fflush(stdout) ? EXIT_FAILURE
			                                                             : 0;
	}
	cli_say("completion: for which shell? bash, zsh or fish: source <(cuscope completion "
	        "bash)");
	return EXIT_USAGE;
}
