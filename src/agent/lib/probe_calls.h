/* SPDX-License-Identifier: MIT */
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
#ifndef CUSCOPE_AGENT_LIB_PROBE_CALLS_H
#define CUSCOPE_AGENT_LIB_PROBE_CALLS_H

#include "agent/lib/probe_threads.h"

/* All that one session is, in one place: a thread that stays in one finds nothing of the next. */
struct probe_session {
	struct ring ring;
	uint64_t began;  /* its first number, never 0 */
	uint64_t number; /* another one when all calls that are open were told of */
	uint32_t clock;
	bool begins;
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

#endif
