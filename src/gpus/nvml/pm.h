/* SPDX-License-Identifier: MIT */
/*
 * CUPTI's PM sampling of GPUs: their counters, read by the hardware at an interval, whatever
 * process uses them. Nothing is loaded into one, and no context is made here.
 */
#pragma once

#include "gpus/gpu_metrics.h"

struct pm;     /* the libraries */
struct pm_gpu; /* a GPU that is sampled */

/* `folders`: where libraries are looked for first. NULL with a sentence in `why`. */
struct pm *pm_open(const char *folders, char *why, size_t size);

/* As nvidia-smi counts them. */
uint32_t pm_gpus(const struct pm *pm);

/* Begins to sample. NULL with a sentence in `why`. */
struct pm_gpu *pm_start(struct pm *pm, uint32_t index, uint64_t interval_ns, char *why,
                        size_t size);
void pm_stop(struct pm_gpu *gpu);

/* Goes on with as long between two samples as this; false: it does not, and has to be stopped. */
bool pm_pace(struct pm_gpu *gpu, uint64_t interval_ns);

enum pm_reading {
	PM_READ,   /* all that there was */
	PM_MORE,   /* there is more, or some was lost for want of room */
	PM_LOST,   /* the hardware's buffer was full: some samples are lost */
	PM_FAILED, /* nothing comes of it any more */
};

/*
 * Gives `each` the samples that came, by the GPU's clock, and tells how many, and when it began to
 * decode: what was there by then was decoded.
 */
enum pm_reading pm_read(struct pm_gpu *gpu,
                        void (*each)(void *data, const struct pm_sample *sample), void *data,
                        size_t *n, uint64_t *begun_ns);

/* Samples that one reading has room for at least. */
#define PM_READ_MOST 300

/* ---- pm sampling ---------------------------------------------------------------------------- */

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
