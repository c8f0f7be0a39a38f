// SPDX-License-Identifier: MIT
/* Options that several commands take: which processes, which functions, and how much of it. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/wire.h"
#include "base/parse.h"
#include "base/xalloc.h"
#include "cli/cli.h"
#include "output/sink.h"

/* ---- targets ------------------------------------------------------------------------------- */

static void target_give(struct target_choice *choice, enum target_kind kind)
{
	choice->target.kind = kind;
	choice->given |= 1u << kind;
}

static bool target_take_pids(const struct argp_state *state, void *to, const char *value)
{
	struct target_choice *choice = to;

	target_give(choice, TARGET_PIDS);
	return parse_pids(value, &choice->pids, &choice->n_pids);
}

static bool target_take_name(const struct argp_state *state, void *to, const char *value)
{
	struct target_choice *choice = to;

	target_give(choice, TARGET_NAME);
	choice->target.glob = value;
	return *value;
}

static bool target_take_cgroup(const struct argp_state *state, void *to, const char *value)
{
	struct target_choice *choice = to;

	target_give(choice, TARGET_CGROUP);
	choice->target.cgroup = value;
	return *value;
}

static bool target_take_all(const struct argp_state *state, void *to, const char *value)
{
	target_give(to, TARGET_ALL);
	return true;
}

static bool target_take_variable(const struct argp_state *state, void *to, const char *value)
{
	struct target_choice *choice = to;

	option_add_text(&choice->env, &choice->n_env, value);
	return *value && *value != '=';
}

static void target_begin(void *into)
{
	struct target_choice *choice = into;

	choice->target.follow = true;
	choice->target.command.hold = true;
}

static const struct option_row process_rows[] = {
	{ .title = "Which processes:", .order = 1 },
	{ "pid", 'p', "PID[,PID]", "processes that already run", OPTION_TAKE,
	  .take = target_take_pids, .is_no = "list of process ids (123 or 123,456)",
	  .offer = completion_pids, .list = true },
	{ "name", 0, "GLOB", "processes by name or by their program's file name, now and later",
	  OPTION_TAKE, .take = target_take_name, .is_no = "name or pattern ('python*')",
	  .offer = completion_names },
	{ "cgroup", 0, "PATH", "processes of a cgroup (v2) and below", OPTION_TAKE,
	  .take = target_take_cgroup, .is_no = "path of a cgroup", .offer = completion_folders },
	{ "all", 0, NULL, "every process", OPTION_TAKE, .take = target_take_all },
	{ "rank", 0, "N", "processes of this rank (RANK and the like of their environments)",
	  OPTION_TEXT, offsetof(struct target_choice, whose.rank) },
	{ "job", 0, "ID", "processes of this job of Slurm's", OPTION_TEXT,
	  offsetof(struct target_choice, whose.job) },
	{ "container", 0, "ID",
	  "processes of a container: its id, four characters will do, or name", OPTION_TEXT,
	  offsetof(struct target_choice, whose.container) },
	{ "pod", 0, "NAMESPACE/NAME", "processes of a pod", OPTION_TEXT,
	  offsetof(struct target_choice, whose.pod) },
	{ "gpu-of", 0, "GPU", "processes that use this GPU: its number, or UUID", OPTION_TEXT,
	  offsetof(struct target_choice, whose.gpu) },
};

/* What is asked for by name is found when all else is right. */
static void target_end(const struct argp_state *state, void *into)
{
	struct target_choice *choice = into;

	if (!cli_whose_given(&choice->whose))
		return;
	if (cli_whose_is_empty(&choice->whose))
		option_bad_usage(state, "--rank, --job, --container, --pod and --gpu-of want a "
		                        "name: one that is empty would be all without one");
	if (choice->given)
		option_bad_usage(state, "--rank, --job, --container, --pod and --gpu-of choose "
		                        "processes that run: they go with each other, and with no "
		                        "other target");
	target_give(choice, TARGET_PIDS);
}

const struct option_group cli_process_options = { OPTION_ROWS(process_rows), .begin = target_begin,
	                                          .end = target_end };

