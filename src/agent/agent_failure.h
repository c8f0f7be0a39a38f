/* SPDX-License-Identifier: MIT */
/* Why an agent gives no GPU times, for the user: what is wrong, and what to do about it. */
#ifndef CUSCOPE_AGENT_AGENT_FAILURE_H
#define CUSCOPE_AGENT_AGENT_FAILURE_H

#include <sys/types.h>

#include "agent/wire.h"
#include "base/buf.h"

/* Appends one sentence about `failure`. What the target wrote is cleaned for terminals. */
void agent_failure_text(struct buf *out, pid_t pid, const struct agent_shared *shared);

#endif
