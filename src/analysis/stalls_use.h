/* SPDX-License-Identifier: MIT */
/*
 * Why kernels waited, added up: by kernel and reason, and by instruction. Kernels of one name are
 * one, whoever ran them.
 */
#pragma once

#include <stddef.h>

#include "trace/event.h"

struct stalls_use;

struct stalls_use *stalls_use_new(void);
void stalls_use_free(struct stalls_use *use);

void stalls_use_add(struct stalls_use *use, const struct event *event); /* an EVENT_STALL */

/* Of all windows. */
struct stalls_all {
	uint64_t windows, ns;
	uint64_t samples;          /* that a kernel and a reason is known of, */
	uint64_t dropped, foreign; /* and those that none is; of kernels that are not told of */
	uint64_t cost_ns;          /* that CUPTI's calls took */
	uint64_t left_out;         /* among `samples`: there was no room for their row */
};
const struct stalls_all *stalls_use_all(const struct stalls_use *use);

/* A kernel and a reason; of places also an instruction, and the reason that most of its samples
 * have. */
struct stall_row {
	const char *kernel, *reason;
	uint64_t samples;
	uint64_t of_kernel; /* samples of the kernel for all reasons */
	/* Of places: */
	uint64_t cubin, offset; /* STALL_ANYWHERE: of several */
	uint64_t of_reason;
	const char *file; /* NULL: not known */
	uint32_t line;
};

/* Those with most samples first, of reasons by their kernels; the caller frees them. */
struct stall_row *stalls_use_reasons(const struct stalls_use *use, size_t *n);
struct stall_row *stalls_use_places(const struct stalls_use *use, size_t *n);

/*
 * The reason that a kernel waits for most often, where it does so in a tenth of its samples or
 * more; issuing is no waiting. False: there is none. `place` gets where it does so most often,
 * STALL_ANYWHERE where that is not known. Both point into `use`.
 */
bool stalls_use_longest(const struct stalls_use *use, const char *kernel, struct stall_row *row,
                        struct stall_row *place);

/* "waits for memory"; of one that is not known "waits". */
const char *stall_reason_words(const char *reason);
