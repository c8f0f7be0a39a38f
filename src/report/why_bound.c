// SPDX-License-Identifier: MIT
#include "report/why_bound.h"

#include <math.h>

#include "base/array.h"

#define BOUND_HIGH 60 /* percent, from which on a pipe is what all wait for */
#define BOUND_SOME 25
#define BOUND_LOW  5
#define BOUND_NEAR 10 /* and points that metrics and an account say otherwise of one GPU */

static const struct metrics_gpu *bound_gpu(const struct metrics_use *use, uint32_t gpu)
{
	size_t n;
	const struct metrics_gpu *gpus = metrics_use_gpus(use, &n);

	for (size_t i = 0; i < n; i++)
		if (gpus[i].gpu == gpu)
			return gpus[i].gpm ? &gpus[i] : NULL;
	return NULL;
}

static enum why_bound bound_find(const struct metrics_gpu *gpu)
{
	double tensor = metric_busy_mean(gpu, GPU_METRIC_TENSOR);
	double fp32 = metric_busy_mean(gpu, GPU_METRIC_FP32);
	double dram = metric_busy_mean(gpu, GPU_METRIC_DRAM);
	double sm = metric_busy_mean(gpu, GPU_METRIC_SM);

	if (isnan(tensor) || isnan(fp32) || isnan(dram) || isnan(sm))
		return BOUND_UNKNOWN;
	if (tensor >= BOUND_HIGH && tensor >= dram)
		return BOUND_TENSOR;
	if (dram >= BOUND_HIGH)
		return BOUND_DRAM;
	if (fp32 >= BOUND_SOME && tensor < BOUND_LOW)
		return BOUND_FP32_ALONE;
	if (fp32 >= BOUND_HIGH)
		return BOUND_FP32;
	return sm < BOUND_HIGH ? BOUND_SMALL : BOUND_LATENCY;
}

enum why_bound why_bound_of(const struct metrics_use *use, uint32_t gpu)
{
	const struct metrics_gpu *of = bound_gpu(use, gpu);

	return of ? bound_find(of) : BOUND_UNKNOWN;
}

/* Percent of an account in which kernels ran. */
static double account_kernels(const struct account *account)
{
	double ns = account_ns(account, ACCOUNT_KERNELS, ACCOUNT_KERNELS) +
	            account_ns(account, ACCOUNT_COMMUNICATION, ACCOUNT_COMMUNICATION);

	return account->ns > 0 ? 100 * ns / account->ns : 0;
}

/* Bits of those that it can be. */
static uint32_t gpus_of(const struct run_info *run, const struct process *process)
{
	const struct run_identity *identity =
		run_identity_of(run, machine_pid(process), run->end_ns);

	return identity && identity->gpus ? identity->gpus : UINT32_MAX;
}

uint32_t why_bound_used(const struct run_info *run, const struct process *process)
{
	uint32_t gpus = gpus_of(run, process);

	return gpus & (gpus - 1) ? FACTS_NONE : (uint32_t)__builtin_ctz(gpus);
}

uint32_t why_bound_gpu(const struct metrics_use *use, const struct run_info *run,
                       const struct account *account)
{
	uint32_t may_be = gpus_of(run, account->process);
	size_t n;
	const struct metrics_gpu *gpus = metrics_use_gpus(use, &n);
	double kernels = account_kernels(account);
	uint32_t found = FACTS_NONE;

	if (n == 1)
		return gpus[0].gpu;
	for (size_t i = 0; i < n; i++) {
		double busy = metric_mean(&gpus[i], GPU_METRIC_GRAPHICS);
		uint32_t bit = gpus[i].gpu < 32 ? 1u << gpus[i].gpu : 0;

		if (may_be == bit)
			return gpus[i].gpu;
		if (may_be != UINT32_MAX && !(may_be & bit))
			continue;
		if (!(fabs(busy - kernels) <= BOUND_NEAR))
			continue;
		if (found != FACTS_NONE &&
		    why_bound_of(use, found) != why_bound_of(use, gpus[i].gpu))
			return FACTS_NONE;
		if (found == FACTS_NONE || gpus[i].gpu == account->device)
			found = gpus[i].gpu;
	}
	return found;
}

static const struct {
	const char *name, *text;
	enum gpu_metric metric;
} bounds[] = {
	[BOUND_TENSOR] = { "tensor", "its tensor cores", GPU_METRIC_TENSOR },
	[BOUND_FP32] = { "fp32", "its FP32 pipes", GPU_METRIC_FP32 },
	[BOUND_FP32_ALONE] = { "fp32_alone", "its FP32 pipes, while the tensor cores are idle",
	                       GPU_METRIC_FP32 },
	[BOUND_DRAM] = { "dram", "its memory", GPU_METRIC_DRAM },
	[BOUND_SMALL] = { "small", "kernels too small for its multiprocessors", GPU_METRIC_SM },
	[BOUND_LATENCY] = { "latency", "latency within kernels, no pipe is full", GPU_METRIC_SM },
};

const char *why_bound_name(enum why_bound bound)
{
	return bound < ARRAY_SIZE(bounds) ? bounds[bound].name : NULL;
}

void why_bound_text(const struct metrics_use *use, uint32_t gpu, struct buf *out)
{
	enum why_bound bound = why_bound_of(use, gpu);

	if (bound == BOUND_UNKNOWN)
		return;
	buf_printf(out, "%s (%s %.0f %%)", bounds[bound].text,
	           gpu_metric_info(bounds[bound].metric)->name,
	           metric_busy_mean(bound_gpu(use, gpu), bounds[bound].metric));
}
