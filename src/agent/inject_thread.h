/* SPDX-License-Identifier: MIT */
/*
 * Which thread of a process can be borrowed, and when: one that waits in a system call that no
 * allocator, no loader and nobody who holds their locks waits in. It is asked for, and shown by
 * /proc, without stopping anything. CUDA's own thread, which sits in poll(), is such a one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/inject_target.h"
#include "base/err.h"

#define RANK_MAIN 10 /* added for the main thread, which people time */
#define RANK_LAST 20 /* from here on: only when nothing else is found for a while */

struct waiting {
	pid_t tid;
	unsigned rank; /* the lower, the less it is missed and the safer it is */
	long call;     /* the system call that it waits in */
	uint64_t arg[6];
	uint64_t sp, pc; /* its stack and instruction pointer there */
};

/*
 * The threads that wait harmlessly, best first, at most `room`. Returns their number, or -ESRCH.
 * *threads is the number of all, *stopped those that SIGSTOP or a debugger keeps.
 */
int waiting_list(pid_t pid, struct waiting *list, size_t room, size_t *threads, size_t *stopped);

/* The call that a thread waits in, without its rank; false where it runs, or is gone. */
bool thread_call(pid_t pid, pid_t tid, struct waiting *waiting);

/* The tid of thread number `i` of the process, modulo their number; 0 if there is none. */
pid_t thread_number(pid_t pid, size_t i);

/* Whether a thread that enters this call may be stopped there and borrowed before it. */
bool is_harmless_entry(pid_t pid, pid_t tid, long call, const uint64_t arg[6]);

/* Whether it is one of the calls that waiting_list takes, arguments apart. */
bool is_harmless_wait(long call);

/* What /proc/PID/task/TID/status tells. */
struct thread_status {
	uint64_t pending, blocked, caught; /* signals */
	unsigned seccomp;                  /* its mode */
};
bool thread_status_of(pid_t pid, pid_t tid, struct thread_status *status);

/* Whether it may be running a handler, of which nobody knows what it interrupted. */
bool may_be_in_handler(const struct thread_status *status);

/* Stopping one thread of a target by ptrace, and letting it go. */

enum inject_stop { STOP_CALL, STOP_SIGNAL, STOP_TRAP, STOP_GROUP, STOP_GONE, STOP_LATE };

/* Is its tracer from then on. 0; -EAGAIN: another may do; else a negative errno with a sentence. */
int thread_seize(const struct inject_target *target, pid_t tid, struct err *err);

/* Waits for the thread's next stop. SIGCHLD is blocked: it is what ends the sleep. */
enum inject_stop thread_next_stop(pid_t tid, uint64_t until_ns, int *sig);

/* Lets a stopped thread go. `sig`: it was about to get that signal. -EAGAIN. */
int thread_let_go(pid_t tid, int sig);
