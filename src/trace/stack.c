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
		[BLOCKED_SKIPPED] = "skipped",     [BLOCKED_PREEMPTED] = "preempted",
	};

	return blocked < BLOCKED_COUNT ? names[blocked] : "";
}

const char *wait_kind_name(enum wait_kind wait)
{
	static const char *const names[WAIT_COUNT] = {
		[WAIT_CPU] = "cpu",       [WAIT_DISK] = "disk",   [WAIT_NETWORK] = "network",
		[WAIT_PIPE] = "pipe",     [WAIT_LOCK] = "lock",   [WAIT_SLEEP] = "sleep",
		[WAIT_FAULT] = "fault",   [WAIT_SWAP] = "swap",   [WAIT_DEVICE] = "device",
		[WAIT_EVENTS] = "events", [WAIT_CHILD] = "child", [WAIT_STOP] = "stop",
		[WAIT_CALL] = "call",
	};

	return wait < WAIT_COUNT ? names[wait] : NULL;
}
