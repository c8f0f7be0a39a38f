/* SPDX-License-Identifier: MIT */
/* How a run went, as it is kept in a trace file. */
#pragma once

#include "base/buf.h"
#include "trace/event.h"

/* The payload of a CHUNK_RUN or CHUNK_END. */
void run_write(const struct run_info *run, struct buf *raw);

#define RUN_MISSES_MAX 65536 /* that are read: hooks are 16,384 */

/* A run_info with all that it points at. */
struct kept_run {
	struct run_info info;
	char *writer;         /* which program wrote the file: "cuscope 0.1.0"; NULL: not known */
	uint64_t over_budget; /* misses beyond RUN_MISSES_MAX, which are not in `info` */
};

/* A later one replaces what an earlier one said. False where it is damaged. */
bool run_read(struct kept_run *run, const uint8_t *raw, size_t bytes);
void run_free(struct kept_run *run);
