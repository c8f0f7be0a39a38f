/* SPDX-License-Identifier: MIT */
/*
 * Requests to one agent that concern its probes, and what it answers; for agent.c and agents.c.
 *
 * One request is under way at a time: the rest waits here, so neither a socket nor shared memory
 * has to hold more. One without an answer within 10 s is given up, and so are those behind it until
 * the agent is heard again.
 *
 * What an agent tells are addresses in its own process. They are checked to make sense: whole
 * pages, within reach, in the half that processes have. Whether they are what the agent says is not
 * looked up in /proc/PID/maps, since it could be another a moment later. A wrong one only harms the
 * process itself: code is written there as a debugger writes it, which can change nothing but
 * private memory of that process, and what it then jumps to it could have jumped to before.
 */
#ifndef CUSCOPE_AGENT_AGENT_PROBES_H
#define CUSCOPE_AGENT_AGENT_PROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/wire.h"

struct agent;

struct agent_probes {
	struct agent_request *first, *last; /* the first may have been sent */
	size_t waiting;
	uint32_t number;   /* of the last one */
	uint32_t given_up; /* the last that got no answer; its answer may come yet */
	uint64_t sent_ns;  /* of the first; 0: it is not */
	uint32_t slots;
	bool ready, ended, silent;
};

/* What it says of its probes, its answers, the next request. After what it says of itself. */
void agent_probes_turn(struct agent *agent);

/* Nothing more comes: what waits is answered, and the end told, once. `why` may be NULL. */
void agent_probes_end(struct agent *agent, const char *why);

/* The same without telling anybody. */
void agent_probes_drop(struct agent *agent);

/* As agents_probes_...: a number above 0, or a negative errno. */
int agent_probes_area(struct agent *agent, uint64_t near, uint32_t bytes);
int agent_probes_set(struct agent *agent, const struct agent_slot *slots, size_t n);
int agent_probes_slots(struct agent *agent, uint32_t first, uint32_t n, uint32_t does);

void agent_probes_go(struct agent *agent);

#endif
