// SPDX-License-Identifier: MIT
#include "agent/agent_windows.h"

/*
 * What CUPTI and telling of its call take of a launch: of a training with 407 calls a step, that
 * are 12 % of it; and how long threads stand still when CUPTI comes and goes
 * (docs/results/why-gpu.md).
 */
#define DEAR_LAUNCH_NS 3500
#define DEAR_SWITCH_NS 10000000
#define DEAR_MOST      0.5 /* of a process' time; what says more is busy with lying */
#define DEAR_LOOKS     4   /* in a window, at what it has cost so far */
#define DEAR_WORTH     5   /* a window ends sooner where it has cost as much as so many may */

/* A window of this begin, and of what agents had told by then. */
static void windows_begin(struct agent_windows *windows, struct agent_common *common,
                          struct agent *all, uint64_t now_ns)
{
	struct agent *agent, *next;

	common->order = AGENT_RUN;
	windows->begin_ns = now_ns;
	HASH_ITER (hh, all, agent, next)
		agent->asked_before = agent->asked;
}

/* The process whose time records take most of, as a share of that since the window began. */
static double windows_dearest(struct agent *all, uint64_t window_ns, uint32_t *pid)
{
	struct agent *agent, *next;
	uint64_t most = 0;
	double share;

	HASH_ITER (hh, all, agent, next) {
		if (agent->asked - agent->asked_before > most) {
			most = agent->asked - agent->asked_before;
			*pid = (uint32_t)agent->pid;
		}
	}
	share = (double)most * DEAR_LAUNCH_NS / (double)window_ns;
	return share < DEAR_MOST ? share : DEAR_MOST;
}

/* The next window begins when this one, and its coming and going, have cost no more than wanted. */
static void windows_pause(struct agent_windows *windows, struct agent_common *common,
                          uint64_t window_ns, double share, uint32_t pid)
{
	double allowed = common->options.window_percent / 100;
	uint64_t period_ns = (uint64_t)((share * (double)window_ns + DEAR_SWITCH_NS) / allowed);

	common->order = AGENT_PAUSE;
	windows->look_ns = windows->begin_ns + period_ns;
	if (!windows->told_dear && common->options.dear)
		common->options.dear(common->options.data, pid, share * 100, window_ns, period_ns);
	windows->told_dear = true;
}

/* Whether the window has cost what it may; else it goes on, from window to window. */
static void windows_look(struct agent_windows *windows, struct agent_common *common,
                         struct agent *all)
{
	uint64_t window_ns = common->options.window_ns;
	uint64_t into_ns = common->now_ns - windows->begin_ns;
	double allowed = common->options.window_percent / 100;
	bool over = into_ns >= window_ns;
	uint32_t pid = 0;
	double share = into_ns ? windows_dearest(all, into_ns, &pid) : 0;

	windows->look_ns = common->now_ns + window_ns / DEAR_LOOKS;
	if (share > allowed &&
	    (over || share * (double)into_ns > allowed * DEAR_WORTH * (double)window_ns))
		windows_pause(windows, common, into_ns, share, pid);
	else if (over)
		windows_begin(windows, common, all, common->now_ns);
}

/* Windows for what records cost. */
static uint64_t windows_by_cost(struct agent_windows *windows, struct agent_common *common,
                                struct agent *all)
{
	if (!windows->begin_ns)
		windows_begin(windows, common, all, common->first_window_ns);
	else if (common->order == AGENT_PAUSE && common->now_ns >= windows->look_ns)
		windows_begin(windows, common, all, common->now_ns);
	if (common->order == AGENT_RUN && common->now_ns >= windows->look_ns)
		windows_look(windows, common, all);
	return windows->look_ns;
}

uint64_t agent_windows_follow(struct agent_windows *windows, struct agent_common *common,
                              struct agent *all)
{
	uint64_t window = common->options.window_ns, period = common->options.period_ns, into;

	if (common->order == AGENT_STOP || !window || !common->first_window_ns)
		return 0;
	if (common->options.window_percent > 0)
		return windows_by_cost(windows, common, all);
	into = (common->now_ns - common->first_window_ns) % period;
	common->order = into < window ? AGENT_RUN : AGENT_PAUSE;
	return common->now_ns - into + (into < window ? window : period);
}
