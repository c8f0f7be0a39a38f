/* SPDX-License-Identifier: MIT */
/* Columns that tell who processes are, for tables with a row a process: those that any of them has.
 */
#ifndef CUSCOPE_REPORT_WHO_COLUMNS_H
#define CUSCOPE_REPORT_WHO_COLUMNS_H

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

#endif
