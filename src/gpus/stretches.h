/* SPDX-License-Identifier: MIT */
/*
 * When a GPU was busy, of samples of its counters: each says for a short time for which share of it
 * kernels ran. Samples that say the same are one stretch. Where a stretch begins or ends within a
 * sample, the sample's share says where.
 */
#ifndef CUSCOPE_GPUS_STRETCHES_H
#define CUSCOPE_GPUS_STRETCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of shares GPU_SHARE_WHOLE is all; GPU_METRIC_UNKNOWN: not told. */
struct pm_sample {
	uint64_t begin_ns, end_ns;
	int64_t busy;   /* kernels ran for this share */
	int64_t copies; /* engines for copies did */
	int64_t sm, tensor, dram;
};

/*
 * Kernels ran all of the time (busy GPU_SHARE_WHOLE), none did (0), or for a share of it: where
 * in the stretch is not known then. Of time without kernels `copies` is all or nothing.
 */
struct gpu_stretch {
	uint64_t begin_ns, end_ns;
	int16_t busy, copies, sm, tensor, dram;
};

struct stretches {
	void (*each)(void *data, const struct gpu_stretch *stretch);
	void *data;
	struct pm_sample run;  /* what goes on: sums by time, not yet divided */
	struct pm_sample held; /* a sample in whose midst a stretch may begin or end */
	double sums[5];
	uint32_t n_run;
	int kind;
	bool any, holds;
};

/* Samples in their order; a hole between two ends what goes on. */
void stretches_add(struct stretches *stretches, const struct pm_sample *sample);

/* Gives away what goes on. */
void stretches_end(struct stretches *stretches);

#endif
