/* SPDX-License-Identifier: MIT */
/* Stopping one thread of a target by ptrace, and letting it go. */
#ifndef CUSCOPE_AGENT_INJECT_STOP_H
#define CUSCOPE_AGENT_INJECT_STOP_H

#include <stdint.h>
#include <sys/types.h>

#include "agent/inject_target.h"
#include "base/err.h"

enum stop { STOP_CALL, STOP_SIGNAL, STOP_TRAP, STOP_GROUP, STOP_GONE, STOP_LATE };

/* Is its tracer from then on. 0; -EAGAIN: another may do; else a negative errno with a sentence. */
int thread_seize(const struct inject_target *target, pid_t tid, struct err *err);

/* Waits for the thread's next stop. SIGCHLD is blocked: it is what ends the sleep. */
enum stop thread_next_stop(pid_t tid, uint64_t until_ns, int *sig);

/* Lets a stopped thread go. `sig`: it was about to get that signal. -EAGAIN. */
int thread_let_go(pid_t tid, int sig);

#endif
