// SPDX-License-Identifier: MIT
/* Options that several commands take: which processes, which functions. */
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/suggest.h"
#include "base/vec.h"
#include "base/xalloc.h"

/* ---- targets ------------------------------------------------------------------------------- */

enum {
	OPT_NAME = 2000,
	OPT_CGROUP,
	OPT_ALL,
	OPT_USER,
	OPT_ENV,
	OPT_KEEP_ENV,
	OPT_NO_FOLLOW,
	OPT_NO_HOLD,
	OPT_LIBRARY
};

static void add_word(const char ***words, size_t *count, const char *word)
{
	*words = vec_room(*words, *count, sizeof(**words));
	(*words)[(*count)++] = word;
}

static const struct argp_option process_options[] = {
	{ 0, 0, 0, 0, "Which processes:", 1 },
	{ "pid", 'p', "PID[,PID]", 0, "processes that already run", 0 },
	{ "name", OPT_NAME, "GLOB", 0,
	  "processes by name or by their program's file name, now and later", 0 },
	{ "cgroup", OPT_CGROUP, "PATH", 0, "processes of a cgroup (v2) and below", 0 },
	{ "all", OPT_ALL, 0, 0, "every process", 0 },
	{ 0 }
};

static const struct argp_option start_options[] = {
	{ "user", OPT_USER, "NAME", 0, "run the command as this user", 1 },
	{ "env", OPT_ENV, "NAME[=VALUE]", 0,
	  "hand this variable on to the command of --user, or with a value set it; NAME may be a "
	  "glob; "
	  "may be repeated",
	  1 },
	{ "keep-env", OPT_KEEP_ENV, 0, 0, "hand on all variables to the command of --user", 1 },
	{ "no-follow", OPT_NO_FOLLOW, 0, 0, "leave out the processes that targets start", 1 },
	{ "library", OPT_LIBRARY, "FILE", 0,
	  "hook this library, or program with the runtime linked in, before a process maps it; may "
	  "be repeated",
	  1 },
	{ "no-hold", OPT_NO_HOLD, 0, 0,
	  "do not hold the command (by ptrace) while a library that it has just loaded is hooked",
	  1 },
	{ 0 }
};

