/* SPDX-License-Identifier: MIT */
/*
 * How many stacks of a trace are whole, and why the others are not: a stack counts as often as a
 * sample or call has it.
 */
#pragma once

#include "base/json.h"
#include "trace/event.h"

struct stack_counts {
	uint64_t ends[STACK_END_COUNT]; /* by how they end; STACK_WHOLE: the python_cut, too */
	uint64_t python_cut; /* of STACK_WHOLE: they reach the begin, and frames of Python are
	                        missing */
	uint64_t without; /* samples and times blocked that have none; sums of times have no need */
};

/* Takes samples and calls, and leaves other events alone. */
void stack_counts_event(struct stack_counts *counts, const struct event *event);

/* With a stack and without. */
uint64_t stack_counts_all(const struct stack_counts *counts);
/* To the begin, and with every frame. */
uint64_t stack_counts_whole(const struct stack_counts *counts);
/* To the begin, but maybe without a frame: in code that has no unwind tables, Go's with it. */
uint64_t stack_counts_begun(const struct stack_counts *counts);
/* "whole", or where some only reach their begin "reach their begin": what those of the last are. */
const char *stack_counts_word(const struct stack_counts *counts);

/* Appends "3 end in a file without unwind tables; 1 has none"; nothing where all are whole. */
void stack_counts_add_cut(const struct stack_counts *counts, struct buf *out);

/* Appends "366 of 372 stacks are whole; 3 end in ..." or "... reach their begin; 360 rely on frame
 * pointers..."; nothing where there is no stack. */
void stack_counts_text(const struct stack_counts *counts, struct buf *out);

/*
 * Appends "whole", "python_cut" and "without", and "cut" with a number for each reason, by the
 * words of stack_end_text(), to an open object.
 */
void stack_counts_json(const struct stack_counts *counts, struct json *json);
