/* SPDX-License-Identifier: MIT */
/*
 * Into a process that runs: loads a library there and calls a function of it, once, on one of the
 * process's own threads that was waiting in a system call.
 *
 * A process of its own, cuscope-attach, does the work. So cuscope's end leaves no target half
 * changed, and its use of ptrace does not meet the one in src/probe/hold.c. It ends by itself.
 * Should it be killed as well, at any moment, the borrowed thread goes back to its call.
 *
 *   inject.c           the interface, and that process
 *   inject.c   whether there is any use in trying
 *   inject_run.c       one injection from begin to end
 *   inject_target.c    what must be known of the process: loader, earlier copy, place for the code
 *   inject_thread.c    which of its threads can be borrowed
 *   inject_stack.c     whether its stack shows that it holds locks of the allocator or the loader
 *   inject_seccomp.c   whether a filter would mind
 *   inject_trace.c     the moment under ptrace, a fraction of a millisecond
 *   inject_run.c  descriptors and the library's bytes, in that moment
 *   inject_plan.c      what the thread does then, as a table
 *   inject_code.S      the machine code that works through it and puts everything back
 *
 * What stays in the target: the library's mappings, and some 500 bytes in the unused end of a page
 * of code (the vdso's, as a rule), which the next one uses again. No descriptor, no thread, no
 * other memory. x86-64 only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct inject;

struct inject_options {
	pid_t pid;
	uint64_t start_time; /* (base/process.h) of who is meant by that; 0: of whoever has it */
	const void *library; /* a shared object's bytes: they go into a memfd of the target */
	size_t bytes;
	const char *name; /* of the memfd: the same name and bytes there already are used again */
	/*
	 * int function(int socket): 0 or a negative errno; the socket is its own in any case. It
	 * runs on the borrowed thread, with 256 KiB of stack and all signals blocked, and is to
	 * return soon: that thread's own work waits. It must not wait for locks that the thread may
	 * hold already: the thread may have been about to enter the driver. So it makes a thread,
	 * which inherits the blocked signals. It may be called again in the same process, later.
	 */
	const char *function;
	uint64_t limit_ns; /* for all of it */
};

/* What the borrowed thread's time goes to, one after the other. */
enum inject_part {
	INJECT_LOOK, /* stopping it, and whether its stack and its filters let it be taken */
	INJECT_OPEN, /* it makes memory and descriptors, followed call by call */
	INJECT_FILL, /* these are taken, and the library's bytes are written */
	INJECT_LOAD, /* dlopen */
	INJECT_CALL, /* the function */
	INJECT_PARTS
};

struct inject_result {
	int socket; /* our end of a SOCK_SEQPACKET pair whose other end the function was given */
	/* How long the one borrowed thread was away from its own call: from its stop until it had
	 * loaded the library, called the function and cleaned up. No other thread is stopped. */
	uint64_t stopped_ns, part_ns[INJECT_PARTS];
	/* Whether the thread's seccomp filters let it call process_vm_readv, if it has any. */
	bool may_read;
};

/* Whether this process may enter others at all; if not, why, as "needs ptrace, which ...". */
int inject_allowed(struct err *err);

/* Begins. Only fails where no process can be made. */
int inject_begin(const struct inject_options *options, struct inject **inject, struct err *err);

int inject_fd(const struct inject *inject); /* readable when it is over */

/*
 * The outcome, to be asked for when inject_fd is readable. 0: the socket of the result is the
 * caller's, who never receives by it, and has helper_let_go close it: the target made it, and can
 * have put anything in. Else a negative errno with a sentence: no permission, a static program, no
 * safe point ...
 */
int inject_result(struct inject *inject, struct inject_result *result, struct err *err);

void inject_free(struct inject *inject);
