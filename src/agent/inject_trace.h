/* SPDX-License-Identifier: MIT */
/*
 * The moment under ptrace: one thread is stopped where it waits, gets the code and the steps, is
 * followed until its descriptors are there, and is let go. Everything that is written before its
 * registers is written where nobody looks: below its stack, behind its code. Everything after is
 * the thread's own doing. So a tracer that is killed at any point leaves a thread that goes back.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "agent/inject_plan.h"
#include "agent/inject_target.h"
#include "agent/inject_thread.h"
#include "base/err.h"

struct borrowed {
	pid_t tid;
	/* CLOCK_MONOTONIC: the thread was stopped, looked at, had its descriptors, and was let go
	 * to work through the steps. */
	uint64_t since_ns, looked_ns, opened_ns, free_ns;
	int socket;     /* our end of what the function is given */
	int report;     /* our end of what tells how it went */
	uint64_t mark;  /* see struct plan */
	uint64_t frame; /* struct inject_frame, and */
	uint64_t base;  /* struct area, in the target */
	bool may_read;  /* its filters let it call process_vm_readv */
};

/*
 * Tries a thread that waits. 0; -EAGAIN when it is no longer where it was, and another may do;
 * other negative errnos with a sentence. Whatever comes back, nobody is stopped any more.
 */
int borrow_waiting(const struct inject_options *options, struct inject_target *target,
                   const struct waiting *waiting, uint64_t deadline_ns, struct borrowed *borrowed,
                   struct err *err);

/* The same with a thread that runs, when it enters a harmless call before `until_ns`. */
int borrow_running(const struct inject_options *options, struct inject_target *target, pid_t tid,
                   uint64_t until_ns, uint64_t deadline_ns, struct borrowed *borrowed,
                   struct err *err);

/*
 * Gives up a borrowed thread that waits for a lock which does not come free: what it is in is left
 * in the middle, it closes what it has of ours and goes back to its call. False: it is left as it
 * is, since it does something, or nobody can tell what.
 */
bool give_back(const struct inject_target *target, const struct borrowed *borrowed);
