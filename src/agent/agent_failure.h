/* SPDX-License-Identifier: MIT */
/* What the user is to know of an agent: why it gives no GPU times and what to do about it. */
#pragma once

#include <sys/types.h>

#include "agent/wire.h"
#include "base/buf.h"

/* Appends one sentence about `failure`. What the target wrote is cleaned for terminals. */
void agent_failure_text(struct buf *out, pid_t pid, const struct agent_shared *shared);

/* Appends what a user can do about a CUptiResult, after a colon; mostly nothing. */
void agent_failure_advice(struct buf *out, int32_t code);

/* Appends what is to be known of one that is in `state` and did not fail; mostly nothing. */
void agent_note_text(struct buf *out, pid_t pid, enum agent_state state,
                     const struct agent_shared *shared);
