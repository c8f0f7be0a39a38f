/* SPDX-License-Identifier: MIT */
/*
 * What each GPU did, one after the other: kernels before kernels that communicate before copies,
 * else nothing.
 */
#ifndef CUSCOPE_ACCOUNT_GPU_TIME_H
#define CUSCOPE_ACCOUNT_GPU_TIME_H

#include "account/facts.h"

enum gpu_state { STATE_KERNELS, STATE_COMMUNICATION, STATE_COPIES, STATE_IDLE };

struct gpu_segment {
	uint64_t begin_ns, end_ns;
	uint32_t work; /* that ran; STATE_IDLE: that ended it. n_works: none */
	uint8_t state; /* enum gpu_state */
};

struct gpu_time {
	struct gpu_segment *segments;
	size_t n, room;
	size_t first, last; /* its works */
	bool communicates;
	size_t near;        /* see facts_later() */
	uint64_t *joins_ns; /* by segment: when the next kernel of communication begins */
};

/* By the facts' numbers of GPUs; of one that ran nothing n is 0. Without holes from the first work
 * to the last, or, where its process did not end, to the end of the recording. */
struct gpu_time *gpu_times_new(const struct facts *facts);
void gpu_times_free(struct gpu_time *gpus, const struct facts *facts);

/* The segment that a time is in: the first that ends later; n: none. */
size_t gpu_time_at(struct gpu_time *gpu, uint64_t time_ns);

#endif
