/* SPDX-License-Identifier: MIT */
/*
 * What must be known of a process before one of its threads is borrowed. Can it be entered at all?
 * Where are its loader's functions? Is the library there already? Where can the code lie? All of it
 * is read from outside; nobody is stopped.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/inject.h"
#include "base/err.h"

struct thread_stacks; /* inject_stack.h */

struct inject_target {
	pid_t pid;
	uint64_t start_time; /* 0: of any process that has the pid */
	pid_t alive; /* a thread whose /proc tells of the memory: that of a main thread that has
	              * ended does not */
	int memory;  /* /proc/PID/mem: stays with this program even if the process execs another */
	uint64_t dlopen, dlsym, dlerror, errno_location; /* addresses of functions */
	uint64_t mode;                                   /* for dlopen */
	uint64_t loaded;    /* the function, where the library is there already; else 0 */
	uint64_t code;      /* place for the code */
	bool code_is_there; /* left by an earlier one */
	uint64_t looked_ns; /* when it was looked at */
	struct thread_stacks *stacks;
	size_t holding; /* threads that were let go again, for what they were in */
	size_t reads;   /* those that were, since tables of a file were to be read first */
};

/*
 * Looks at the process. 0, or a negative errno with a sentence for the user; -ESTALE when it
 * changed meanwhile (exec) and is to be looked at again.
 */
int target_look(const struct inject_options *options, struct inject_target *target,
                struct err *err);
void target_close(struct inject_target *target);

/* All of it or false; also false once the process has another program. */
bool target_read(const struct inject_target *target, uint64_t address, void *to, size_t bytes);
bool target_write(const struct inject_target *target, uint64_t address, const void *from,
                  size_t bytes);

/* Why a thread cannot be traced, as a sentence. `code` is ptrace's errno. -ESTALE: look again. */
int target_refused(pid_t pid, pid_t tid, int code, struct err *err);

/* The tracer of a thread, 0 if none. */
pid_t target_tracer(pid_t pid, pid_t tid);

/* How little ptrace is allowed; 3 stays until the machine is booted. */
int target_yama_scope(void);
