/* SPDX-License-Identifier: MIT */
/* `cuscope profile --diff`: two profiles that were written as folded stacks. */
#ifndef CUSCOPE_CLI_PROFILE_DIFF_H
#define CUSCOPE_CLI_PROFILE_DIFF_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct profile_diff_options {
	const char *before, *after; /* files */
	const char *output;         /* NULL: as text on standard output */
	bool force;
	mode_t output_mode; /* 0: as base/file.h has it */
};

/* Whether it is a regular file, and begins as a trace. */
bool profile_begins_as_trace(const char *path);

/* Whether there are two files, and the output has a form that shows both. */
int profile_diff_check(const struct profile_diff_options *options, struct err *err);

/* Returns the exit status. */
int profile_diff_run(const struct profile_diff_options *options, struct err *err);

#endif
