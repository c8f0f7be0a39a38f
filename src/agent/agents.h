/* SPDX-License-Identifier: MIT */
/*
 * The agents of a capture: gets them into processes, tells them what to do, reads what they write.
 *
 *   agents_new       with what is wanted
 *   agents_environment, agents_enter    for what is started; for what runs already
 *   agents_fd, agents_turn    when there is something to do; a few dozen times a second besides
 *   agents_gone      a process ended: its last records are read
 *   agents_stop, agents_stopped, agents_abandon    at the end
 *   agents_free
 *
 * A target is never harmed: what goes wrong is a state with a sentence, and the capture goes on
 * without GPU times of that process.
 */
#ifndef CUSCOPE_AGENT_AGENTS_H
#define CUSCOPE_AGENT_AGENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/wire.h"
#include "base/err.h"

struct agents;

/*
 * How an agent is, each time that changes; while windows are measured (window_ns) not each time
 * that one begins or ends. A process that ended is AGENT_OFF. Texts are valid during the call.
 */
struct agent_status {
	uint32_t pid; /* as the initial pid namespace counts */
	enum agent_state state;
	enum agent_failure failure;
	const char *why;   /* a sentence for the user: AGENT_FAILED: what, and what to do; with */
			   /* other states what else is to be known, if anything. Else NULL */
	const char *cupti; /* path of the library in use, cleaned for terminals; or NULL */
	uint32_t cupti_version, driver_version;
	/* See struct agent_shared; since the first window began, until the last one ended. */
	uint64_t active_since_ns, active_until_ns;
	uint64_t clock_error_ns;
	enum agent_leftover leftover; /* AGENT_PAUSED, AGENT_OFF: what stays in the target */
	bool nodes_instead;           /* graph launches could not be measured as wholes */
	uint64_t stopped_ns; /* how long a thread of it was stopped to let the agent in; 0: not */
};

struct agents_options {
	uint32_t kinds;                /* enum agent_kind */
	uint64_t window_ns, period_ns; /* measure `window_ns` of every `period_ns`; 0: always */
	size_t ring_bytes;             /* of each agent's ring; 0: 8 MiB */
	const char *cupti;             /* a libcupti to use; NULL: the agent looks for one */
	/* One whole record, copied; in the order in which the agent wrote. Sizes and ends of texts
	 * were checked, contents were not. */
	void (*record)(void *data, uint32_t pid, const struct agent_head *record);
	void (*state)(void *data, const struct agent_status *status);
	/* Between two windows (window_ns) it did not measure. May be NULL. */
	void (*unmeasured)(void *data, uint32_t pid, uint64_t from_ns, uint64_t until_ns);
	/* Whether a process that comes by itself (agents_environment) is a target. */
	bool (*wanted)(void *data, pid_t pid);
	void *data;
};

/*
 * Fails when `cupti` is no library that can be read. The options' functions are called by
 * agents_turn, agents_enter, agents_gone and agents_abandon, and call none of these themselves.
 */
int agents_new(const struct agents_options *options, struct agents **agents, struct err *err);

/* Ends injections; agents see that the socket closes, and leave by themselves. */
void agents_free(struct agents *agents);

/*
 * "NAME=value" for a command to be started, NULL at the end; owned by `agents`. A value that the
 * caller's environment has for CUDA_INJECTION64_PATH is kept for the agent to pass on to. Fails
 * when no socket, or no file for the library can be had.
 */
int agents_environment(struct agents *agents, char *const **environment, struct err *err);

/* Has an agent enter a running process. How that went comes as a state. Does not block. */
void agents_enter(struct agents *agents, pid_t pid);

int agents_fd(const struct agents *agents); /* for epoll: readable when there is something to do */
void agents_turn(struct agents *agents, uint64_t now_ns);

void agents_gone(struct agents *agents, pid_t pid);

/* Tells all to leave. Call agents_turn until agents_stopped, or until you give up: agents that
 * found no safe point say AGENT_ENDING, and leave by themselves. */
void agents_stop(struct agents *agents);
bool agents_stopped(const struct agents *agents);

/* Gives up waiting. For each agent that has not left, a notice says when it will. */
void agents_abandon(struct agents *agents);

/* Sums over all agents that ever were. */
struct agents_lost {
	uint64_t ring, buffers, times;
	uint64_t turned_away; /* processes there was no room for, but the first, which is named */
};
void agents_lost(const struct agents *agents, struct agents_lost *lost);

#endif