static const struct option_row start_rows[] = {
	{ "user", 0, "NAME", "run the command as this user", OPTION_TEXT,
	  offsetof(struct target_choice, target.command.user), .offer = completion_users,
	  .order = 1 },
	{ "env", 0, "NAME[=VALUE]",
	  "hand this variable on to the command of --user, or with a value set it; NAME may be a "
	  "glob; may be repeated",
	  OPTION_TAKE, .take = target_take_variable, .is_no = "variable (NAME or NAME=VALUE)",
	  .offer = completion_variables },
	{ "keep-env", 0, NULL, "hand on all variables to the command of --user", OPTION_YES,
	  offsetof(struct target_choice, target.command.environment.keep) },
	{ "no-follow", 0, NULL, "leave out the processes that targets start", OPTION_NO,
	  offsetof(struct target_choice, target.follow) },
	{ "library", 0, "FILE",
	  "hook this library, or program with the runtime linked in, before a process maps it; may "
	  "be repeated",
	  OPTION_TEXTS, offsetof(struct target_choice, target.libraries),
	  OPTION_WITH(struct target_choice, target.n_libraries) },
	{ "no-hold", 0, NULL,
	  "do not hold the command (by ptrace) while a library that it has just loaded is hooked",
	  OPTION_NO, offsetof(struct target_choice, target.command.hold) },
};

const struct option_group cli_start_options = { OPTION_ROWS(start_rows) };

int cli_target_settle(struct target_choice *choice, char **argv, struct err *err)
{
	if (argv && argv[0])
		choice->given |= 1u << TARGET_COMMAND;
	if (!choice->given)
		return err_set(err, EINVAL,
		               "what is to be traced? A command after --, -p PID, --name GLOB, "
		               "--cgroup PATH, --rank N, --job ID, --container ID, --pod NAME, "
		               "--gpu-of GPU or --all");
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
	if (cli_whose_given(&choice->whose) && cli_whose_settle(choice, err))
		return err->code;
	choice->target.command.environment.wanted = choice->env;
	choice->target.command.environment.n_wanted = choice->n_env;
	choice->target.pids = choice->pids;
	choice->target.n_pids = choice->n_pids;
	return 0;
}

/* ---- functions ----------------------------------------------------------------------------- */

static bool selection_take_all_calls(const struct argp_state *state, void *to, const char *value)
{
	struct selection *selection = to;

	selection->all_calls = true;
	selection->each_call = value != NULL;
	return !value || !strcmp(value, "each");
}

static const char *const layers[] = { "auto", "driver", "runtime", "both", NULL };

static const struct option_row selection_rows[] = {
	{ .title = "Which functions:", .order = 2 },
	{ "only", 0, "GLOB", "only functions whose name matches, always hooked; may be repeated",
	  OPTION_TEXTS, offsetof(struct selection, only), OPTION_WITH(struct selection, n_only),
	  .offer = completion_functions },
	{ "skip", 0, "GLOB", "not functions whose name matches; may be repeated", OPTION_TEXTS,
	  offsetof(struct selection, skip), OPTION_WITH(struct selection, n_skip),
	  .offer = completion_functions },
	{ "class", 0, "LIST",
	  "only functions of these classes: launch, memory, transfer, sync, stream, event, graph, "
	  "module, device, other (LIST has commas, no blanks)",
	  OPTION_SET, offsetof(struct selection, classes), .words = api_class_names,
	  .is_no = "class" },
	{ "layer", 0, "LAYER",
	  "driver, runtime, both, or auto (the default): launches in the driver only, the rest in "
	  "both",
	  OPTION_WORD, offsetof(struct selection, layers), .words = layers, .is_no = "layer" },
	{ "all-calls", 0, "each",
	  "also getters and polls, which tell little and are many; with --in-process those that "
	  "are called all the time are counted, and with --all-calls=each recorded one by one",
	  OPTION_TAKE, .take = selection_take_all_calls, .optional = true,
	  .is_no = "way to see them (each, or none)" },
};

const struct option_group cli_selection_options = { OPTION_ROWS(selection_rows) };

/* ---- of what is written -------------------------------------------------------------------- */

static const struct option_row filter_rows[] = {
	{ "failed", 0, NULL, "only calls that returned an error", OPTION_YES,
	  offsetof(struct sink_options, failed_only), .order = 3 },
	{ "min-duration", 0, "TIME",
	  "only calls, and work of a GPU, that took this long (10us, 1.5ms)", OPTION_TIME,
	  offsetof(struct sink_options, min_duration_ns), .least = 1, .most = OPTION_ANY },
	{ "max-events", 0, "N", "end when N calls were written, those that they made not counted",
	  OPTION_NUMBER, offsetof(struct sink_options, max_events), .least = 1,
	  .most = OPTION_ANY },
};

const struct option_group cli_filter_options = { OPTION_ROWS(filter_rows) };

/* ---- how long, and at what cost ------------------------------------------------------------ */

