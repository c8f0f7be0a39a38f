// SPDX-License-Identifier: MIT
#include "analysis/gpu_ids.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

struct gpu_ids {
	uint64_t known[GPU_IDS_MAX]; /* process and number */
	uint32_t n, last;
};

struct gpu_ids *gpu_ids_new(void)
{
	return xcalloc(1, sizeof(struct gpu_ids));
}

void gpu_ids_free(struct gpu_ids *ids)
{
	free(ids);
}

/* There are few of them, and most activities are of the one before. */
uint32_t gpu_ids_of(struct gpu_ids *ids, const struct event *event)
{
	uint64_t gpu = (uint64_t)event->process->id << 32 | event->activity->device;

	if (ids->n && ids->known[ids->last] == gpu)
		return ids->last;
	for (uint32_t i = 0; i < ids->n; i++) {
		if (ids->known[i] == gpu)
			return ids->last = i;
	}
	if (ids->n == GPU_IDS_MAX)
		return GPU_ID_NONE;
	ids->known[ids->n] = gpu;
	return ids->last = ids->n++;
}

uint32_t gpu_ids_count(const struct gpu_ids *ids)
{
	return ids->n;
}

/* ncclKernel_AllReduce_... to NCCL 2.18, ncclDevKernel_... since; "void ncclKernel<...>" and
 * mangled names do not begin with it. */
bool kernel_name_is_communication(const char *name)
{
	return !strncmp(name, "nccl", 4) || strstr(name, "ncclKernel") ||
	       strstr(name, "ncclDevKernel");
}
