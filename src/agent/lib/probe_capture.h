/* SPDX-License-Identifier: MIT */
/* What is recorded of a call, as its cookie says: words on entry, words on return, texts. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/lib/probe_threads.h"
#include "bpf/wire_due.h"

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

/* ---- launches of which CUPTI tells as well ------------------------------------------------- */

/* Such a one tells CUPTI's number itself, in AGENT_PROBED. By any thread, from the callbacks of a
 * launch. */
bool correlation_tell(uint32_t correlation);    /* whether the thread is in such a one */
bool correlation_is_told(uint32_t correlation); /* whether its last one was it */
void correlations_begin(void);                  /* numbers begin anew */

/* A call is about to begin. */
void capture_launch_begins(struct probe_thread *thread, const struct probe_call *call);

/* A call is about to be told: CUPTI's number goes with it. */
void capture_correlate(const struct probe_thread *thread, struct probe_call *call);

/* ---- probe calls --------------------------------------------------------------------------- */

/*
 * Which calls a thread is in. As a rule each is within the one before it, on one stack. A thread
 * that switches to another stack (a fiber, a coroutine, a handler on a stack of its own) leaves its
 * calls where they are, to come back to them in any order.
 *
 * A call that longjmp or an exception has left is told from such a one by the memory between: a
 * stack has no hole. So a call below the stack pointer was left, where memory goes on from it up to
 * there; where it does not, the call is on another stack, and nothing is known of it but that it
 * has not returned. It is around no other call then.
 */

/* All that one session is, in one place: a thread that stays in one finds nothing of the next. */
struct probe_session {
	struct ring ring;
	uint64_t began;  /* its first number, never 0 */
	uint64_t number; /* another one when all calls that are open were told of */
	uint32_t clock;
	bool begins;
	struct wire_due due; /* walks: walks.h */
};

/* All of these with the thread taken. Calls that are found to be left are told as unfinished. */

/* A thread is about to begin a call at `sp`. The innermost call around that, NULL: there is none.
 */
struct probe_call *probe_calls_around(struct probe_session *session, struct probe_thread *thread,
                                      uint64_t sp);

/* Where the next call is to be kept; NULL: it is within, or beside, as many as there may be. If
 * some are on other stacks, one of these has to go. `around` is what is around it, and may move. */
struct probe_call *probe_calls_room(struct probe_session *session, struct probe_thread *thread,
                                    uint64_t sp, struct probe_call **around);

/* The call that returns, those within it were left. NULL: it is not known. It is told of, and then
 * over. */
struct probe_call *probe_calls_return(struct probe_session *session, struct probe_thread *thread,
                                      const struct thunk_frame *frame);
void probe_calls_over(struct probe_thread *thread, struct probe_call *call);

/* None of them will return, or nobody will listen. */
void probe_calls_tell_open(struct probe_session *session, struct probe_thread *thread);
