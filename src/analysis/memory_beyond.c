// SPDX-License-Identifier: MIT
#include "analysis/memory_beyond.h"

#include <string.h>

bool memory_is_in_nvml(enum api_memory kind)
{
	return kind == MEMORY_DEVICE || kind == MEMORY_ASYNC || kind == MEMORY_ARRAY ||
	       kind == MEMORY_VMM;
}

bool memory_is_of_nccl(const struct stack *stack)
{
	for (size_t i = 0; stack && i < stack->n_frames; i++) {
		const struct stack_frame *frame = stack->frames[i];

		if ((frame->module && strstr(frame->module, "libnccl")) ||
		    (frame->function && !strncmp(frame->function, "nccl", 4)))
			return true;
	}
	return false;
}

void memory_beyond_take(struct memory_beyond *beyond, uint64_t gpu_bytes, uint64_t by_calls,
                        uint64_t nccl_bytes)
{
	bool any = beyond->told && beyond->first_rest >= 0;

	beyond->told = true;
	beyond->gpu_bytes = gpu_bytes;
	beyond->by_calls = by_calls;
	beyond->nccl_bytes = nccl_bytes;
	beyond->rest_bytes = (int64_t)(gpu_bytes - by_calls);
	if (!any)
		beyond->first_rest = beyond->rest_bytes;
}
