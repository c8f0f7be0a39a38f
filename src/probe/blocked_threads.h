/* SPDX-License-Identifier: MIT */
/*
 * How long threads of targets are blocked: the programs on the scheduler's tracepoints, and what
 * they do not tell because it has not come to its end.
 */
#pragma once

#include <sys/types.h>

#include "base/err.h"
#include "bpf/wire_stacks.h"
#include "probe/programs.h"

struct blocked_threads;

struct blocked_threads *blocked_threads_new(struct programs *programs);
void blocked_threads_free(struct blocked_threads *threads); /* NULL is allowed */

/* A target that runs already: its threads may be blocked since before the begin. */
void blocked_threads_expect(struct blocked_threads *threads, pid_t pid);

/* How many of these there are; of those without room nobody tells if they stay blocked. */
size_t blocked_threads_older(const struct blocked_threads *threads, size_t *without_room);

int blocked_threads_begin(struct blocked_threads *threads, struct err *err);
void blocked_threads_end(struct blocked_threads *threads);

/* After the end: who is blocked still, and what was added up and not told yet. */
void blocked_threads_rest(struct blocked_threads *threads,
                          void (*each)(void *data, const struct wire_blocked *record), void *data);
