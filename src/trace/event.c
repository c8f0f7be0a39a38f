// SPDX-License-Identifier: MIT
#include "trace/event.h"

static const char *const texts[LOST_COUNT] = {
	[LOST_RING_FULL] = "ring full: the reader did not keep up (--ring-size makes it larger)",
	[LOST_THREADS_FULL] = "more threads or processes than there is room for",
	[LOST_NO_ENTRY] = "returns of calls that began before the trace",
	[LOST_TOO_DEEP] = "nested too deep to be followed",
	[LOST_UNREADABLE] = "calls with arguments in memory that could not be read",
	[LOST_LATE] = "delivered too late for their place in time (shown out of order)",
	[LOST_GPU_RING] = "GPU times: the target's ring was full (--ring-size makes it larger)",
	[LOST_GPU_BUFFERS] = "GPU times: CUPTI had no buffer left",
	[LOST_GPU_TIMES] = "GPU times: activities with impossible times, left out",
};

const char *lost_reason_text(enum lost_reason reason)
{
	return reason < LOST_COUNT ? texts[reason] : "?";
}

uint64_t run_scaled(const struct run_info *run, uint64_t count)
{
	double scaled = (double)count * run->estimate_scale + 0.5;

	if (run->estimate_scale <= 1)
		return count;
	return scaled < 0x1p64 ? (uint64_t)scaled : UINT64_MAX;
}
