/* SPDX-License-Identifier: MIT */
/*
 * The summary of a run: calls, launches, memory, transfers, errors, functions, kernels, and what
 * was missed. A consumer; its memory is bounded by the number of functions, kernels and live
 * allocations, not by the number of events.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "trace/event.h"

struct summary_options {
	FILE *text;        /* where end() prints "=== TRACE SUMMARY ==="; NULL: nowhere */
	const char *json;  /* path that end() writes the same to as JSON, atomically; NULL: no */
	mode_t json_mode;  /* of that file; 0: FILE_MODE */
	FILE *json_stream; /* the same JSON to a stream; NULL: nowhere */
	bool color;
	bool apart;        /* an empty line first: something else stands above */
	size_t width;      /* columns of the terminal, 0: cut nothing */
	size_t top;        /* rows of each table; 0: 20 */
	struct work *work; /* which calls asked for what ran, fed before this; NULL: none is */
};

struct consumer *summary_new(const struct summary_options *options);

/* Prints the text as it is so far, to options.text; `summary` is what summary_new returned. */
int summary_print(struct consumer *summary, const struct run_info *run, struct err *err);
