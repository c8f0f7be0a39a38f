/* SPDX-License-Identifier: MIT */
/*
 * Where a diverted function's jump leads to: one thunk a slot, all of the same code. A thunk saves
 * what the call was given, asks probe_enter, and then either goes on to the original as if it had
 * not been there, or calls it with the same arguments and tells probe_exit what came back.
 *
 * A slot that counts asks nobody, if all that it needs is there: it calls the original, and where
 * that returns 0 it adds one to a number of its thread's own. No lock, no clock, no record.
 *
 * To the program they are functions like others: with a frame pointer, and with call frame
 * information that is right at each instruction. So exceptions, cancellation and debuggers pass.
 */
#pragma once

#define THUNKS           4096 /* slots */
#define THUNK_BYTES      16
#define THUNK_STACK_MOST 32 /* words of the stack, copied where their number is unknown */

/* Offsets of struct thunk_frame, for thunks.S. */
#define FRAME_VECTOR   64
#define FRAME_SLOT     192
#define FRAME_ORIGINAL 200
#define FRAME_WORDS    208
#define FRAME_STATE    216
#define FRAME_MARK     224
#define FRAME_SESSION  232
#define FRAME_BYTES    240 /* up to the frame pointer: a multiple of 16 */

/* Of struct probe_slot, struct probe_gate and struct probe_thread, which thunks that count read. */
#define SLOT_ORIGINAL   0
#define SLOT_DOES       20
#define SLOT_SHIFT      5 /* 1 << that is its size */
#define GATE_COUNTS     8
#define GATE_PID        16
#define THREAD_PID      8
#define THREAD_SHARES   12
#define THREAD_COUNTING 16
#define THREAD_COUNTS   24
#define THREAD_LOW      32
#define THREAD_HIGH     40
#define THUNK_COUNTS    3   /* AGENT_SLOT_COUNT */
#define THUNK_NOT_READY 600 /* a result that is no failure, in both layers */

#ifndef __ASSEMBLER__

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct thunk_frame;

#ifdef __x86_64__

/* On the stack of the thread: right below the return address, and above the original's frame. */
struct thunk_frame {
	uint64_t general[6]; /* rdi rsi rdx rcx r8 r9; on return [2] is rdx */
	uint64_t rax;        /* al: vector registers of a function with varargs; on return rax */
	uint64_t r10;
	uint8_t vector[8][16]; /* on return [0] and [1] */
	uint64_t slot;
	const void *original;
	uint64_t words;    /* of the stack, to be copied. Of a counted call that has failed, what */
			   /* `counting` of its thread was at its end */
	const void *state; /* of the thread that entered */
	uint64_t mark;     /* of this call: whoever uses this stack later writes over it. Of a */
			   /* counted one, when it has returned, rdx */
	uint64_t session;  /* of a counted call: what `counting` of the thread was before it */
	uint64_t frame_pointer; /* the caller's */
	uint64_t back;
	uint64_t stack[]; /* arguments */
};

_Static_assert(offsetof(struct thunk_frame, vector) == FRAME_VECTOR, "layout");
_Static_assert(offsetof(struct thunk_frame, slot) == FRAME_SLOT, "layout");
_Static_assert(offsetof(struct thunk_frame, original) == FRAME_ORIGINAL, "layout");
_Static_assert(offsetof(struct thunk_frame, words) == FRAME_WORDS, "layout");
_Static_assert(offsetof(struct thunk_frame, state) == FRAME_STATE, "layout");
_Static_assert(offsetof(struct thunk_frame, mark) == FRAME_MARK, "layout");
_Static_assert(offsetof(struct thunk_frame, session) == FRAME_SESSION, "layout");
_Static_assert(offsetof(struct thunk_frame, frame_pointer) == FRAME_BYTES, "layout");

extern const char probe_thunks[] __attribute__((visibility("hidden")));
extern const char probe_thunks_end[] __attribute__((visibility("hidden")));

/* Called by the thunks only; in probes.c. Nonzero: the original is to be called, and to return to
 * the thunk. */
uint64_t probe_enter(struct thunk_frame *frame);
void probe_exit(struct thunk_frame *frame);

/* Of a call that was to be counted, and has failed. */
void probe_count_failed(struct thunk_frame *frame);

#endif
#endif
