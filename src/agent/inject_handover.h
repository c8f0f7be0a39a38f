/* SPDX-License-Identifier: MIT */
/* What passes between the tracer and a borrowed thread that has made its descriptors. */
#ifndef CUSCOPE_AGENT_INJECT_HANDOVER_H
#define CUSCOPE_AGENT_INJECT_HANDOVER_H

#include "agent/inject_trace.h"

/*
 * Takes our ends of its sockets, fills its memfd, and gives it the word to go on, which it does
 * once it is let go. 0 or a negative errno with a sentence; what was taken then stays in
 * `borrowed`.
 */
int handover(const struct inject_options *options, const struct inject_target *target, pid_t tid,
             const struct plan *plan, uint64_t base, struct borrowed *borrowed, struct err *err);

#endif
