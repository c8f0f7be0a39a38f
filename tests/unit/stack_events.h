/* SPDX-License-Identifier: MIT */
/* Stacks of one line of Python, or of native code, and samples of them, for tests. */
#ifndef TESTS_UNIT_STACK_EVENTS_H
#define TESTS_UNIT_STACK_EVENTS_H

#include "support.h"

/* The stack of this line, "step (train.py:LINE)"; line 0: of native code, "wait (app)". */
static inline const struct stack *stack_of_line(uint32_t line)
{
	static struct stack_frame frames[64];
	static const struct stack_frame *pointers[64];
	static struct stack stacks[64];
	static uint32_t n;

	for (uint32_t i = 0; i < n; i++) {
		if (frames[i].line == line)
			return &stacks[i];
	}
	assert_true(n < 64);
	frames[n] = (struct stack_frame){ .id = n,
		                          .kind = line ? FRAME_PYTHON : FRAME_NATIVE,
		                          .function = line ? "step" : "wait",
		                          .module = line ? NULL : "app",
		                          .file = line ? "/home/ann/train.py" : NULL,
		                          .line = line };
	pointers[n] = &frames[n];
	stacks[n] = (struct stack){ .id = n, .n_frames = 1, .frames = &pointers[n] };
	return &stacks[n++];
}

static inline struct sample sample_of(enum sample_kind kind, double us, const struct stack *stack)
{
	return (struct sample){ .kind = kind, .weight_ns = (uint64_t)(us * 1000), .stack = stack };
}

static inline struct event sample_event(const struct process *process, uint32_t tid, double at_us,
                                        const struct sample *sample)
{
	return (struct event){ .type = EVENT_SAMPLE,
		               .time_ns = US(at_us),
		               .process = process,
		               .tid = tid,
		               .sample = sample };
}

#endif
