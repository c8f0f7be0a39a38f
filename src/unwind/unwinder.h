/* SPDX-License-Identifier: MIT */
/*
 * Keeps the eBPF programs told of what processes have mapped, so that they can walk their stacks:
 * files are read and processes looked at on a thread of its own, one after the other.
 *
 *   unwinder_see(unwinder, pid);        at first sight, and when something new is mapped
 *   unwinder_execed(unwinder, pid, ns); it has become another program
 *   unwinder_forget(unwinder, pid);     it has ended
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "bpf/wire_stacks.h"
#include "unwind/code_tables.h"
#include "unwind/python_code.h"

struct unwinder;

struct unwinder_maps { /* of the programs, by their names there; they stay the caller's */
	int code, python, files, rules;
};

struct unwinder_told {                         /* each may be NULL */
	void (*looked)(void *data, pid_t pid); /* at a process, with news */
	code_tables_marked marked;
	void *data;
};

/* They are told on that thread. */
int unwinder_new(const struct unwinder_maps *maps, const struct unwinder_told *told,
                 struct unwinder **unwinder, struct err *err);

/* Takes a moment where a file is being read whose file system does not answer. */
void unwinder_free(struct unwinder *unwinder);

/* Ends its thread, and what it put into targets; all that is known stays. */
void unwinder_stop(struct unwinder *unwinder);

/*
 * Asks for a look at what the process has mapped. A process is looked at once in 20 ms at most,
 * and less and less often, down to once in 10 s, while looks bring nothing new.
 */
void unwinder_see(struct unwinder *unwinder, pid_t pid);

/* The same of what is known to be there, and somebody waits for: however little new its last looks
 * brought, and though a look is under way, which leaves what it has not read to the next. */
void unwinder_hurry(struct unwinder *unwinder, pid_t pid);

/* The same at once, and waits for it; false when that took longer. On any thread. */
bool unwinder_look(struct unwinder *unwinder, pid_t pid, uint64_t most_ns);

/* At `time_ns` (CLOCK_MONOTONIC): what was seen later is of the new program already. */
void unwinder_execed(struct unwinder *unwinder, pid_t pid, uint64_t time_ns);
void unwinder_forget(struct unwinder *unwinder, pid_t pid);

/* Waits until all that was asked for is done; false when that took longer. */
bool unwinder_wait(struct unwinder *unwinder, uint64_t most_ns);

/* The Python that a process runs; NULL: none that is known. On any thread. */
const struct python_layout *unwinder_python(struct unwinder *unwinder, pid_t pid);

struct unwinder_figures {
	struct code_figures code;
	uint64_t without_room;   /* processes that there was no room for */
	uint64_t cut;            /* processes with more executable mappings than are kept */
	uint64_t unknown_python; /* processes with a Python whose frames are not read */
};

void unwinder_figures(struct unwinder *unwinder, struct unwinder_figures *figures);

/* ---- splice -------------------------------------------------------------------------------- */

/*
 * Native frames and frames of Python of one thread were walked apart; here they become one stack.
 * An invocation of Python's evaluator is a native frame that holds, somewhere between its stack
 * pointer and its CFA, the anchor of the frames of Python that it runs. It gives way to them.
 */

static inline enum wire_entry_kind entry_kind(const struct wire_entry *entry)
{
	return entry->b >> ENTRY_KIND_AT;
}

/*
 * Puts `n` entries, the native ones from stack pointer `sp` on, as the programs sent them (kernel,
 * native, Python with anchors) in their order from the innermost on, into `out` of
 * STACK_ENTRIES_MAX; the number of them is returned. Anchors are gone from it.
 *
 * Where an anchor is in no frame, or the version of Python has none, `is_evaluator` (may be NULL)
 * tells whether the native frame at an address is one, and frames are put there in turn; those
 * that are left stand outside of all native ones, as where the walk of these was cut, and *loosely
 * is set.
 */
size_t stack_splice(const struct wire_entry *entries, size_t n, uint64_t sp, struct wire_entry *out,
                    bool (*is_evaluator)(void *data, const struct wire_entry *native), void *data,
                    bool *loosely);
