/* SPDX-License-Identifier: MIT */
/*
 * A moment in which no thread of the program is in a call of the driver's: who enters one is held,
 * who is in one is waited for.
 *
 * CUPTI's PC sampling takes CUPTI's lock and then the driver's of the context; a launch has that
 * and asks for CUPTI's. Two threads that do so at once stand still for ever (CUDA 13.0, H200).
 *
 *   gate_begin    calls are counted; before their callbacks are there
 *   gate_call     one of the driver's callbacks
 *   gate_close    the moment begins, on the session's thread alone; false: it did not come, or a
 *                 stream is being captured
 *   gate_open     it is over
 *   gate_end      calls are counted no more
 */
#ifndef CUSCOPE_AGENT_LIB_GATE_H
#define CUSCOPE_AGENT_LIB_GATE_H

#include <stdbool.h>
#include <stdint.h>

struct cupti_callback_data;

#define GATE_HELD_MOST_NS 2000000000ull /* a thread goes on then, whatever goes on here */

void gate_begin(void);
void gate_end(void);
void gate_forked(void);

/* Whether callbacks are to be told of; cheap. */
bool gate_counts(void);

/* Whether a call that gives a context work is over, and was right: the context is one. */
bool gate_call(uint32_t id, const struct cupti_callback_data *data);

/* Whether a call that captures or makes a graph is about to begin, outside of all others. */
bool gate_graph_begins(uint32_t id, const struct cupti_callback_data *data);

/* A call of the driver's whose callbacks are not needed, as it only answers; 0: none, or none more.
 * Of the session's thread, at times. */
uint32_t gate_spare(void);

/* Waits for `most_ns`. Calls that wait for the GPU hold no locks meanwhile, and are let be. */
bool gate_close(uint64_t most_ns);

/* Whether there is time for one more call behind it, before those that are held go on. */
bool gate_lasts(void);
void gate_open(void);

#endif
