// SPDX-License-Identifier: MIT
/* Options that say which stacks are walked: --stacks, --frequency, --launch-stacks. */
#include "cli/cli.h"

#include <assert.h>
#include <string.h>

#include "base/parse.h"

#define MOST_HZ 2000

void cli_stacks_init(struct cli_stacks *stacks)
{
	*stacks = (struct cli_stacks){ .hz = CLI_STACKS_HZ,
		                       .settings = { .one_in = 1,
		                                     .call_ns = 1000000000 / CLI_STACKS_CALLS,
		                                     .blocked_ns = CLI_BLOCKED_NS } };
}

static bool stacks_take_share(const struct argp_state *state, void *to, const char *value)
{
	struct cli_stacks *stacks = to;
	struct capture_stacks *settings = &stacks->settings;
	uint64_t number;

	stacks->given = "--launch-stacks";
	settings->one_in = 1;
	settings->call_ns = 0;
	if (!strcmp(value, "all"))
		return true;
	if (!strncmp(value, "1/", 2)) {
		if (!parse_number(value + 2, UINT32_MAX, &number) || !number)
			return false;
		settings->one_in = (uint32_t)number;
		return true;
	}
	if (!parse_number(value, 1000000, &number) || !number)
		return false;
	settings->call_ns = 1000000000 / number;
	return true;
}

static bool stacks_take_hz(const struct argp_state *state, void *to, const char *value)
{
	struct cli_stacks *stacks = to;

	stacks->given = "--frequency";
	return parse_number(value, MOST_HZ, &stacks->hz) && stacks->hz;
}

static void stacks_offer_shares(const struct completion_value *value)
{
	completion_offer(value, "all", NULL);
}

static const struct option_row share_rows[] = {
	{ .title = "Stacks:", .order = 4 },
	{ "frequency", 'F', "HZ", "samples a second of each CPU (default: 49)", OPTION_TAKE,
	  .take = stacks_take_hz, .is_no = "number from 1 to 2000" },
	{ "launch-stacks", 0, "SHARE",
	  "of which launches and copies stacks are walked: all, 1/N, or so many a second of each "
	  "thread (default: 1000)",
	  OPTION_TAKE, .take = stacks_take_share,
	  .is_no = "share (all, 1/N, or a number a second from 1 to 1000000)",
	  .offer = stacks_offer_shares },
};

const struct option_group cli_stacks_options = { OPTION_ROWS(share_rows) };

/* ---- which: --stacks ------------------------------------------------------------------------- */

/* By the names' order: samples, enum stack_calls, blocked. */
#define STACKS_SAMPLES (1u << 0)
#define STACKS_CALLS   (STACK_CALLS_ALL << 1)
#define STACKS_BLOCKED (1u << 5)
#define STACKS_ALL     (STACKS_SAMPLES | STACKS_CALLS | STACKS_BLOCKED)
static_assert(STACK_CALLS_ALL == 15 && STACK_CALLS_LAUNCHES == 1, "bits by the names' order");

static const char *const kinds[] = { "samples",     "launches", "copies", "waits",
	                             "allocations", "blocked",  NULL };

static void stacks_choose(struct cli_stacks *stacks, uint32_t chosen)
{
	stacks->samples |= chosen & STACKS_SAMPLES;
	stacks->blocked |= chosen & STACKS_BLOCKED;
	stacks->calls |= (chosen & STACKS_CALLS) >> 1;
}

bool cli_take_waits(const struct argp_state *state, void *to, const char *value)
{
	struct cli_stacks *stacks = to;

	stacks->host_waits = true;
	stacks->settings.blocked_ns = CLI_WAITS_NS;
	return !value || (parse_duration_ns(value, &stacks->settings.blocked_ns) &&
	                  stacks->settings.blocked_ns);
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
	stacks_choose(stacks, STACKS_ALL);
}

void cli_stacks_cheap(struct cli_stacks *stacks)
{
	if (stacks->none || stacks->samples || stacks->blocked || stacks->calls ||
	    stacks->host_waits)
		return;
	stacks->samples = stacks->no_wakers = stacks->settings.if_any = true;
	stacks->hz = CLI_WHY_HZ;
}

static void stacks_end(const struct argp_state *state, void *into)
{
	struct cli_stacks *stacks = into;

	stacks_choose(stacks, stacks->chosen);
	if (stacks->none && (stacks->samples || stacks->blocked || stacks->calls))
		option_bad_usage(state, "--no-stacks and --stacks exclude each other");
	if (stacks->given && !stacks->samples && !stacks->blocked && !stacks->calls)
		option_bad_usage(state, "%s goes with --stacks", stacks->given);
}

static const struct option_row which_rows[] = {
	{ "stacks", 0, "LIST",
	  "whole stacks: of samples of what threads do, of where they are blocked, and of calls: "
	  "launches, copies (and sets), "
	  "waits (and copies that wait), allocations (and frees). Without LIST, which has commas "
	  "and no blanks, of all",
	  OPTION_SET, offsetof(struct cli_stacks, chosen), .least = STACKS_ALL, .words = kinds,
	  .is_no = "kind", .optional = true, .order = 4 },
	{ "no-stacks", 0, NULL, "none, which are samples otherwise, 99 a second", OPTION_YES,
	  offsetof(struct cli_stacks, none) },
	CLI_HOST_WAITS_ROW(0, CLI_WAITS_HELP "; --kernel has it on"),
	{ "no-wakers", 0, NULL,
	  "with both of these: leave out other processes that targets wait for", OPTION_YES,
	  offsetof(struct cli_stacks, no_wakers) },
};

const struct option_group cli_which_stacks_options = {
	OPTION_ROWS(which_rows),
	.parts = (const struct option_part[]){ { &cli_stacks_options, 0 }, { 0 } },
	.end = stacks_end,
};

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
