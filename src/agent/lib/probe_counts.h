/* SPDX-License-Identifier: MIT */
/*
 * The memory in which calls are counted (AGENT_SLOT_COUNT), and all of those that children of fork
 * make, who have the parent's memory and nobody who records. It is mapped at one address for as
 * long as the process lives: shared with cuscope in a session, and nobody's between two. So a
 * thread that is on its way through a thunk then adds to a number that is not looked at, and to
 * nothing else.
 */
#ifndef CUSCOPE_AGENT_LIB_PROBE_COUNTS_H
#define CUSCOPE_AGENT_LIB_PROBE_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/wire.h"

/* A session's, from now on. False: there is no memory, and nothing can be recorded either. */
bool counts_open(int memfd);
void counts_close(void);

/* A thread's share, by slot; *shares: it is not its alone. Until counts_give, which may get NULL.
 */
uint64_t *counts_take(bool *shares);
void counts_give(uint64_t *counts);

/* A call in a child of fork, which nobody records. */
void counts_of_child(uint64_t slot);

/* How many shares have ever been somebody's; never less than what is told already. */
void counts_tell_shares(struct agent_shared *shared);

/* In another process than that of the shares. */
void counts_forget(void);

#endif
