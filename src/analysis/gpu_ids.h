/* SPDX-License-Identifier: MIT */
/*
 * Dense ids of GPUs as processes number them, for arrays with something of each. Memory is bounded,
 * whatever a trace says: GPU_IDS_MAX get an id, and what runs on the others is left out.
 */
#pragma once

#include "trace/event.h"

#define GPU_IDS_MAX 256u
#define GPU_ID_NONE UINT32_MAX

struct gpu_ids;

struct gpu_ids *gpu_ids_new(void);
void gpu_ids_free(struct gpu_ids *ids);

/* Of an EVENT_ACTIVITY. GPU_ID_NONE where there are too many. */
uint32_t gpu_ids_of(struct gpu_ids *ids, const struct event *event);

/* How many there are, from 0. */
uint32_t gpu_ids_count(const struct gpu_ids *ids);

/* Whether a kernel's name, demangled or not, is one of NCCL's, of any version. */
bool kernel_name_is_communication(const char *name);

/* The same of kernels, each looked at once, and once more where it has been resolved since. */
struct kernels_looked_at {
	uint8_t *by_id; /* 0: not looked at */
	size_t n;
};

bool kernel_is_communication(struct kernels_looked_at *looked_at, const struct kernel *kernel);
