/* SPDX-License-Identifier: MIT */
/* Answers of recordings, for `cuscope why`. */
#ifndef CUSCOPE_CLI_WHY_H
#define CUSCOPE_CLI_WHY_H

#include "report/why.h"
#include "trace/reader.h"

/* How an answer is to look. */
struct why_options cli_why_form(bool json, const char *color);

/*
 * One answer for all that were recorded at the same time on one machine, one after the other; what
 * is wrong with a file keeps nobody from the others. Returns the exit status.
 */
int cli_why_files(const struct why_options *form, char *const *paths, size_t n);

#endif
