// SPDX-License-Identifier: MIT
#include "kernels.h"

#include <string.h>

#include "block.h"
#include "peers.h"

/* Memory that a kernel may touch, or NULL. */
static float *floats(uint64_t address, uint64_t count)
{
	struct block block;
	if (count == 0)
		return (float *)address;
	if (!block_find(address, count * sizeof(float), BLOCK_ON_DEVICE | BLOCK_PINNED, &block))
		return NULL;
	return (float *)address;
}

static uint64_t count_of(uint64_t param, uint64_t threads)
{
	int n = (int)param;
	uint64_t count = n > 0 ? (uint64_t)n : 0;
	return count < threads ? count : threads;
}

/* vectorAdd(const float *a, const float *b, float *c, int n): c[i] = a[i] + b[i] */
static CUresult vector_add(const uint64_t *params, uint64_t threads)
{
	uint64_t n = count_of(params[3], threads);
	const float *a = floats(params[0], n), *b = floats(params[1], n);
	float *c = floats(params[2], n);
	if (n && (!a || !b || !c))
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	for (uint64_t i = 0; i < n; i++)
		c[i] = a[i] + b[i];
	return CUDA_SUCCESS;
}

/* saxpy(float a, const float *x, float *y, int n): y[i] += a * x[i] */
static CUresult saxpy(const uint64_t *params, uint64_t threads)
{
	uint64_t n = count_of(params[3], threads);
	const float *x = floats(params[1], n);
	float *y = floats(params[2], n);
	float a;
	if (n && (!x || !y))
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	memcpy(&a, &params[0], sizeof(a));
	for (uint64_t i = 0; i < n; i++)
		y[i] += a * x[i];
	return CUDA_SUCCESS;
}

/* Of the simulated libnccl: where its communicator's ranks meet; its own rank, and how many. */
static CUresult meet(const uint64_t *params, uint64_t threads)
{
	(void)threads;
	peers_meet_at((struct peers *)params[0], (uint32_t)params[1], (uint32_t)(params[1] >> 32));
	return CUDA_SUCCESS;
}

static const struct known_kernel known_kernels[] = {
	{ "_Z9vectorAddPKfS0_Pfi", 4, { 8, 8, 8, 4 }, vector_add },
	{ "_Z5saxpyfPKfPfi", 4, { 4, 8, 8, 4 }, saxpy },
	{ "ncclDevKernel_Broadcast_RING_LL", 2, { 8, 8 }, meet },
	{ "ncclDevKernel_Reduce_Sum_f32_RING_LL", 2, { 8, 8 }, meet },
	{ "ncclDevKernel_AllGather_RING_LL", 2, { 8, 8 }, meet },
	{ "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL", 2, { 8, 8 }, meet },
	{ "ncclDevKernel_AllReduce_Sum_f32_TREE_LL", 2, { 8, 8 }, meet },
	{ "ncclDevKernel_SendRecv", 2, { 8, 8 }, meet },
};

const struct known_kernel *known_kernel_find(const char *name)
{
	for (size_t i = 0; i < sizeof(known_kernels) / sizeof(known_kernels[0]); i++) {
		if (strcmp(known_kernels[i].name, name) == 0)
			return &known_kernels[i];
	}
	return NULL;
}
