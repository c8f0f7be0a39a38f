/* SPDX-License-Identifier: MIT */
/* A process with one function that is to be diverted. Its thunk counts, and goes on. */
#ifndef CUSCOPE_TESTS_ONE_TARGET_H
#define CUSCOPE_TESTS_ONE_TARGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "divert/divert.h"

/* What the target and we share. */
struct one_shared {
	uint8_t thunk[64];
	int (*function)(int *);
	uint64_t area;
	atomic_int ready, go, pid;
	atomic_ulong thunks, calls, wrong;
};

struct one_target {
	const char *library;
	struct divert_module module;
	struct divert_function function;
	struct one_shared *shared;
	pid_t pid;
	uint64_t area, thunk;
	uint8_t file[16]; /* its first bytes */
};

/* `body` is what it does (NULL: it waits), once the library is loaded; it does not return. */
void one_target_start(struct one_target *target, const char *library,
                      void (*body)(struct one_shared *));

/* The same with something first, by which it may become another process: shared->pid. */
void one_target_start_as(struct one_target *target, const char *library,
                         void (*first)(struct one_shared *), void (*body)(struct one_shared *));
void one_target_end(struct one_target *target);

/* A plan for the function; the thunk is then written. */
struct divert_plan *one_target_look(struct one_target *target, struct divert *divert);

bool one_target_is_as_in_file(const struct one_target *target);

_Noreturn void one_target_fail(const char *what, const char *why);

#endif
