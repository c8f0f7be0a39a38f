// SPDX-License-Identifier: MIT
#include "analysis/gpu_ids.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "base/array.h"
#include "base/quota.h"
#include "base/xalloc.h"

struct gpu_ids {
	uint64_t known[GPU_IDS_MAX]; /* process and number */
	uint32_t n, last;
	struct quota taken;
};

struct gpu_ids *gpu_ids_new(void)
{
	return xcalloc(1, sizeof(struct gpu_ids));
}

void gpu_ids_free(struct gpu_ids *ids)
{
	if (ids)
		quota_free(&ids->taken);
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
	if (!quota_take_beside(&ids->taken, process_shares_with(event->process), GPU_IDS_MAX))
		return GPU_ID_NONE;
	ids->known[ids->n] = gpu;
	return ids->last = ids->n++;
}

uint32_t gpu_ids_count(const struct gpu_ids *ids)
{
	return ids->n;
}

/*
 * Kernels that wait for what others bring, by what their names have in them, which may be mangled:
 * of libraries, and of collectives that serving programs have written themselves. DeepEP's layouts
 * are computed, and are none.
 */
bool kernel_name_is_communication(const char *name)
{
	static const char *const words[] = {
		"ncclKernel",          /* NCCL to 2.18, and RCCL; */
		"ncclDevKernel",       /* since, */
		"ncclSymk",            /* of symmetric memory */
		"nvshmemi_",           /* NVSHMEM: barriers, and collectives on a stream */
		"cross_device_reduce", /* vLLM, SGLang */
		"oneShotAllReduce",    /* TensorRT-LLM; */
		"twoShotAllReduce",
		"allreduce_fusion", /* and FlashInfer, */
		"moereduce_allreduce",
		"one_shot_all_reduce", /* PyTorch's symmetric memory */
		"two_shot_all_reduce",
		"multimem_all_reduce",
		"multimem_one_shot",
		"multimem_all_gather",
		"userbuffers_", /* Transformer Engine */
		"mscclpp",
		"intranode::dispatch", /* DeepEP; mangled it has lengths between the words */
		"intranode::combine",
		"internode::dispatch",
		"internode::combine",
		"internode_ll::",
		"9intranode8dispatch",
		"9intranode7combine",
		"9internode8dispatch",
		"9internode7combine",
		"12internode_ll",
	};

	if (!strncmp(name, "nccl", 4))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strstr(name, words[i]))
			return true;
	return false;
}

bool kernel_is_communication(struct kernels_looked_at *looked_at, const struct kernel *kernel)
{
	enum { LOOKED_AT = 1, IS_COMMUNICATION = 2, WAS_RESOLVED = 4 };
	uint8_t *is = BY_ID(looked_at->by_id, looked_at->n, kernel->id);

	if (!*is || !(*is & WAS_RESOLVED) != !kernel->resolved) /* its name is another one then */
		*is = LOOKED_AT | (kernel->resolved ? WAS_RESOLVED : 0) |
		      (kernel->name && kernel_name_is_communication(kernel->name) ? IS_COMMUNICATION
		                                                                  : 0);
	return *is & IS_COMMUNICATION;
}
