/* SPDX-License-Identifier: MIT */
/* Why it does not work, for struct agent_shared. */
#pragma once

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "agent/wire.h"

struct failure {
	uint32_t what; /* enum agent_failure */
	int32_t code;
	char text[512];
};

/* Adds to the text, as far as there is room. */
__attribute__((format(printf, 2, 3))) static inline void failure_add(struct failure *failure,
                                                                     const char *format, ...)
{
	size_t length = strlen(failure->text);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(failure->text + length, sizeof(failure->text) - length, format, arguments);
	va_end(arguments);
}

/* Returns -1, for callers to return. */
static inline int failure_set(struct failure *failure, uint32_t what, int32_t code,
                              const char *text)
{
	failure->what = what;
	failure->code = code;
	failure->text[0] = '\0';
	failure_add(failure, "%s", text);
	return -1;
}
