// SPDX-License-Identifier: MIT
/* Options that say which stacks are walked: --stacks, --frequency, --launch-stacks. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/parse.h"
#include "base/suggest.h"
#include "base/xalloc.h"

#define MOST_HZ 2000

enum { OPT_STACKS = 5100, OPT_LAUNCH_STACKS, OPT_HOST_WAITS, OPT_NO_WAKERS, OPT_NO_STACKS };

static const struct argp_option share_options[] = {
	{ 0, 0, 0, 0, "Stacks:", 4 },
	{ "frequency", 'F', "HZ", 0, "samples a second of each CPU (default: 49)", 0 },
	{ "launch-stacks", OPT_LAUNCH_STACKS, "SHARE", 0,
	  "of which launches and copies stacks are walked: all, 1/N, or so many a second of each "
	  "thread (default: 1000)",
	  0 },
	{ 0 }
};

void cli_stacks_init(struct cli_stacks *stacks)
{
	*stacks = (struct cli_stacks){ .hz = CLI_STACKS_HZ,
		                       .settings = { .one_in = 1,
		                                     .call_ns = 1000000000 / CLI_STACKS_CALLS,
		                                     .blocked_ns = CLI_BLOCKED_NS } };
}

static void parse_share(const struct argp_state *state, struct capture_stacks *stacks,
                        const char *arg)
{
	uint64_t number;

	stacks->one_in = 1;
	stacks->call_ns = 0;
	if (!strcmp(arg, "all"))
		return;
	if (!strncmp(arg, "1/", 2) && parse_number(arg + 2, UINT32_MAX, &number) && number)
		stacks->one_in = (uint32_t)number;
	else if (parse_number(arg, 1000000, &number) && number)
		stacks->call_ns = 1000000000 / number;
	else
		cli_bad_value(state, "--launch-stacks", arg,
		              "share (all, 1/N, or a number a second from 1 to 1000000)");
}

static error_t parse_settings(int key, char *arg, struct argp_state *state)
{
	struct cli_stacks *stacks = state->input;

	switch (key) {
	case 'F':
		if (!parse_number(arg, MOST_HZ, &stacks->hz) || !stacks->hz)
			cli_bad_value(state, "--frequency", arg, "number from 1 to 2000");
		stacks->given = "--frequency";
		return 0;
	case OPT_LAUNCH_STACKS:
		parse_share(state, &stacks->settings, arg);
		stacks->given = "--launch-stacks";
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

const struct argp cli_stacks_argp = { .options = share_options, .parser = parse_settings };

/* ---- which: --stacks --------------------------------------------------------------------------
 */

static const char *const kinds[] = { "samples", "launches",    "copies",
	                             "waits",   "allocations", "blocked" };

static const uint32_t calls_of[ARRAY_SIZE(kinds)] = {
	0, STACK_CALLS_LAUNCHES, STACK_CALLS_COPIES, STACK_CALLS_WAITS, STACK_CALLS_ALLOCATIONS, 0
};

static const struct argp_option which_options[] = {
	{ "stacks", OPT_STACKS, "LIST", OPTION_ARG_OPTIONAL,
	  "whole stacks: of samples of what threads do, of where they are blocked, and of calls: "
	  "launches, copies (and sets), "
	  "waits (and copies that wait), allocations (and frees). Without LIST, which has commas "
	  "and no blanks, of all",
	  4 },
	{ "no-stacks", OPT_NO_STACKS, 0, 0, "none, which are samples otherwise, 99 a second", 4 },
	{ "host-waits", OPT_HOST_WAITS, "MIN", OPTION_ARG_OPTIONAL,
	  CLI_WAITS_HELP "; --kernel has it on", 4 },
	{ "no-wakers", OPT_NO_WAKERS, 0, 0,
	  "with both of these: leave out other processes that targets wait for", 4 },
	{ 0 }
};

static void bad_kind(const struct argp_state *state, const char *name) __attribute__((noreturn));

static void bad_kind(const struct argp_state *state, const char *name)
{
	const char *near = suggest(name, kinds, ARRAY_SIZE(kinds));

	fprintf(stderr, "%s: --stacks: there are no stacks of '%s'", state->name, name);
	if (near)
		fprintf(stderr, "; did you mean '%s'?", near);
	for (size_t i = 0; !near && i < ARRAY_SIZE(kinds); i++)
		fprintf(stderr, "%s%s", i ? ", " : " (", kinds[i]);
	fputs(near ? "\n" : ")\n", stderr);
	exit(EXIT_USAGE);
}

