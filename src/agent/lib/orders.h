/* SPDX-License-Identifier: MIT */
/*
 * What cuscope asks of probes.h, and the answers: memory for code, slots, turning them. For the
 * agent's thread.
 *
 * A slot leads to the same code for good, and no byte of code is given out for another purpose. A
 * thread may be anywhere in an old thunk, or have been interrupted in old moved code by a signal
 * whose handler still runs; and nobody can see that. So all that is old goes on as it did.
 *
 * Sessions can follow each other all the same: each is told of the code and slots of those before.
 * Where it would have the same bytes written, it uses them again, and only sets anew what the slots
 * record. All else needs room of its own, up to a limit.
 */
#pragma once

#include "agent/lib/ring.h"

/* By enum agent_probes_flags. What fails is the answer to each request. */
void orders_open(struct ring *ring, uint32_t flags);

/* A message of AGENT_PROBES_*. `fd` came with it, or is -1, and stays the caller's. */
void orders_take(struct ring *ring, const struct agent_message *message, int fd);

/* Now and then: threads that ended, what was lost. */
void orders_look(void);

/* The process ends: calls that are open are told as unfinished. */
void orders_tell_open(void);

/* False: a thread stays in the ring, whose memory then has to stay for ever. */
bool orders_close(void);
