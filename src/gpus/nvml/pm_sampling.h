/* SPDX-License-Identifier: MIT */
/*
 * All GPUs sampled, as stretches by the time of this machine, within a bound of CPU: readings and
 * samples become fewer where they cost more.
 */
#ifndef CUSCOPE_GPUS_NVML_PM_SAMPLING_H
#define CUSCOPE_GPUS_NVML_PM_SAMPLING_H

#include "gpus/nvml/pm.h"

#define PM_SAMPLING_TURN_NS 10000000ull

struct pm_sampling;

/* Between two samples of one GPU; of several each has as many times as much. NULL with a sentence
 * in `why`. */
struct pm_sampling *pm_sampling_new(const char *folders, uint64_t interval_ns, char *why,
                                    size_t size);

/* How many are sampled, and how many there are. */
uint32_t pm_sampling_gpus(const struct pm_sampling *sampling);
uint32_t pm_sampling_all(const struct pm_sampling *sampling);

/*
 * Once in PM_SAMPLING_TURN_NS: reads a GPU, of those that are sampled, if that is due, and sends
 * what came of it. It is due the more rarely, the more a reading costs. Where one has failed, it is
 * begun anew after a while, and `why` says so meanwhile.
 */
void pm_sampling_turn(struct pm_sampling *sampling, uint32_t index, char *why, size_t size);

#endif
