/* SPDX-License-Identifier: MIT */
/*
 * Jumps that others have put before probes in targets: another cuscope that records inside, or a
 * tool that does the like. Calls go the way of the jump, and do not come to the probe. Nobody says
 * so to who has the probe, so its targets are looked at now and then, and what is found is told.
 */
#pragma once

#include "capture/inside/inside.h"
#include "probe/modules.h"
#include "probe/programs.h"

struct foreign_jumps;

struct foreign_jumps *foreign_jumps_new(struct modules *modules, struct programs *programs,
                                        const uint64_t *begin_ns);
void foreign_jumps_free(struct foreign_jumps *jumps);

/* A part of a look, where one is due. `inside` (or NULL) has jumps of our own. */
void foreign_jumps_turn(struct foreign_jumps *jumps, struct inside *inside);

/* How often some were found, in a file of a process. */
uint64_t foreign_jumps_found(const struct foreign_jumps *jumps);

/* The last look, at all targets that there are still, if it does not take too long. */
void foreign_jumps_finish(struct foreign_jumps *jumps, struct inside *inside);
