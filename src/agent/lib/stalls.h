/* SPDX-License-Identifier: MIT */
/*
 * Why kernels wait: samples of their instructions (CUPTI's PC sampling), in short windows that are
 * begun by lot. All calls of CUPTI's are the session's thread's, while none of the program's is
 * in a call of the driver (gate.h).
 *
 *   stalls_open        a session begins that wants them
 *   stalls_turn        begins and ends windows
 *   stalls_close       everything is off; before kinds are disabled
 *
 * An enabled context costs device memory: only where much more is free.
 * What cannot be is told once by a record (AGENT_STALLS_TOLD), and the rest goes on.
 */
#ifndef CUSCOPE_AGENT_LIB_STALLS_H
#define CUSCOPE_AGENT_LIB_STALLS_H

#include <stdbool.h>
#include <stdint.h>

/* `library` is CUPTI, of which `version` is told by cuptiGetVersion. `calls_are_open`: calls of the
 * driver's may be under way that the gate does not know. */
void stalls_open(void *library, uint32_t version, bool calls_are_open);

/* When it is to be called again, at the latest; 0: never. */
uint64_t stalls_turn(uint64_t now_ns);

/* Whether an episode is on, with windows in which instructions are sampled. */
bool stalls_are_sampled(void);

/* `exits`: the process does, and CUPTI is about to be taken down; it is called as little as can be.
 */
void stalls_close(bool exits);

/* It could not be switched off: CUPTI has to stay. */
bool stalls_are_left(void);

/* Whether a call of CUPTI's is under way: who exits meanwhile may never end. */
bool stalls_are_busy(void);
void stalls_forked(void);

#endif
