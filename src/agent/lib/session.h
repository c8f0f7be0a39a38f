/* SPDX-License-Identifier: MIT */
/*
 * What one cuscope has of the agent: from its hello until the agent is off. A session belongs to
 * one thread, which waits in session_turn for messages and for time to pass.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/lib/channel.h"

struct session {
	int socket; /* -1: cuscope is gone */
	int bell;   /* see agent/wire.h */
	int cupti;  /* a descriptor of the libcupti to use, or -1 */
	struct own_fd socket_is, bell_is, cupti_is;
	uint32_t kinds, flush_ms;
	uint32_t state;              /* enum agent_state, as in shared memory */
	uint32_t order;              /* AGENT_RUN, AGENT_PAUSE or AGENT_STOP: what is to be */
	uint64_t ending_since;       /* ns; AGENT_ENDING */
	uint64_t clock_ns, flush_ns; /* when they were looked after last */
	bool own_call;               /* was made, to leave CUPTI */
	bool probes;                 /* calls of diverted functions are recorded */
	uint64_t waits_until;        /* ns; cuInit does, for them to be diverted; 0: it does not */
	bool without_cupti;          /* it was not asked for, or failed while `probes` go on */
	bool gives_up;               /* CUPTI is left since it failed */
	uint64_t look_ns;            /* when the probes were looked after last */
	uint64_t stalls_ns;          /* when sampling has to be looked after; 0: it does not */
	bool from_the_begin;         /* of CUDA in this process, and nothing was measured yet */
};

/* Its descriptors, where they still are. */
void session_close(struct session *session);

/* Takes the hello, within two seconds, and starts to measure. False: there is nothing to go on
 * with; all is closed. `from_ns`: when cuInit called it; 0: it did not. */
bool session_begin(struct session *session, int socket, struct own_fd is, uint64_t from_ns);

/* Waits for something to do, and does it. False: it is over, and all is closed. */
bool session_turn(struct session *session);

/* Whether cuInit is to wait still. */
bool session_waits(const struct session *session);

/* At the process's exit: whether there are last records, and a thread to wait for; those; and, as
 * other threads may go on for a while, what is looked after until the end. */
bool session_is_awaited(const struct session *session);
void session_last_flush(struct session *session);
void session_look_at_exit(const struct session *session);
