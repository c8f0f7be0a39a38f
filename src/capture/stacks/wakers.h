/* SPDX-License-Identifier: MIT */
/*
 * Processes that targets wait for and that are none: workers that were there before, a server on
 * the same machine. Once that is worth it, their samples and blocked time are told as well.
 * Nothing else is done to them: no probe, no agent, and their children are nobody's.
 *
 * Who wakes a target's thread is the target's to choose: so a process is sampled only where the one
 * that it woke could look into it by itself (probe/person.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/wire_stacks.h"
#include "probe/programs.h"
#include "trace/stack.h"

#define WAKERS_WAITED_NS 10000000ull   /* for one process, within: */
#define WAKERS_WINDOW_NS 1000000000ull /* so at least a hundredth of the time */
#define WAKERS_DEPTH     3             /* who woke a target, who woke that one, and once more */

struct wakers;

struct wakers_options {
	struct programs *programs; /* loaded with stacks */
	bool (*is_target)(void *data, pid_t pid);
	void (*notice)(void *data, const char *text);
	void *data;
};

struct wakers *wakers_new(const struct wakers_options *options);
void wakers_free(struct wakers *wakers); /* NULL is allowed */

/* Each record, in order: who woke whom, and who has ended. */
void wakers_record(struct wakers *wakers, const struct wire_head *record);

/* Now and then: whether those that are sampled still may be. */
void wakers_turn(struct wakers *wakers, uint64_t now_ns);

/* Processes that had no room. */
uint64_t wakers_without_room(const struct wakers *wakers);

/* ---- wait of ------------------------------------------------------------------------------- */

/* What a thread waited for, from what the programs saw of it as it left the CPU. */

/* `stack`: in which it waited; NULL: not known. Of 32-bit programs the calls are not known. */
enum wait_kind wait_of(const struct wire_blocked *record, const struct stack *stack);
