/* SPDX-License-Identifier: MIT */
/* What is said below a profile: what it lacks, and what in it is estimated. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "cli/cli.h"
#include "profile/collect.h"
#include "stack/lines/source_lines.h"
#include "unwind/unwinder.h"

#define PROFILE_NOTES_MAX 24

struct profile_notes {
	char *text[PROFILE_NOTES_MAX];
	size_t n;
};

/* What of a trace file could not be read. */
void profile_notes_of_file(const struct run_info *run, struct profile_notes *notes);

/* What walking took, where a profile was taken. */
void profile_notes_of_tables(const struct code_figures *code, struct profile_notes *notes);
void profile_notes_of_lines(const struct source_lines_figures *lines, struct profile_notes *notes);

/* -EINVAL, and a sentence with the endings that there are. */
int profile_no_form(const char *path, struct err *err);

/* Folded stacks have no room for how whole they are: it is said on standard error. */
void profile_say_completeness(const struct profile *profile, const char *path);

bool profile_is_empty(const struct profile *profile);

/*
 * Why a profile has nothing: no process was there; of a trace file (`run`, else NULL) what of it
 * was chosen, and what else it has.
 */
void profile_notes_of_nothing(const struct profile *profile, const struct collect_figures *figures,
                              const struct cli_range *range, const struct run_info *run,
                              struct profile_notes *notes);

/* Of a profile that has had its end(). */
void profile_notes_of(const struct collect_figures *figures, struct profile_notes *notes);
void profile_notes_free(struct profile_notes *notes);

/* ---- profile diff --------------------------------------------------------------------------- */

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
