// SPDX-License-Identifier: MIT
/* GPUs of which nothing is known yet, the names of what they tell, and counts of their Xids. */
#include "base/array.h"
#include "gpus/gpu_state.h"
#include "gpus/gpus.h"

const struct gpu gpu_unknown = {
	.busy_percent = GPU_UNKNOWN,
	.memory_used_bytes = GPU_UNKNOWN,
	.memory_total_bytes = GPU_UNKNOWN,
	.power_mw = GPU_UNKNOWN,
	.power_limit_mw = GPU_UNKNOWN,
	.temperature_c = GPU_UNKNOWN,
	.sm_percent = GPU_UNKNOWN,
	.tensor_percent = GPU_UNKNOWN,
	.dram_percent = GPU_UNKNOWN,
	.compute_major = GPU_UNKNOWN,
	.compute_minor = GPU_UNKNOWN,
	.multiprocessors = GPU_UNKNOWN,
	.clock_hz = GPU_UNKNOWN,
	.memory_bandwidth = GPU_UNKNOWN,
};

const char *gpu_throttle_name(uint64_t *reasons)
{
	/* nvmlClocksEventReason*, from the lowest bit */
	static const char *const names[] = {
		"gpu_idle",     "application_clocks",  "sw_power_cap",        "hw_slowdown",
		"sync_boost",   "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake",
		"display_clock"
	};
	unsigned bit;

	if (!*reasons)
		return NULL;
	bit = (unsigned)__builtin_ctzll(*reasons);
	if (bit < ARRAY_SIZE(names)) {
		*reasons &= *reasons - 1;
		return names[bit];
	}
	*reasons = 0;
	return "other";
}

void gpu_state_unknown(struct gpu_state *state, uint32_t index)
{
	*state = (struct gpu_state){ .index = index };
	for (size_t i = 0; i < GPU_VALUES; i++)
		state->value[i] = GPU_UNKNOWN;
	for (size_t i = 0; i < GPU_METRICS; i++)
		state->metrics.value[i] = GPU_UNKNOWN;
}

void gpu_xids_add_code(struct gpu_xids *xids, uint32_t code, uint64_t count)
{
	uint32_t i = 0;

	while (i < xids->n_codes && xids->codes[i].code != code)
		i++;
	if (i == GPU_STATE_XIDS_MAX) { /* the last place is for all others */
		i--;
		xids->codes[i].code = 0;
	}
	if (i == xids->n_codes) {
		xids->codes[i].code = code;
		xids->codes[i].count = 0;
		xids->n_codes++;
	}
	xids->codes[i].count += count;
}
