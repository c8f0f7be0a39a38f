/* SPDX-License-Identifier: MIT */
/*
 * What GPUs ran, where no work was recorded but when a GPU was busy (GPU_METRICS_STRETCHES): each
 * stretch becomes a work, of the call that it can be of. Private to src/account.
 */
#pragma once

#include "account/facts.h"

struct fact_busy { /* of a GPU, one after the other */
	uint64_t begin_ns, end_ns;
	uint32_t gpu;          /* as nvidia-smi counts them */
	uint16_t busy, copies; /* shares, as of gpu_metrics.h */
};

/* After the rest was put in order. Works are in order then, too. */
void facts_busy_make_works(struct facts *facts);
