/* SPDX-License-Identifier: MIT */
/*
 * The summary of a run: calls, launches, memory, transfers, errors, functions, kernels, and what
 * was missed. A consumer; its memory is bounded by the number of functions, kernels and live
 * allocations, not by the number of events.
 */
#ifndef CUSCOPE_ANALYSIS_CALLS_H
#define CUSCOPE_ANALYSIS_CALLS_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "trace/event.h"

struct calls_options {
	FILE *text;        /* where end() prints "=== TRACE SUMMARY ==="; NULL: nowhere */
	const char *json;  /* path that end() writes the same to as JSON, atomically; NULL: no */
	mode_t json_mode;  /* of that file; 0: FILE_MODE */
	FILE *json_stream; /* the same JSON to a stream; NULL: nowhere */
	bool color;
	bool apart;   /* an empty line first: something else stands above */
	size_t width; /* columns of the terminal, 0: cut nothing */
	size_t top;   /* rows of each table; 0: 20 */
};

struct consumer *calls_new(const struct calls_options *options);

/* Prints the text as it is so far, to options.text; `calls` is what calls_new returned. */
int calls_print(struct consumer *calls, const struct run_info *run, struct err *err);

#endif
