/* SPDX-License-Identifier: MIT */
/*
 * Contexts of the program whose kernels are sampled: threads of the program tell of them and of
 * their ends, the session's thread uses one after the other.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONTEXTS 8

enum context_state { CONTEXT_NONE, CONTEXT_NEW, CONTEXT_ON, CONTEXT_OFF }; /* OFF: for good */

/* None is known; they are told of from the one to the other. */
void contexts_open(void);
void contexts_close(void);
void contexts_forked(void);

/* On any thread: one that is in use, and one that is about to be destroyed, which nothing touches
 * from when this returns on. */
void contexts_note(void *context);
void contexts_end(void *context);

/*
 * On a thread that is about to capture or to make a graph: CUPTI knows kernels only of graphs that
 * were made while it was enabled for their context, or after it was and had kernels to sample.
 * Where neither is so yet, notes the context and waits until it is enabled, or cannot be.
 */
void contexts_await(void *context);

/* Whether a thread waits so. */
bool contexts_are_awaited(void);

/* Who waits so goes on, and nobody waits before that time. */
void contexts_not_before(uint64_t time_ns);

/* The rest is the session's thread's. */
bool contexts_is(size_t place, enum context_state state);
bool contexts_any(enum context_state state);

/* Whether the one in that place is in that state and may be touched, until contexts_unuse: it is
 * the thread's own meanwhile. One that cannot be made so is gone. */
bool contexts_use(size_t place, enum context_state state, void **context);
void contexts_unuse(void);

/* If that context is still there. Kernels of its were sampled; its state. */
void contexts_settle(size_t place, const void *context);
void contexts_set(size_t place, const void *context, enum context_state state);
