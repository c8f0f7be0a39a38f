/* SPDX-License-Identifier: MIT */
/*
 * Brings launches and the kernels that ran for them together, by process and correlation. Either
 * can come first: a kernel that ended before its launch returned does; but most kernels are known
 * late, up to seconds after their launch. Launches wait in a table of pairs.h, however many were made
 * since; the last JOIN_KEPT kernels that came first do.
 */
#ifndef CUSCOPE_ANALYSIS_JOIN_H
#define CUSCOPE_ANALYSIS_JOIN_H

#include "trace/event.h"

#define JOIN_KEPT 262144

struct join_launch {
	const struct process *process;
	uint32_t tid;
	const struct function *function;
	uint64_t correlation;
	uint64_t begin_ns, end_ns; /* end: 0 where it is not known */
};

/* Both are valid during the call only. */
typedef int (*join_pair)(void *data, const struct join_launch *launch,
                         const struct activity *activity, struct err *err);

struct join;

struct join *join_new(join_pair pair, void *data);
void join_free(struct join *join);

/* Follows one event of any kind; passes on what `pair` returned where that is not 0. */
int join_event(struct join *join, const struct event *event, struct err *err);

/* Kernels so far whose launch was not seen, or was too long ago. */
uint64_t join_unmatched(const struct join *join);

#endif
