// SPDX-License-Identifier: MIT
#include "trace/stack.h"

const char *stack_end_text(enum stack_end end)
{
	static const char *const texts[STACK_END_COUNT] = {
		[STACK_WHOLE] = "",
		[STACK_TOO_DEEP] = "deeper than is kept",
		[STACK_NO_MAPPING] = "code that no file is known for",
		[STACK_NO_TABLE] = "a file without unwind tables",
		[STACK_NO_RULE] = "a place without an unwind rule",
		[STACK_UNREADABLE] = "stack memory that could not be read",
		[STACK_BAD] = "a frame that led nowhere",
		[STACK_BY_POINTERS] = "frame pointers where code has no unwind tables",
	};

	return end < STACK_END_COUNT ? texts[end] : "";
}

const char *blocked_name(enum blocked blocked)
{
	static const char *const names[BLOCKED_COUNT] = {
		[BLOCKED_UNKNOWN] = "unknown",     [BLOCKED_WOKEN] = "woken",
		[BLOCKED_INTERRUPT] = "interrupt", [BLOCKED_STILL] = "still",
		[BLOCKED_BEFORE] = "before",       [BLOCKED_BRIEF] = "brief",
		[BLOCKED_SKIPPED] = "skipped",
	};

	return blocked < BLOCKED_COUNT ? names[blocked] : "";
}
