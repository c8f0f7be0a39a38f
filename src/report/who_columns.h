/* SPDX-License-Identifier: MIT */
/* Columns that tell who processes are, for tables with a row a process: those that any of them has.
 */
#pragma once

#include "base/buf.h"
#include "report/report.h"
#include "table/table.h"
#include "trace/event.h"

/* A part of a row. */
struct who_words {
	const char *words[RUN_IDENTITY_WORDS];
};

void who_words_of(const struct run_info *run, uint32_t pid, uint64_t begin_ns,
                  struct who_words *who);

/*
 * Writes columns to `into`, of which there has to be room for RUN_IDENTITY_WORDS, and returns how
 * many. `offset`: of the struct who_words in a row. `page`: headings of a page, whose json has all
 * words.
 */
size_t who_columns(const struct run_info *run, unsigned offset, bool page,
                   struct table_column *into);

/* ---- names --------------------------------------------------------------------------------- */

/* What things are called in reports. Names as Nsight Systems has them. */

/* Appends a kernel's name in the form asked for; a mangled name that is not known is the name. */
void add_kernel_name(struct buf *out, const struct kernel *kernel, enum kernel_names names);

/* Appends a function's name without a version that the runtime's callbacks have, "_v7000". */
void add_function_name(struct buf *out, const struct function *function);

/* "[CUDA memcpy Host-to-Device]", "[CUDA memset]"; NULL for a kernel. */
const char *operation_name(const struct activity *activity);
