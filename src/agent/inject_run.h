/* SPDX-License-Identifier: MIT */
/* One injection from begin to end, in the process that does it. */
#ifndef CUSCOPE_AGENT_INJECT_RUN_H
#define CUSCOPE_AGENT_INJECT_RUN_H

#include "agent/inject.h"

#define INJECT_COMM "cuscope-attach" /* of that process */

/* Blocks until it is over, at most options->limit_ns. As inject_result. SIGCHLD is to
 * be blocked. */
int inject_run(const struct inject_options *options, struct inject_result *result, struct err *err);

#endif