static bool limits_take_percent(const struct argp_state *state, void *to, const char *value)
{
	return parse_percent(value, to);
}

static const struct option_row bound_rows[] = {
	{ .title = "How long, and at what cost:", .order = 5 },
	CLI_DURATION_ROW(struct capture_options, duration_ns),
	CLI_TIMEOUT_ROW(struct capture_options, timeout_ns),
	{ "max-overhead", 0, "N%",
	  "give up detail to slow targets down by less than this: getters, then durations, then "
	  "all but windows of time",
	  OPTION_TAKE, offsetof(struct capture_options, max_overhead), .take = limits_take_percent,
	  .is_no = "percentage (5% or 0.5%)" },
	CLI_RING_SIZE_ROW(struct capture_options, ring_bytes,
	                  "memory of all ring buffers together (8 MiB for each CPU)"),
	CLI_WITHOUT_ROW(struct capture_options, without),
};

const struct option_group cli_bounds_options = { OPTION_ROWS(bound_rows) };

bool cli_take_in_process(const struct argp_state *state, void *to, const char *value)
{
	*(enum in_process *)to = IN_PROCESS_YES;
	return true;
}

bool cli_take_no_in_process(const struct argp_state *state, void *to, const char *value)
{
	*(enum in_process *)to = IN_PROCESS_NO;
	return true;
}

/* What is given up for its cost is a matter of probes: those options do not go with it. */
void cli_check_in_process(const struct argp_state *state, const struct capture_options *capture)
{
	if (capture->in_process != IN_PROCESS_YES || (capture->returns && !capture->max_overhead))
		return;
	option_bad_usage(state,
	                 "--in-process does not go with %s: what that saves is the cost of probes",
	                 capture->returns ? "--max-overhead" : "--no-returns");
}

static void limits_end(const struct argp_state *state, void *into)
{
	cli_check_in_process(state, into);
}

static const struct option_row limit_rows[] = {
	{ "no-returns", 0, NULL, "half the cost: no durations, no results", OPTION_NO,
	  offsetof(struct capture_options, returns), .order = 5 },
	CLI_IN_PROCESS_ROW(struct capture_options, in_process),
	CLI_NO_IN_PROCESS_ROW(struct capture_options, in_process,
	                      "by probes alone (default without --gpu)"),
};

const struct option_group cli_limits_options = {
	OPTION_ROWS(limit_rows),
	.parts = (const struct option_part[]){ { &cli_bounds_options, 0 }, { 0 } },
	.end = limits_end,
};

/* ---- all that is traced, and how ----------------------------------------------------------- */

static void attach_end(const struct argp_state *state, void *into)
{
	struct cli_attach *attach = into;

	attach->capture.gpu = attach->gpu.asked ? &attach->gpu.settings : NULL;
	attach->selection.hooks = attach->hooks.n ? &attach->hooks : NULL;
}

static void attach_words(void *into, char **words, size_t count)
{
	((struct cli_attach *)into)->command = words;
}

static const struct option_part attach_parts[] = {
	{ &cli_process_options, offsetof(struct cli_attach, choice) },
	{ &cli_start_options, offsetof(struct cli_attach, choice) },
	{ &cli_selection_options, offsetof(struct cli_attach, selection) },
	{ &cli_gpu_options, offsetof(struct cli_attach, gpu) },
	{ &cli_limits_options, offsetof(struct cli_attach, capture) },
	{ 0 }
};

const struct option_group cli_attach_options = { .parts = attach_parts,
	                                         .words = attach_words,
	                                         .end = attach_end };

void cli_ranks_ask(struct cli_attach *attach, bool no_ras)
{
	hook_list_add_unasked(&attach->hooks, "nccl");
	attach->selection.hooks = &attach->hooks;
	attach->capture.ras = !no_ras;
}

void cli_attach_free(struct cli_attach *attach)
{
	FREE_ALL(attach->choice.pids, attach->choice.env, attach->selection.only,
	         attach->selection.skip);
	hook_list_free(&attach->hooks);
}

/* --gpu and what goes with it. */

#define WINDOW_LEAST_NS 10000000ull /* CUPTI takes as long to begin */

static const char *const kinds[] = { "kernels", "copies", "sets",     "sync",
	                             "graphs",  "nvtx",   "overhead", NULL };
static_assert(AGENT_WANT_KERNELS == 1 && AGENT_WANT_OVERHEAD == 1 << 6, "bits by the names' order");

#define DEFAULT_KINDS (AGENT_WANT_KERNELS | AGENT_WANT_COPIES | AGENT_WANT_SETS | AGENT_WANT_NVTX)

