// SPDX-License-Identifier: MIT
/* The table of commands, and what is printed without one. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/parse.h"
#include "base/xalloc.h"
#include "cli/cli.h"
#include "cli/option.h"
#include "node/account.h"
#include "node/recorder_process.h"
#include "stack/lines/reader.h"

const struct cli_command cli_commands[] = {
	{ "why", "say where the time goes, in which line, and what to change first", cli_why },
	{ "trace", "show every CUDA call of a program as it happens, and sum up", cli_trace },
	{ "record", "keep what trace would show in a file", cli_record },
	{ "profile", "show in which functions and lines the time goes", cli_profile },
	{ "info", "say what is in a trace file, and what was missed", cli_info },
	{ "report", "tables from a trace file, named as Nsight Systems names them", cli_report },
	{ "timeline", "when each thread was doing what, of a trace file", cli_timeline },
	{ "diff", "two trace files side by side, with the change and its worth", cli_diff },
	{ "export", "write a recorded trace in the format of another tool", cli_export },
	{ "top", "show what processes do with CUDA at the moment, on a screen", cli_top },
	{ "memleak", "watch live GPU memory: how old it is, and where it was allocated",
	  cli_memleak },
	{ "launches", "count launches by kernel as they happen, in the kernel", cli_launches },
	{ "bandwidth", "sum up copies by direction as they happen, in the kernel", cli_bandwidth },
	{ "watch", "several of these three at once", cli_watch },
	{ "agent", "serve metrics of all processes to Prometheus, as a daemon", cli_agent },
	{ "probes", "list the functions that would be hooked, and where", cli_probes },
	{ "doctor", "check what this machine allows, and say what to do about the rest",
	  cli_doctor },
	{ NULL, NULL, NULL }
};

const char *argp_program_version = "cuscope " CUSCOPE_VERSION;

static void print_help(FILE *out)
{
	fputs("cuscope shows what a program does with its NVIDIA GPU, without changing it.\n\n"
	      "usage: cuscope COMMAND [OPTION...]\n\n",
	      out);
	for (const struct cli_command *c = cli_commands; c->name; c++)
		fprintf(out, "  %-9s  %s\n", c->name, c->help);
	fputs("\n  sudo cuscope why -p 1234               why it is slow: the one thing to change\n"
	      "  sudo cuscope trace -- ./app             a command, from its first call\n"
	      "  sudo cuscope trace -p 1234 --duration 10s   a process that already runs\n"
	      "\n'cuscope COMMAND --help' tells more; --version prints the version.\n",
	      out);
}

static int unknown_command(const char *typed)
{
	const char *names[ARRAY_SIZE(cli_commands)], *near;
	size_t count = 0;

	for (const struct cli_command *c = cli_commands; c->name; c++)
		names[count++] = c->name;
	near = suggest(typed, names, count);
	if (near)
		cli_say("there is no command '%s'; did you mean '%s'?", typed, near);
	else
		cli_say("there is no command '%s'; see 'cuscope --help'", typed);
	return EXIT_USAGE;
}

static int run_command(const struct cli_command *command, int argc, char **argv)
{
	argv[0] = xasprintf("cuscope %s", command->name); /* what messages and --help begin with */
	return command->main(argc, argv);
}

/* A standard stream that is closed would be the first file opened: output would go into that. */
static void fill_standard_streams(void)
{
	AT_END(at_end_close) int fd;

	while ((fd = open("/dev/null", O_RDWR)) >= 0 && fd <= STDERR_FILENO)
		;
}

/*
 * `cuscope completion SHELL`, and `completion words`, by which the shells ask. It stands apart from
 * what answers: option_parse() needs that part in every program that parses options, this one needs
 * the table of all commands.
 */

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

/* for shells: --help does not list it */
static int cli_completion(int argc, char **argv)
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

int main(int argc, char **argv)
{
	const char *typed = argc > 1 ? argv[1] : NULL;

	if (argc == 1 && !strcmp(argv[0], READER_NAME))
		reader_main(WORKER_SOCKET); /* which cuscope has started, see there */
	fill_standard_streams();
	if (argc == 1 && !strcmp(argv[0], RECORDER_NAME))
		return recorder_process_main();
	if (argc > 1 && !strcmp(argv[0], ACCOUNT_NAME))
		return cli_account(argc, argv);
	if (!typed) {
		print_help(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(typed, "help") && argc > 2) { /* "help trace" is "trace --help" */
		typed = argv[2];
		argv[2] = "--help";
	} else if (!strcmp(typed, "help") || !strcmp(typed, "--help") || !strcmp(typed, "-h") ||
	           !strcmp(typed, "-?")) {
		print_help(stdout);
		return 0;
	}
	if (!strcmp(typed, "--version") || !strcmp(typed, "-V") || !strcmp(typed, "version")) {
		puts(argp_program_version);
		return 0;
	}
	if (!strcmp(typed, "completion"))
		return cli_completion(argc - 1, argv + 1);
	for (const struct cli_command *c = cli_commands; c->name; c++) {
		if (!strcmp(typed, c->name))
			return run_command(c, argc - 1, argv + 1);
	}
	return unknown_command(typed);
}
