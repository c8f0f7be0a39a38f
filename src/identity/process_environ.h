/* SPDX-License-Identifier: MIT */
/* Variables of an environment, as /proc/PID/environ has it: NAME=VALUE, each with a NUL. */
#ifndef CUSCOPE_IDENTITY_PROCESS_ENVIRON_H
#define CUSCOPE_IDENTITY_PROCESS_ENVIRON_H

#include <stdbool.h>
#include <stddef.h>

#define PROCESS_VARIABLES 64 /* that can be looked for at once */

struct process_variable {
	const char *name;
	char *value; /* "" where there is none; made harmless, and cut to its room */
	size_t room;
};

/* At most PROCESS_VARIABLES of them. As getenv does, the first of a name counts. The block need not
 * end with a NUL. */
void process_environ_find(const char *block, size_t bytes, const struct process_variable *wanted,
                          size_t n);

/* Bytes of a stranger as text, up to a NUL: what is no character or a control is \xNN, and what
 * does not fit into `room` is left out from the first character on that does not. */
void process_text(char *to, size_t room, const char *from, size_t bytes);

#endif
