/* SPDX-License-Identifier: MIT */
/*
 * Runs machine code on a given state of registers and memory, in a process of its own, and tells
 * the state at its end: where it jumps to the exit, or where it faults.
 */
#ifndef CUSCOPE_TESTS_ENTRY_RUN_H
#define CUSCOPE_TESTS_ENTRY_RUN_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum run_register {
	RUN_RAX,
	RUN_RCX,
	RUN_RDX,
	RUN_RBX,
	RUN_RSP,
	RUN_RBP,
	RUN_RSI,
	RUN_RDI,
	RUN_R8,
	RUN_R15 = RUN_R8 + 7,
	RUN_REGISTERS
};

#define RUN_MEMORY 8192                    /* of a process, that its code uses */
#define RUN_FLAGS  0xcd5u                  /* those of arithmetic, and the direction */
#define RUN_TRAP   0x100u                  /* a signal after each instruction */
#define RUN_VECTOR (32 * sizeof(uint64_t)) /* xmm0 to xmm15 */

struct run_state {
	uint64_t reg[RUN_REGISTERS];
	uint64_t flags;
	uint64_t rip; /* of a fault; 0: it came to the exit */
	int signal;
	int steps; /* taken with RUN_TRAP */
	uint8_t vector[RUN_VECTOR];
	uint8_t memory[RUN_MEMORY];
};

/* The exit that code jumps to. */
void run_exit(void);

/*
 * Called after each instruction that ran with RUN_TRAP in the flags; may set another rip, and takes
 * the flag away by returning false.
 */
typedef bool (*run_step)(uint64_t *rip, int step, void *data);

struct run {
	uint64_t entry;
	uint8_t *memory; /* where state->memory is put before, and taken from after */
	run_step step;
	void *data;
};

/* `state` is what it begins with, and becomes what it ends with. False where the process died. */
bool run_code(const struct run *run, struct run_state *state);

#endif
