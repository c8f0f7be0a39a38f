/* SPDX-License-Identifier: MIT */
/*
 * The memory that an agent writes its records into, and the reading of it (src/agent/wire.h).
 *
 * Whoever writes there may be anybody's process, and means well or does not: it can change every
 * byte at every moment. So whatever is looked at was copied first, and what makes no sense breaks
 * the ring, not cuscope. The memory cannot be cut short under the reader (it is sealed), and holes
 * punched into it read as zeroes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/wire.h"
#include "base/err.h"
#include "bpf/wire_due.h"

struct agent_ring;

/*
 * `bytes` is made a power of two, 64 KiB or more. `*memfd` is to be sent to the agent, and closed
 * by the caller.
 */
int agent_ring_new(size_t bytes, struct agent_ring **ring, int *memfd, struct err *err);
void agent_ring_free(struct agent_ring *ring);

/* Called with each record: 8-byte aligned, checked as agents_options.record says, the callee's
 * until it returns. */
typedef void (*agent_record_fn)(void *data, const struct agent_head *record);

/*
 * Reads what was there when it was called, as far as it is written. Returns how many bytes that
 * were. -EBADMSG: the ring is not to be read again, and what was wrong is a part of a sentence ("a
 * record of 12 bytes").
 */
int64_t agent_ring_read(struct agent_ring *ring, agent_record_fn record, void *data,
                        struct err *err);

/* Whether there is something that is not yet read: a record that is being written, too. */
bool agent_ring_waits(const struct agent_ring *ring);

/* Only the state, for a quick look; what it says is not checked. */
uint32_t agent_ring_state(const struct agent_ring *ring);

/* What it says of its probes, copied. What stands in it was written before `slots` was, or before
 * the answer's number. */
struct agent_ring_probes {
	uint32_t slots, used, thunk_bytes;
	uint64_t thunks;
	struct agent_answer answer;
};
void agent_ring_probes(const struct agent_ring *ring, struct agent_ring_probes *probes);

/* The code that earlier sessions left, as much as there is room for; copied, and not checked. */
uint32_t agent_ring_areas(const struct agent_ring *ring, struct agent_area areas[AGENT_AREAS_MOST]);

/* Calls of a slot that it has counted, in all; UINT64_MAX: so many there cannot be. It may be
 * anything, less than before as well. */
uint64_t agent_ring_counted(const struct agent_ring *ring, uint32_t slot);

/*
 * Calls that children of fork have made, by slot, AGENT_SLOTS_MOST of them: anything, as above. The
 * memory stays when the ring is freed, until agent_ring_children_free. NULL: there is none left.
 */
const uint64_t *agent_ring_children(const struct agent_ring *ring);
void agent_ring_children_free(const uint64_t *children);

/* What it is to know of kernels' handles: see agents_probes_names. */
/* See agent_shared.clock_offset_ns: before the agent has the memory. */
void agent_ring_set_clock(struct agent_ring *ring, int64_t offset_ns);

/* Before it has it, too. */
void agent_ring_set_walks(struct agent_ring *ring, const struct wire_due *due);

void agent_ring_set_names(struct agent_ring *ring, uint64_t offset);

/* What the agent says of itself, copied; texts end, head and tail are 0. */
void agent_ring_shared(const struct agent_ring *ring, struct agent_shared *shared);