static void parse_kinds(const struct argp_state *state, struct cli_stacks *stacks, const char *list)
{
	char *copy = xstrdup(list), *rest = copy, *name;
	size_t kind;

	while ((name = strsep(&rest, ","))) {
		for (kind = 0; kind < ARRAY_SIZE(kinds) && strcmp(name, kinds[kind]); kind++)
			;
		if (kind == ARRAY_SIZE(kinds))
			bad_kind(state, name);
		stacks->samples |= kind == 0;
		stacks->blocked |= kind == ARRAY_SIZE(kinds) - 1;
		stacks->calls |= calls_of[kind];
	}
	free(copy);
}

/* "--stacks samples": the word would be taken for the command. */
static void check_next_word(const struct argp_state *state)
{
	const char *word = state->argv[state->next];
	bool kind = false;

	for (size_t i = 0; word && i < ARRAY_SIZE(kinds); i++)
		kind |= !strncmp(word, kinds[i], strlen(kinds[i]));
	if (!kind)
		return;
	fprintf(stderr, "%s: --stacks: its list follows '=': --stacks=%.60s\n", state->name, word);
	exit(EXIT_USAGE);
}

void cli_stacks_parse_waits(const struct argp_state *state, struct cli_stacks *stacks,
                            const char *arg)
{
	stacks->host_waits = true;
	stacks->settings.blocked_ns = arg ? cli_duration(state, "--host-waits", arg) : CLI_WAITS_NS;
}

void cli_stacks_wait(struct cli_stacks *stacks)
{
	if (stacks->host_waits)
		return;
	stacks->host_waits = true;
	stacks->settings.blocked_ns = CLI_WAITS_NS;
}

void cli_stacks_all(struct cli_stacks *stacks)
{
	stacks->samples = stacks->blocked = true;
	stacks->calls = STACK_CALLS_ALL;
}

void cli_stacks_cheap(struct cli_stacks *stacks)
{
	if (stacks->none || stacks->samples || stacks->blocked || stacks->calls ||
	    stacks->host_waits)
		return;
	stacks->samples = stacks->no_wakers = stacks->settings.if_any = true;
	stacks->hz = CLI_WHY_HZ;
}

static error_t parse_which(int key, char *arg, struct argp_state *state)
{
	struct cli_stacks *stacks = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = stacks;
		return 0;
	case OPT_STACKS:
		if (arg) {
			parse_kinds(state, stacks, arg);
			return 0;
		}
		check_next_word(state);
		cli_stacks_all(stacks);
		return 0;
	case OPT_HOST_WAITS:
		cli_stacks_parse_waits(state, stacks, arg);
		return 0;
	case OPT_NO_STACKS:
		stacks->none = true;
		return 0;
	case OPT_NO_WAKERS:
		stacks->no_wakers = true;
		return 0;
	case ARGP_KEY_END:
		if (stacks->none && (stacks->samples || stacks->blocked || stacks->calls)) {
			fprintf(stderr, "%s: --no-stacks and --stacks exclude each other\n",
			        state->name);
			exit(EXIT_USAGE);
		}
		if (!stacks->given || stacks->samples || stacks->blocked || stacks->calls)
			return 0;
		fprintf(stderr, "%s: %s goes with --stacks\n", state->name, stacks->given);
		exit(EXIT_USAGE);
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_child settings[] = { { &cli_stacks_argp, 0, NULL, 0 }, { 0 } };

const struct argp cli_which_stacks_argp = { .options = which_options,
	                                    .parser = parse_which,
	                                    .children = settings };

const struct capture_stacks *cli_stacks_settle(struct cli_stacks *stacks)
{
	if (!stacks->samples && !stacks->blocked && !stacks->calls && !stacks->host_waits)
		return NULL;
	stacks->settings.host_waits = stacks->host_waits;
	stacks->settings.sample_ns = stacks->samples ? 1000000000 / stacks->hz : 0;
	stacks->settings.calls = stacks->calls;
	stacks->settings.blocked = stacks->blocked;
	stacks->settings.wakers =
		stacks->host_waits && (stacks->samples || stacks->blocked) && !stacks->no_wakers;
	return &stacks->settings;
}
