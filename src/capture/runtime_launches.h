/* SPDX-License-Identifier: MIT */
/*
 * Whether launches are looked at in the runtime, too (layer auto). The runtime refuses some by
 * itself, and those never reach the driver. Where the driver does not work (no device, too old)
 * these are all, until it has been seen to work. What is asked for by the first launch, which
 * initialises CUDA, is one call that lasts: the probe is there until it has returned. Where calls
 * fail as if launches would, or the program asks for the words of such an error (of a launch that
 * it was refused), the probes are put back.
 */
#pragma once

#include "probe/modules.h"
#include "probe/programs.h"

struct runtime_launches;

struct runtime_launches_options {
	struct modules *modules;
	struct programs *programs;
	const struct selection *selection;
	bool returns;
};

struct runtime_launches *runtime_launches_new(const struct runtime_launches_options *options);
void runtime_launches_free(struct runtime_launches *launches);

/* To be told of each call. */
void runtime_launches_called(struct runtime_launches *launches, const struct wire_call *call);

/*
 * Whether it is a launch that came to the driver while those that do not are not looked at: where
 * no agent of its process counts them either, that is to be known. False from then on.
 */
bool runtime_launches_overlook(const struct runtime_launches *launches,
                               const struct wire_call *call);
void runtime_launches_overlooked(struct runtime_launches *launches);

/* module_hook_group() of all modules, with their lock; what fails is told. */
void launches_hook(struct modules *modules, enum hook_group group, bool hook);

/* Whether a thread is in a call of a hook of this group: its return would be lost with the probe.
 */
bool launches_are_open(const struct modules *modules, struct programs *programs,
                       enum hook_group group);

/* Tells, once and with the modules' lock, that some were overlooked. */
void runtime_launches_tell(struct runtime_launches *launches);

/* Does what is due. Returns a sentence for the user, or NULL. */
const char *runtime_launches_turn(struct runtime_launches *launches, uint64_t now_ns);
