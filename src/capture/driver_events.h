/* SPDX-License-Identifier: MIT */
/*
 * What functions of the driver's modules tell (probe/driver_functions.h), as events: faults and
 * migrations of managed memory, waits, interrupts, Xids. They are calls of the layer `kernel`: a
 * sample of single ones, and sums of all, which come every tenth of a second. A sum or an Xid may
 * come when its process has ended: it has the time of its event, and is of who had the pid then. A
 * module that is loaded later is hooked then, and that is told. Where the kernel lets no program
 * onto functions of nvidia_uvm, the driver's own queues tell of managed memory (uvm_queues.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "bpf/wire_driver.h"
#include "capture/order.h"
#include "capture/pipeline.h"
#include "probe/programs.h"
#include "trace/event.h"

struct driver_events;

struct driver_events_options {
	struct programs *programs;
	struct pipeline *pipeline;
	struct order *order;
	const uint64_t *begin_ns; /* of the session, as far as it is known */
	bool all, cgroup;         /* as the programs' settings have them */
	size_t ring_bytes;        /* that users ask for; 0: nobody has */
	void (*notice)(void *data, const char *text);
	void *data;
};

struct driver_events *driver_events_new(const struct driver_events_options *options);
void driver_events_free(struct driver_events *events);

/* A target made a system call to the driver: it may be an address space of its own. */
void driver_events_call(struct driver_events *events, const struct wire_driver_call *call);

/* A target that uses CUDA already, and may have one. */
void driver_events_runs(struct driver_events *events, pid_t pid);

/* At each turn, before rings are read. */
void driver_events_turn(struct driver_events *events, uint64_t now_ns);

/* The last turn: nothing is hooked any more. */
void driver_events_finish(struct driver_events *events, uint64_t now_ns);

/* A record that came back in its order; false: it is none of these. */
bool driver_events_is(const struct wire_head *record);
int driver_events_record(struct driver_events *events, const struct wire_head *record,
                         struct err *err);

/* When the last event of a sum was: no later than now, and no earlier than the session's begin. */
uint64_t driver_sum_end_ns(const struct driver_sum *sum, uint64_t begin_ns, uint64_t now_ns);

/*
 * Whose an event is: of who had the pid at its time, even if it has ended. Of a target nobody heard
 * of yet, it is of a new process; else of the driver's. Never NULL.
 */
const struct process *driver_events_owner(struct pipeline *pipeline, uint32_t pid, uint64_t time_ns,
                                          bool is_target);

void driver_events_fill_lost(const struct driver_events *events, uint64_t lost[LOST_COUNT]);
