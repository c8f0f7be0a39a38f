/* SPDX-License-Identifier: MIT */
/*
 * One agent: a process that is being entered, or a socket and a ring. For agents.c.
 *
 *   agent_enter, agent_entered    injection; or agent_greet, where it came by itself
 *   agent_hear                    its bell rang, or its socket closed
 *   agent_turn                    records are read, states told, orders given
 *   agent_end                     its process is gone
 *
 * When `over` is set, all was read and told, and the agent is to be freed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/agent_probes.h"
#include "agent/agent_ring.h"
#include "agent/agents.h"
#include "agent/inject.h"
#include "base/hash.h"

/* What the agents of a capture have in common. */
struct agent_common {
	struct agents_options options;
	int epoll; /* waits for what agents have */
	int cupti; /* to be sent along; -1: none */
	uint64_t now_ns;
	uint32_t order;           /* AGENT_RUN, AGENT_PAUSE or AGENT_STOP: what all are to do now */
	uint64_t name_offset;     /* of agents_probes_names */
	uint64_t first_window_ns; /* when the first agent began to measure; 0: none has */
	uint64_t stop_ns;         /* agents_stop */
	struct agents_lost lost;  /* of those that are over */
};

struct agent {
	UT_hash_handle hh;  /* by pid, while not over */
	struct agent *next; /* among those that are over */
	struct agent_common *common;
	pid_t pid;
	uint64_t start_time;   /* of the process, as it was when it was wanted */
	uint64_t person;       /* whose it is (probe/person.h) */
	struct inject *inject; /* not NULL: being entered */
	int socket, bell;      /* -1: none */
	struct agent_ring *ring;

	uint32_t ordered; /* the last order that was sent */
	uint32_t state;   /* the last one that was seen */
	bool spoke;       /* it said what it is */
	bool measured;    /* AGENT_RUNNING was told */
	bool told_failed; /* of its GPU times nothing is told any more; its probes may go on */
	bool closed;      /* it closed its socket */
	bool over;
	bool waits, moved;   /* for its user's next turn; among those who do not */
	uint64_t entered_ns; /* injection began, as the first turn after that has it */
	uint64_t greeted_ns, stuck_ns;
	uint64_t since_ns;            /* it measures, first */
	uint64_t until_ns;            /* it measured, before it paused; 0: it did not pause */
	uint64_t asked, asked_before; /* by its calls so far, and when the window began */
	uint64_t stopped_ns, stopped_parts[INJECT_PARTS];
	bool may_read; /* filters of one of its threads were asked: see agent.h */
	struct agent_probes probes;
};

struct agent *agent_new(struct agent_common *common, pid_t pid);
void agent_free(struct agent *agent);

void agent_enter(struct agent *agent);   /* begins; `inject` is set, or it is over */
void agent_entered(struct agent *agent); /* inject_fd is readable: greets, or it is over */
bool agent_hangs(struct agent *agent);   /* the injection did not end when it was to */
void agent_greet(struct agent *agent, int socket); /* the agent owns the socket from then on */

void agent_hear(struct agent *agent);
void agent_turn(struct agent *agent);
void agent_end(struct agent *agent);

/* What is not to be had where something fails: "GPU times", or what else was wanted. */
const char *agent_lacks(const struct agent_common *common);

/* Told as AGENT_FAILED with this sentence; it is over. */
void agent_fail(struct agent *agent, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Tells its state again, with a sentence on how it will leave. */
void agent_abandon(struct agent *agent);

/* Adds what it has lost. */
void agent_add_lost(const struct agent *agent, struct agents_lost *lost);

/* ---- agent reads --------------------------------------------------------------------------- */

/*
 * Whether the agent in a process may have it read its own memory by process_vm_readv. That is how
 * it reads what a pointer leads to. A seccomp filter may end the process for it.
 *
 * A filter that a thread takes on later is not seen. One that ends its process for a call that only
 * reads the process itself has not been met.
 */

/*
 * `asked`: filters of one of its threads were run, and let the call pass. Then it may where all
 * threads that have filters have as many. Else only where no thread has one.
 */
bool agent_may_read(pid_t pid, bool asked);
