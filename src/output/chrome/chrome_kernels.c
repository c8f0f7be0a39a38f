// SPDX-License-Identifier: MIT
/*
 * What a kernel's args say, as Kineto has them. How well it can fill a GPU follows from what a
 * multiprocessor has room for; which of the machine's GPUs it ran on is known where they are alike.
 */
#include <string.h>

#include "base/number.h"
#include "output/chrome/chrome.h"

#define ADD(out, text) buf_add(out, text, sizeof(text) - 1)

static bool are_alike(const struct run_info *run)
{
	for (size_t i = 1; i < run->n_gpus; i++) {
		const struct run_gpu *a = &run->gpus[0], *b = &run->gpus[i];

		if (a->multiprocessors != b->multiprocessors || a->major != b->major ||
		    a->minor != b->minor)
			return false;
	}
	return run->n_gpus > 0;
}

void chrome_gpu_of_run(struct chrome_gpu *gpu, const struct run_info *run)
{
	memset(gpu, 0, sizeof(*gpu));
	if (!are_alike(run))
		return;
	gpu->multiprocessors = run->gpus[0].multiprocessors;
	gpu->limits = gpu_limits(run->gpus[0].major, run->gpus[0].minor);
}

void chrome_add_triple(struct buf *out, const char *key, const uint32_t dims[3])
{
	buf_puts(out, key);
	for (int i = 0; i < 3; i++) {
		buf_puts(out, i ? ", " : "[");
		buf_u64(out, dims[i]);
	}
	buf_putc(out, ']');
}

static void add_real(struct buf *out, const char *key, double value)
{
	buf_puts(out, key);
	buf_fixed(out, number_u64(value * 1e6), 6);
}

static double volume(const uint32_t dims[3])
{
	return (double)dims[0] * dims[1] * dims[2];
}

static void add_share(struct buf *out, const struct chrome_gpu *gpu, const struct activity *a)
{
	double threads = volume(a->block), blocks;
	double each = volume(a->grid) / gpu->multiprocessors;

	add_real(out, ", \"blocks per SM\": ", each);
	add_real(out, ", \"warps per SM\": ", each * threads / GPU_THREADS_PER_WARP);
	if (!gpu->limits || threads > GPU_THREADS_PER_BLOCK)
		return;
	blocks = gpu_resident_blocks(gpu->limits, (uint64_t)threads, a->registers,
	                             (uint64_t)a->shmem_static + a->shmem_dynamic);
	blocks = blocks < each ? blocks : each;
	ADD(out, ", \"est. achieved occupancy %\": ");
	buf_u64(out, number_rounded(100 * blocks * threads /
	                            (gpu->limits->warps * GPU_THREADS_PER_WARP)));
}

/* When it was queued CUPTI tells only where that is asked for, at a cost: 0, as in Kineto. */
void chrome_add_kernel(struct buf *out, const struct chrome_gpu *gpu, const struct activity *a)
{
	ADD(out, ", \"queued\": 0, \"registers per thread\": ");
	buf_u64(out, a->registers);
	ADD(out, ", \"shared memory\": ");
	buf_u64(out, (uint64_t)a->shmem_static + a->shmem_dynamic);
	if (gpu->multiprocessors)
		add_share(out, gpu, a);
	chrome_add_triple(out, ", \"grid\": ", a->grid);
	chrome_add_triple(out, ", \"block\": ", a->block);
}
