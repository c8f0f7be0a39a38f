/* SPDX-License-Identifier: MIT */
/*
 * What reports and exports have a row for beside what a file defines: threads, streams, the sizes
 * of kernels, rows of ranges. An event of six bytes can ask for another one,
 * so a reader passes on events of so many only.
 */
#ifndef CUSCOPE_TRACE_ROWS_H
#define CUSCOPE_TRACE_ROWS_H

#include "trace/event.h"

#define ROWS_OF_FILE (512u << 10)

struct kept_rows;

struct kept_rows *rows_new(uint32_t most);
void rows_free(struct kept_rows *rows);

/* False, and counted, for an event that asks for a row beyond the most. */
bool rows_take(struct kept_rows *rows, const struct event *event);

uint64_t rows_refused(const struct kept_rows *rows);

#endif
