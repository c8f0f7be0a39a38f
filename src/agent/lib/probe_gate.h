/* SPDX-License-Identifier: MIT */
/* What thunks.S reads by itself: what a slot does, and whether anybody listens. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "agent/lib/probes.h"
#include "agent/lib/thunks.h"

struct probe_session;

struct probe_slot {
	const void *original;
	uint64_t cookie;
	uint32_t words; /* of the stack */
	uint32_t does;  /* enum probe_does */
	/* The session in which it was turned last, 0: in none, times two; and one where begins are
	 * told of. It is read while another thread turns it. */
	uint64_t session;
};

/* Alone in its page, of which a child of fork finds zeroes, however it was forked. */
struct probe_gate {
	struct probe_session *session; /* NULL: nothing is recorded, */
	uint64_t counts;               /* and 0: nor counted */
	uint32_t pid; /* that was recorded last; 0: it is a child's gate, who forked since */
	uint32_t clock;
};

_Static_assert(offsetof(struct probe_slot, original) == SLOT_ORIGINAL, "layout");
_Static_assert(offsetof(struct probe_slot, does) == SLOT_DOES, "layout");
_Static_assert(sizeof(struct probe_slot) == 1 << SLOT_SHIFT, "layout");
_Static_assert(offsetof(struct probe_gate, counts) == GATE_COUNTS, "layout");
_Static_assert(offsetof(struct probe_gate, pid) == GATE_PID, "layout");
_Static_assert(PROBE_COUNT == THUNK_COUNTS, "as thunks know it");

extern struct probe_slot probe_slots[THUNKS];
extern struct probe_gate *probe_gate;
