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
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/tick_clock.h"
#include "agent/wire.h"
#include "bpf/wire.h"

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

/*
 * Calls that agents record inside of processes, as records of bpf/wire.h: what the pipeline makes
 * events of, whoever saw the call. One for each process.
 *
 * A record says which slot it is of, and nothing else of it is believed: the hook, how many words
 * there are and what they mean stand in the cookie that cuscope gave that slot.
 */

#define PROBE_NO_COOKIE UINT64_MAX /* a slot that was not handed out */

struct probe_records_options {
	uint32_t pid;
	const uint64_t *cookies; /* by slot; the caller's, and may change while records come */
	size_t n_cookies;
	struct tick_clock *ticks; /* NULL: records are in ns */
	uint64_t since_ns;        /* when the session began: no call can be older */
	/* The thread that the process itself knows as `tid`; 0: it is none of its own. */
	uint32_t (*thread)(void *data, uint32_t tid);
	/* A wire_call or a wire_name, the callee's until it returns. */
	void (*record)(void *data, const struct wire_head *record, size_t bytes);
	void *data;
};

enum probe_record_is {
	PROBE_RECORD_TAKEN,
	PROBE_RECORD_OTHER,     /* of another type: not looked at */
	PROBE_RECORD_BAD,       /* of no slot, or not what its slot records */
	PROBE_RECORD_BAD_TIMES, /* before the session, behind now, or ends before it begins */
	PROBE_RECORD_NO_THREAD,
};

struct probe_records;

struct probe_records *probe_records_new(const struct probe_records_options *options);
void probe_records_free(struct probe_records *records);

/* A record of agent_ring_read; `now_ns` is of after it was read. */
enum probe_record_is probe_records_take(struct probe_records *records,
                                        const struct agent_head *record, uint64_t now_ns);
