/* SPDX-License-Identifier: MIT */
/* What is recorded of a call, as its cookie says: words on entry, words on return, texts. */
#ifndef CUSCOPE_AGENT_LIB_PROBE_CAPTURE_H
#define CUSCOPE_AGENT_LIB_PROBE_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/lib/probe_threads.h"

/* How many words of the stack to copy; UINT32_MAX: they cannot be seen, so the call has to go on by
 * itself. */
uint32_t capture_stack_words(struct probe_thread *thread, uint32_t words,
                             const struct thunk_frame *frame);

/* With the thread taken, all of them; `ring` is the session's. */
void capture_entry(struct ring *ring, struct probe_thread *thread, struct probe_call *call,
                   const struct thunk_frame *frame);
void capture_return(struct ring *ring, struct probe_thread *thread, struct probe_call *call,
                    uint64_t sp);

/* Writes the record; counted where there is no room. */
void capture_tell(struct ring *ring, struct probe_thread *thread, struct probe_call *call);

/* A room that the thread was taken out of by a longjmp becomes one that the reader skips. */
void capture_close_room(struct ring *ring, struct probe_thread *thread);

/* After calls that unload kernels, a handle may mean another one. */
void capture_forget_kernels(uint64_t cookie);

/* By enum agent_probe_lost, since the last capture_begin. */
void capture_begin(void);
void capture_lost(uint32_t reason);
void capture_tell_lost(struct agent_shared *shared);
void capture_forked(void);

#endif
