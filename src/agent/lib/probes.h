/* SPDX-License-Identifier: MIT */
/*
 * Calls of diverted functions, recorded inside the process. What a slot records is a cookie of
 * bpf/wire.h, and this is bpf/calls.h once more: the same words in the same places.
 *
 *   probes_set      what a slot's thunk calls and records; it only passes on so far
 *   probes_open     a ring
 *   probes_turn     a slot begins to record, or to count, or only passes on
 *   probes_tell_open    calls that are open are told as unfinished; others go on
 *   probes_close    waits for threads that are in here; calls that are open are told as unfinished
 *
 * These are for one thread, the agent's. Thunks run on any thread at any moment, and for as long as
 * the process lives: after probes_close as well.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/lib/ring.h"

enum probe_does {
	PROBE_PASSES_ON = AGENT_SLOT_PASSES_ON,
	PROBE_ENTRY = AGENT_SLOT_ENTRY, /* without the return, which goes to the caller then */
	PROBE_CALL = AGENT_SLOT_CALL,
	PROBE_COUNT = AGENT_SLOT_COUNT, /* those that end well, see wire.h */
};

struct probe_plan {
	const void *original; /* code that does what the function did before it was diverted */
	uint64_t cookie;
	uint32_t stack_words; /* of its arguments, or AGENT_STACK_WORDS_UNKNOWN */
	bool begins;          /* AGENT_PROBE_BEGUN for its entries */
	uint64_t entry;       /* not 0: stacks of its calls are asked for: struct agent_slot */
};

struct probes_options {
	uint32_t clock; /* enum agent_clock */
	bool begins;    /* AGENT_PROBE_BEGUN for every entry */
	bool may_read; /* process_vm_readv is there, and no filter of the process's is against it */
};

void probes_set(uint32_t slot, const struct probe_plan *plan);
bool probes_is_now(uint32_t slot); /* set in this session */

/* Whether nobody set it in this session, and no former one to anything but this. */
bool probes_may_set(uint32_t slot, const void *original);
void probes_turn(uint32_t slot, enum probe_does does);
const void *probes_thunk(uint32_t slot); /* where the function's jump is to lead */

int probes_open(struct ring *ring, const struct probes_options *options); /* 0, -ENOMEM, -EBUSY */

/* 0; -EBUSY: a thread stays in here. Then the ring's memory has to stay as well, for ever: the next
 * session is to have another one. */
int probes_close(void);

/* When the process ends. Returns of these calls are not told any more. */
void probes_tell_open(void);

/* Puts what was lost so far into the ring's shared part, and looks after threads that ended. */
void probes_look(void);

/* In the child of a fork: nothing is recorded. (It is so in one that nobody was told of, too.) */
void probes_forked(void);
