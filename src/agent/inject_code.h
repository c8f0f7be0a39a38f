/* SPDX-License-Identifier: MIT */
/*
 * What a borrowed thread runs inside a target: a few hundred bytes of machine code that need
 * nobody.
 *
 * From the moment that the thread's registers are set, everything goes on by itself. The code
 * blocks signals, maps an area, and works through a list of steps that was written there: system
 * calls and calls of functions, on a stack in the area. Then it puts every register back, unmaps
 * the area and jumps to where the thread was. Whoever wrote the steps may be killed at any time. If
 * it was killed before it wrote any, the thread just goes back.
 *
 * The code lies in the unused end of a page of code that the target has mapped already, mostly of
 * the vdso. So no memory is ever writable and executable.
 */
#pragma once

/* Offsets and values that inject_code.S uses; compared with the structs below. */
#define FRAME_MASK       0
#define FRAME_INTERRUPTS 16
#define FRAME_FLAGS      24
#define FRAME_RAX        112
#define FRAME_RIP        144

#define AREA_FIRST         0
#define AREA_ERRNO         8
#define AREA_XSAVE         16
#define AREA_ERRNO_ADDRESS 24
#define AREA_ERRNO_VALUE   32
#define AREA_PENDING       40
#define AREA_STATE         48
#define AREA_ACTION        56

#define STEP_CODE      0
#define STEP_ARGS      8
#define STEP_RESULT    56
#define STEP_LOADS     64
#define STEP_FAILS     72
#define STEP_OTHERWISE 80
#define STEP_BYTES     88

/* When the interrupted call is to end with EINTR: a signal came meanwhile ... */
#define INTERRUPTS_NEVER          0
#define INTERRUPTS_ALWAYS         1 /* and a handler took it */
#define INTERRUPTS_UNLESS_RESTART 2 /* the same, without SA_RESTART */

/* What makes a step fail. */
#define FAILS_NEVER 0
#define FAILS_ERROR 1 /* -4095..-1: a system call's */
#define FAILS_ZERO  2 /* a null pointer */

#define LOADS_CODE 6 /* bit of step.loads */

#ifndef __ASSEMBLY__

#include <stddef.h>
#include <stdint.h>

/* Below the red zone of the thread's own stack. What the thread takes back, in the order
 * of pops. */
struct inject_frame {
	uint64_t mask;       /* of signals, as it was */
	uint64_t block;      /* signals to be blocked meanwhile */
	uint64_t interrupts; /* INTERRUPTS_* */
	uint64_t flags;
	uint64_t r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rdx, rsi, rdi;
	uint64_t rip; /* by way of rcx, which a system call destroys anyway */
	uint64_t rsp;
};

struct step {
	/* A number below 4096: a system call; else the address of a function. 0: not there, which
	 * is a failure. */
	uint64_t code;
	uint64_t arg[6];
	uint64_t result;
	uint64_t loads;     /* bit i: arg[i], or at LOADS_CODE `code`, is where the value stands */
	uint64_t fails;     /* FAILS_* */
	uint64_t otherwise; /* the step that follows a failure; 0: the end */
};

/* The begin of the area; the rest is inject_plan.c's. */
struct area_head {
	uint64_t first; /* address of the first step; 0: nothing is to be done */
	uint64_t errno_location;
	uint64_t xsave; /* 0: the processor only has FXSAVE */
	uint64_t errno_address, errno_value;
	uint64_t pending;
	uint64_t state; /* address for XSAVE, a multiple of 64, of zeroes */
	uint64_t action[4];
};

#define INJECT_AT(type, member, offset)                                                            \
	_Static_assert(offsetof(struct type, member) == (offset), "what inject_code.S uses")

INJECT_AT(inject_frame, mask, FRAME_MASK);
INJECT_AT(inject_frame, interrupts, FRAME_INTERRUPTS);
INJECT_AT(inject_frame, flags, FRAME_FLAGS);
INJECT_AT(inject_frame, rax, FRAME_RAX);
INJECT_AT(inject_frame, rip, FRAME_RIP);
INJECT_AT(area_head, first, AREA_FIRST);
INJECT_AT(area_head, errno_location, AREA_ERRNO);
INJECT_AT(area_head, xsave, AREA_XSAVE);
INJECT_AT(area_head, errno_address, AREA_ERRNO_ADDRESS);
INJECT_AT(area_head, errno_value, AREA_ERRNO_VALUE);
INJECT_AT(area_head, pending, AREA_PENDING);
INJECT_AT(area_head, state, AREA_STATE);
INJECT_AT(area_head, action, AREA_ACTION);
INJECT_AT(step, code, STEP_CODE);
INJECT_AT(step, arg, STEP_ARGS);
INJECT_AT(step, result, STEP_RESULT);
INJECT_AT(step, loads, STEP_LOADS);
INJECT_AT(step, fails, STEP_FAILS);
INJECT_AT(step, otherwise, STEP_OTHERWISE);
_Static_assert(sizeof(struct step) == STEP_BYTES, "what inject_code.S uses");

/*
 * The code, to be copied. It is entered with rsp at a struct inject_frame, r12 the size of the
 * area, and the registers of rt_sigprocmask(SIG_BLOCK, &frame->block, &frame->mask, 8).
 */
extern const uint8_t inject_code[], inject_code_end[];
/* After its mmap, after the system call of a step, at the begin of a step (with the registers that
 * inject_code.S tells of), and size_t length(const char *) in it. */
extern const uint8_t inject_code_mapped[], inject_code_stepped[], inject_code_step[],
	inject_code_length[];

#endif
