/* SPDX-License-Identifier: MIT */
/*
 * The programs at system calls to devices of the NVIDIA driver: attached to their tracepoints, for
 * programs that were loaded with settings.driver_calls.
 */
#pragma once

#include "base/err.h"
#include "probe/programs.h"

struct driver_hooks;

/* Before the object is loaded: whether it has them, and their maps. */
struct bpf_object;
void driver_hooks_choose(struct bpf_object *object, bool wanted);

int driver_hooks_attach(struct programs *programs, struct driver_hooks **hooks, struct err *err);

/* The programs take no call for one of the driver's from now on; those that are open stay so. */
void driver_hooks_stop(struct programs *programs);

/* Nobody waits until they are away; after driver_hooks_stop() they do nothing meanwhile. */
void driver_hooks_detach(struct driver_hooks *hooks);

/* Which devices, and how much there is to read of UVM's ioctls: for the programs, at any time. */
void driver_hooks_tell(struct programs *programs, const struct wire_device devices[WIRE_DEVICES],
                       const struct wire_window windows[WIRE_UVM_NUMBERS]);

/* Hands the calls that threads are in at this moment to `each`, as unfinished, ended now. */
void driver_hooks_open_calls(struct programs *programs, programs_record_fn each, void *data);