void cli_gpu_ask(struct cli_gpu *gpu)
{
	gpu->asked = true;
	gpu->settings.kinds |= DEFAULT_KINDS;
}

static bool gpu_take_window(const struct argp_state *state, void *to, const char *value)
{
	struct capture_gpu *settings = to;
	char *copy = xstrdup(value), *slash = strchr(copy, '/');
	bool good;

	if (slash)
		*slash = '\0';
	good = slash && parse_duration_ns(copy, &settings->window_ns) &&
	       parse_duration_ns(slash + 1, &settings->period_ns);
	free(copy);
	if (good && settings->window_ns >= settings->period_ns)
		option_bad_usage(state,
		                 "--gpu-window: the window has to be shorter than the period; "
		                 "without --gpu-window all the time is measured");
	if (good && settings->window_ns < WINDOW_LEAST_NS)
		option_bad_usage(state,
		                 "--gpu-window: the window has to be 10ms or longer, because CUPTI "
		                 "takes that long to begin");
	return good;
}

static void gpu_end(const struct argp_state *state, void *into)
{
	struct cli_gpu *gpu = into;

	if (gpu->asked || gpu->stalls)
		return;
	if (gpu->settings.window_ns)
		option_bad_usage(state, "--gpu-window goes with --gpu");
	if (gpu->settings.cupti)
		option_bad_usage(state, "--cupti goes with --gpu");
}

static const struct option_row rows[] = {
	{ .title = "What ran on the GPU, and when:", .order = 6 },
	{ "gpu", 0, "LIST",
	  "GPU times by CUPTI, of kernels, copies, sets, sync, graphs, nvtx, overhead; without "
	  "LIST kernels,copies,sets,nvtx",
	  OPTION_SET, offsetof(struct cli_gpu, settings.kinds), OPTION_WITH(struct cli_gpu, asked),
	  .least = DEFAULT_KINDS, .words = kinds, .is_no = "kind", .optional = true },
	{ "gpu-window", 0, "ON/PERIOD", "measure 1s of every 30s (1s/30s)", OPTION_TAKE,
	  offsetof(struct cli_gpu, settings), .take = gpu_take_window,
	  .is_no = "window (1s/30s measures one second of every thirty)" },
	{ "cupti", 0, "PATH", "the libcupti.so to use; by default one is looked for", OPTION_TEXT,
	  offsetof(struct cli_gpu, settings.cupti) },
};

const struct option_group cli_gpu_options = { OPTION_ROWS(rows), .end = gpu_end };

static const struct option_row stalls_rows[] = {
	{ "stalls", 0, NULL,
	  "why kernels wait: their instructions are sampled, 2 s a minute; with --gpu", OPTION_YES,
	  offsetof(struct cli_gpu, stalls), .order = 6 },
};

static void stalls_end(const struct argp_state *state, void *into)
{
	struct cli_gpu *gpu = into;

	if (!gpu->stalls)
		return;
	if (gpu->settings.window_ns)
		option_bad_usage(state, "--stalls has windows of its own, a few seconds after each "
		                        "begin: it does not go with --gpu-window");
	gpu->by_stalls = !gpu->asked;
	if (!gpu->asked)
		cli_gpu_ask(gpu);
	gpu->settings.kinds |= AGENT_WANT_KERNELS | AGENT_WANT_STALLS;
}

const struct option_group cli_stalls_options = { OPTION_ROWS(stalls_rows), .end = stalls_end };

/* ---- commands that have none --------------------------------------------------------------- */

#define CALLS_ONLY ", because this command counts calls only; trace, record and top have it"

static const struct option_row no_rows[] = {
	{ "gpu", 0, "LIST", NULL, OPTION_REFUSED, .is_no = CALLS_ONLY, .optional = true },
	{ "gpu-window", 0, "TIME", NULL, OPTION_REFUSED, .is_no = CALLS_ONLY },
	{ "cupti", 0, "PATH", NULL, OPTION_REFUSED, .is_no = CALLS_ONLY },
};

const struct option_group cli_no_gpu_options = { OPTION_ROWS(no_rows) };

/* Options that say which stacks are walked: --stacks, --frequency, --launch-stacks. */

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

static const char *const stacks_kinds[] = { "samples",     "launches", "copies", "waits",
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
	  OPTION_SET, offsetof(struct cli_stacks, chosen), .least = STACKS_ALL,
	  .words = stacks_kinds, .is_no = "kind", .optional = true, .order = 4 },
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
