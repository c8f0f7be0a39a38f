/* SPDX-License-Identifier: MIT */
/* One injection from begin to end, in the process that does it. */
#pragma once

#include "agent/inject.h"
#include "agent/inject_trace.h"

#define INJECT_COMM "cuscope-attach" /* of that process */

/* Blocks until it is over, at most options->limit_ns. As inject_result. SIGCHLD is to
 * be blocked. */
int inject_run(const struct inject_options *options, struct inject_result *result, struct err *err);

/* What passes between the tracer and a borrowed thread that has made its descriptors. */

/*
 * Takes our ends of its sockets, fills its memfd, and gives it the word to go on, which it does
 * once it is let go. 0 or a negative errno with a sentence; what was taken then stays in
 * `borrowed`.
 */
int handover(const struct inject_options *options, const struct inject_target *target, pid_t tid,
             const struct plan *plan, uint64_t base, struct borrowed *borrowed, struct err *err);
