/* SPDX-License-Identifier: MIT */
/*
 * What a thread is in, by its stack, before it is borrowed: one that waits within an allocator or
 * the loader may hold their locks, and would wait for itself for good when it loads a library.
 *
 * Its stack is walked by the tables of the files that it has mapped, while it is stopped. They are
 * read when no one is: a walk that needs one more is made again after that.
 *
 *   thread_stacks_new                the files of the process
 *   thread_stacks_look               of a thread that is stopped
 *   thread_stacks_read               after STACK_LATER, when it goes on
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "probe/maps.h"

struct thread_stacks;

enum stack_tells {
	STACK_FREE,    /* it is in no function that holds such locks */
	STACK_HOLDS,   /* it is in one */
	STACK_UNKNOWN, /* as far as could be seen in none */
	STACK_LATER,   /* thread_stacks_read, and another look */
};

/* Where a walk begins. */
struct stack_registers {
	uint64_t pc, sp, fp, r10;
};

/* Of its executable mappings, in order of address; they are copied. */
struct thread_stacks *thread_stacks_new(const struct mapping *mappings, size_t n);
void thread_stacks_free(struct thread_stacks *stacks);

/* `memory`: /proc/PID/mem. */
enum stack_tells thread_stacks_look(struct thread_stacks *stacks, int memory,
                                    const struct stack_registers *registers);
/* Reads the file that was missing; `pid` is a task of the process. */
void thread_stacks_read(struct thread_stacks *stacks, pid_t pid);

/* Whether a function of that name holds locks of an allocator or the loader, or may. */
bool thread_stacks_name_holds(const char *name);
