/* SPDX-License-Identifier: MIT */
/*
 * From the addresses of a stack to the functions and lines that they are of: native code, Python
 * and the kernel in one list. Each address of a process is looked up once.
 */
#pragma once

#include "bpf/wire_stacks.h"
#include "stack/lines/source_lines.h"
#include "trace/event.h"
#include "trace/stack.h"
#include "unwind/unwinder.h"

struct stack_names;

struct stack_names_options {
	struct unwinder *unwinder; /* is asked which Python a process runs */
	/* Source lines are looked up: nobody asks for them where it is no part of what is shown. */
	bool lines;
	/* stack_names_renew() is called when it is time: memory for stacks is half as much, since
	 * they are there twice for a moment. Not with lines, which are of frames that go then. */
	bool renews;
};

struct stack_names *stack_names_new(const struct stack_names_options *options);
void stack_names_free(struct stack_names *names);

/* Notes what a process has mapped while it is sure to be there. On any thread. */
void stack_names_look(struct stack_names *names, pid_t pid);

/*
 * The stack of a record. Reads files, and memory of the process for frames of Python that are new,
 * so it is asked soon. NULL where there is no room for more. It lives as long as `names`, or until
 * they are renewed.
 */
const struct stack *stack_names_find(struct stack_names *names, const struct process *process,
                                     const struct wire_stack_entries *record);

/*
 * PyTorch runs the backward pass on threads of its own. Such a stack, up to the engine's loop, with
 * that of who asked for the pass around it. NULL where there is no room, `stack` itself where it is
 * none of the engine's.
 */
const struct stack *stack_names_join(struct stack_names *names, const struct stack *stack,
                                     const struct stack *asked);

/*
 * A stack that was walked in the agent, within a call: as if it were walked where the call begins.
 * Of the frames of the agent, CUPTI, the driver and the runtime inside only the outermost stays, if
 * it is not the agent's: a walk may miss those between.
 * NULL where there is no room, or the walk came to its end within the call, as while what is mapped
 * is not known yet.
 */
const struct stack *stack_names_of_call(struct stack_names *names, const struct stack *stack);

/* The process has ended, or is another program now. */
void stack_names_forget(struct stack_names *names, const struct process *process);
void stack_names_execed(struct stack_names *names, const struct process *process);

/*
 * Gives back what nobody holds (options.renews). Between the two, who holds a stack has it moved,
 * on the account of a process by its number, and of whose that is; NULL where there is no room for
 * it. Then all others are gone.
 */
void stack_names_renew_begin(struct stack_names *names);
const struct stack *stack_names_move(struct stack_names *names, uint32_t process, uint64_t person,
                                     const struct stack *stack);
void stack_names_renew_end(struct stack_names *names);
bool stack_names_are_worn(const struct stack_names *names); /* it is time for that */

/*
 * Waits for lines and inlined functions that are still being looked up, for so long, and gives them
 * to the frames that they are of (trace/stack.h). Once, when all stacks were found.
 */
void stack_names_finish(struct stack_names *names, uint64_t ns);

/* Gives them those that are known by now: for who looks at stacks before the end. */
void stack_names_take_lines(struct stack_names *names);

/* A sentence on what could not be read, each once; false: there is none. */
bool stack_names_news(struct stack_names *names, char *text, size_t size);

struct stack_names_figures {
	size_t stacks;    /* that differ */
	uint64_t refused; /* frames, stacks and names that there was no room for */
	uint64_t loosely; /* stacks whose frames of Python are not where they should be for sure */
	struct source_lines_figures lines;
	uint64_t python_lost; /* frames of Python whose names could not be read */
	uint64_t late;        /* frames of native code whose names take too long to find */
};

void stack_names_figures(const struct stack_names *names, struct stack_names_figures *figures);
