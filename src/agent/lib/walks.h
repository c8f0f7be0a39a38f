/* SPDX-License-Identifier: MIT */
/*
 * Stacks of calls that are recorded here. They are walked by cuscope's eBPF programs, at a probe in
 * a function that does nothing; so what a walk costs, the trap included, is paid where one is due,
 * and by nobody else.
 */
#pragma once

#include "agent/lib/probe_capture.h"

/* WIRE_WALK_FUNCTION of bpf/wire.h: of a node only the first two are looked at. */
void cuscope_agent_walk(uint64_t what, uint64_t kind, uint64_t pc, uint64_t sp, uint64_t fp);

/* How often, by the session's memory. */
struct wire_due walks_due(const struct agent_shared *shared);

/* With the thread taken, of a call that is in no other, right before it begins. `entry`: of its
 * function. Sets WIRE_WALKED where it is due. */
void walks_ask(const struct probe_session *session, struct probe_thread *thread,
               struct probe_call *call, uint64_t entry, const struct thunk_frame *frame);