static error_t parse_processes(int key, char *arg, struct argp_state *state)
{
	struct target_choice *choice = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		choice->target.follow = true;
		choice->target.command.hold = true;
		return 0;
	case 'p':
		if (!parse_pids(arg, &choice->pids, &choice->n_pids))
			cli_bad_value(state, "-p", arg, "list of process ids (123 or 123,456)");
		choice->target.kind = TARGET_PIDS;
		choice->given |= 1u << TARGET_PIDS;
		return 0;
	case OPT_NAME:
		if (!*arg)
			cli_bad_value(state, "--name", arg, "name or pattern ('python*')");
		choice->target.glob = arg;
		choice->target.kind = TARGET_NAME;
		choice->given |= 1u << TARGET_NAME;
		return 0;
	case OPT_CGROUP:
		if (!*arg)
			cli_bad_value(state, "--cgroup", arg, "path of a cgroup");
		choice->target.cgroup = arg;
		choice->target.kind = TARGET_CGROUP;
		choice->given |= 1u << TARGET_CGROUP;
		return 0;
	case OPT_ALL:
		choice->target.kind = TARGET_ALL;
		choice->given |= 1u << TARGET_ALL;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static error_t parse_start(int key, char *arg, struct argp_state *state)
{
	struct target_choice *choice = state->input;

	switch (key) {
	case OPT_USER:
		choice->target.command.user = arg;
		return 0;
	case OPT_ENV:
		if (!*arg || *arg == '=')
			cli_bad_value(state, "--env", arg, "variable (NAME or NAME=VALUE)");
		add_word(&choice->env, &choice->n_env, arg);
		return 0;
	case OPT_KEEP_ENV:
		choice->target.command.environment.keep = true;
		return 0;
	case OPT_NO_FOLLOW:
		choice->target.follow = false;
		return 0;
	case OPT_LIBRARY:
		add_word(&choice->target.libraries, &choice->target.n_libraries, arg);
		return 0;
	case OPT_NO_HOLD:
		choice->target.command.hold = false;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

const struct argp cli_process_argp = { .options = process_options, .parser = parse_processes };
const struct argp cli_start_argp = { .options = start_options, .parser = parse_start };

int cli_target_settle(struct target_choice *choice, char **argv, struct err *err)
{
	if (argv && argv[0])
		choice->given |= 1u << TARGET_COMMAND;
	if (!choice->given)
		return err_set(err, EINVAL,
		               "what is to be traced? A command after --, -p PID, --name GLOB, "
		               "--cgroup PATH or --all");
	if (choice->given & (choice->given - 1))
		return err_set(err, EINVAL,
		               "give one kind of target: a command, -p, --name, --cgroup or --all");
	if (argv && argv[0]) {
		choice->target.kind = TARGET_COMMAND;
		choice->target.command.argv = argv;
	} else if (choice->target.command.user) {
		return err_set(err, EINVAL, "--user goes with a command after --");
	} else if (choice->n_env) {
		return err_set(err, EINVAL, "--env goes with a command after --");
	}
	if (choice->target.command.environment.keep && !choice->target.command.user)
		return err_set(
			err, EINVAL,
			"--keep-env goes with --user: without it the command has all variables");
	choice->target.command.environment.wanted = choice->env;
	choice->target.command.environment.n_wanted = choice->n_env;
	choice->target.pids = choice->pids;
	choice->target.n_pids = choice->n_pids;
	return 0;
}

/* ---- functions ----------------------------------------------------------------------------- */

enum { OPT_ONLY = 2100, OPT_SKIP, OPT_CLASS, OPT_LAYER, OPT_ALL_CALLS };

static const struct argp_option selection_options[] = {
	{ 0, 0, 0, 0, "Which functions:", 2 },
	{ "only", OPT_ONLY, "GLOB", 0,
	  "only functions whose name matches, always hooked; may be repeated", 0 },
	{ "skip", OPT_SKIP, "GLOB", 0, "not functions whose name matches; may be repeated", 0 },
	{ "class", OPT_CLASS, "LIST", 0,
	  "only functions of these classes: launch, memory, transfer, sync, stream, event, graph, "
	  "module, device, other (LIST has commas, no blanks)",
	  0 },
	{ "layer", OPT_LAYER, "LAYER", 0,
	  "driver, runtime, both, or auto (the default): launches in the driver only, the rest in "
	  "both",
	  0 },
	{ "all-calls", OPT_ALL_CALLS, "each", OPTION_ARG_OPTIONAL,
	  "also getters and polls, which tell little and are many; with --in-process those that "
	  "are called all the time are counted, and with --all-calls=each recorded one by one",
	  0 },
	{ 0 }
};

/* " (launch, memory, ... or other)" */
static void say_classes(const char *const *names)
{
	for (int i = 0; i < CLASS_COUNT; i++)
		fprintf(stderr, "%s%s", !i ? " (" : i < CLASS_COUNT - 1 ? ", " : " or ", names[i]);
	fputs(")\n", stderr);
}

static void parse_classes(const struct argp_state *state, struct selection *selection, char *list)
{
	char *rest = list, *name;

	while ((name = strsep(&rest, ","))) {
		int cls = api_class_parse(name);
		const char *names[CLASS_COUNT], *near;

		if (cls >= 0) {
			selection->classes |= 1u << cls;
			continue;
		}
		for (int i = 0; i < CLASS_COUNT; i++)
			names[i] = api_class_name(i);
		near = suggest(name, names, CLASS_COUNT);
		fprintf(stderr, "%s: --class: there is no class '%s'", state->name, name);
		if (near)
			fprintf(stderr, "; did you mean '%s'?\n", near);
		else
			say_classes(names);
		exit(EXIT_USAGE);
	}
}

static void parse_layer(const struct argp_state *state, struct selection *selection,
                        const char *arg)
{
	static const char *const names[] = { "auto", "driver", "runtime", "both" };

	for (size_t i = 0; i < 4; i++) {
		if (!strcmp(arg, names[i])) {
			selection->layers = (enum layer_choice)i;
			return;
		}
	}
	cli_bad_value(state, "--layer", arg, "layer (auto, driver, runtime or both)");
}

static error_t parse_selection(int key, char *arg, struct argp_state *state)
{
	struct selection *selection = state->input;

	switch (key) {
	case OPT_ONLY:
		add_word(&selection->only, &selection->n_only, arg);
		return 0;
	case OPT_SKIP:
		add_word(&selection->skip, &selection->n_skip, arg);
		return 0;
	case OPT_CLASS:
		parse_classes(state, selection, arg);
		return 0;
	case OPT_LAYER:
		parse_layer(state, selection, arg);
		return 0;
	case OPT_ALL_CALLS:
		if (arg && strcmp(arg, "each") != 0)
			cli_bad_value(state, "--all-calls", arg, "way to see them (each, or none)");
		selection->all_calls = true;
		selection->each_call = arg != NULL;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

const struct argp cli_selection_argp = { .options = selection_options, .parser = parse_selection };
