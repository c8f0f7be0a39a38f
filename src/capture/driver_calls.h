/* SPDX-License-Identifier: MIT */
/*
 * System calls of targets to devices of the NVIDIA driver (--kernel): records of the programs
 * become events of calls of LAYER_KERNEL.
 */
#pragma once

#include "capture/pipeline.h"
#include "probe/programs.h"

struct driver_calls;

/* From now on they are recorded. The pipeline lives longer. */
int driver_calls_new(struct programs *programs, struct pipeline *pipeline,
                     struct driver_calls **calls, struct err *err);
void driver_calls_free(struct driver_calls *calls);

/* No more are recorded; those that threads are in are handed to `each`, as unfinished. */
void driver_calls_stop(struct driver_calls *calls, programs_record_fn each, void *data);

/* A record of type WIRE_DRIVER_CALL, in its order. */
int driver_calls_record(struct driver_calls *calls, const struct wire_head *record,
                        struct err *err);

/* Now and then: a module may be loaded later, with a device that has another number. */
void driver_calls_turn(struct driver_calls *calls, uint64_t now_ns);

uint64_t driver_calls_seen(const struct driver_calls *calls);
