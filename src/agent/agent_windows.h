/* SPDX-License-Identifier: MIT */
/*
 * When agents measure: --gpu-window, and windows for what records cost. They are the same for all
 * agents, so that what processes of one job do can be compared. The first one begins when the first
 * agent measures: however long it took to get in, it is whole. For agents.c.
 */
#pragma once

#include "agent/agent.h"

/* Of windows for what records cost. All zeroes before. */
struct agent_windows {
	uint64_t begin_ns; /* of this one, or the last */
	uint64_t look_ns;  /* when it is to be looked at, or the next begins */
	bool told_dear;
};

/* Sets the order of `common`. Returns when to call it again, by its clock; 0: it need not be. */
uint64_t agent_windows_follow(struct agent_windows *windows, struct agent_common *common,
                              struct agent *all);
