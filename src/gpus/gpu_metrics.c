// SPDX-License-Identifier: MIT
#include "gpus/gpu_metrics.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/array.h"
#include "base/buf.h"

/* The ids are nvmlGpmMetricId_t's; shares in percent, rates in MiB a second. */
static const struct gpu_metric_info infos[GPU_METRICS] = {
	[GPU_METRIC_GRAPHICS] = { "graphics", "Graphics or compute engine", "an engine was busy",
	                          false, 1 },
	[GPU_METRIC_SM] = { "sm", "SM active", "multiprocessors that had a warp", false, 2 },
	[GPU_METRIC_OCCUPANCY] = { "occupancy", "SM occupancy",
	                           "warps, of those that there is room for", false, 3 },
	[GPU_METRIC_TENSOR] = { "tensor", "Tensor cores", "pipes of the tensor cores", false, 5 },
	[GPU_METRIC_FP32] = { "fp32", "FP32 pipe", "arithmetic in single precision", false, 12 },
	[GPU_METRIC_FP64] = { "fp64", "FP64 pipe", "arithmetic in double precision", false, 11 },
	[GPU_METRIC_FP16] = { "fp16", "FP16 pipe", "arithmetic in half precision", false, 13 },
	[GPU_METRIC_INTEGER] = { "integer", "Integer pipe", "arithmetic with integers", false, 4 },
	[GPU_METRIC_DRAM] = { "dram", "DRAM bandwidth", "bandwidth of the device's memory", false,
	                      10 },
	[GPU_METRIC_PCIE_TX] = { "pcie_tx", "PCIe from the GPU", "bytes a second", true, 20 },
	[GPU_METRIC_PCIE_RX] = { "pcie_rx", "PCIe to the GPU", "bytes a second", true, 21 },
	[GPU_METRIC_NVLINK_TX] = { "nvlink_tx", "NVLink from the GPU", "bytes a second", true, 61 },
	[GPU_METRIC_NVLINK_RX] = { "nvlink_rx", "NVLink to the GPU", "bytes a second", true, 60 },
	[GPU_METRIC_BUSY] = { "busy", "GPU utilisation", "a kernel ran", false, 0 },
	[GPU_METRIC_MEMORY_BUSY] = { "memory_busy", "Memory utilisation",
	                             "memory was read or written", false, 0 },
};

const struct gpu_metric_info *gpu_metric_info(enum gpu_metric metric)
{
	return &infos[metric];
}

const char *gpu_metrics_source_name(enum gpu_metrics_source source)
{
	static const char *const names[GPU_METRICS_SOURCES] = { "none", "gpm", "utilization",
		                                                "pm" };

	return source < GPU_METRICS_SOURCES ? names[source] : "unknown";
}

void gpu_metric_print(struct buf *out, enum gpu_metric metric, int64_t value)
{
	if (infos[metric].is_rate)
		buf_u64(out, (uint64_t)value);
	else
		buf_fixed(out, (uint64_t)value, 2);
}

static const struct gpu_limits all[] = {
	{ 5, 0, 128, 64, 32, 65536, 64, 48 },    { 5, 2, 128, 64, 32, 65536, 96, 48 },
	{ 5, 3, 128, 64, 32, 65536, 64, 48 },    { 6, 0, 64, 64, 32, 65536, 64, 48 },
	{ 6, 1, 128, 64, 32, 65536, 96, 48 },    { 6, 2, 128, 64, 32, 65536, 64, 48 },
	{ 7, 0, 64, 64, 32, 65536, 96, 96 },     { 7, 2, 64, 64, 32, 65536, 96, 96 },
	{ 7, 5, 64, 32, 16, 65536, 64, 64 },     { 8, 0, 64, 64, 32, 65536, 164, 163 },
	{ 8, 6, 128, 48, 16, 65536, 100, 99 },   { 8, 7, 128, 48, 16, 65536, 164, 163 },
	{ 8, 9, 128, 48, 24, 65536, 100, 99 },   { 9, 0, 128, 64, 32, 65536, 228, 227 },
	{ 10, 0, 128, 64, 32, 65536, 228, 227 }, { 10, 3, 128, 64, 32, 65536, 228, 227 },
	{ 12, 0, 128, 48, 24, 65536, 100, 99 },  { 12, 1, 128, 48, 24, 65536, 100, 99 },
};

const struct gpu_limits *gpu_limits(uint32_t major, uint32_t minor)
{
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		if (all[i].major == major && all[i].minor == minor)
			return &all[i];
	}
	return NULL;
}

#define PARTITIONS     4   /* of a multiprocessor: each has its part of the registers */
#define REGISTER_PIECE 256 /* that a warp is given */

static uint64_t rounded_up(uint64_t value, uint64_t piece)
{
	return (value + piece - 1) / piece * piece;
}

static uint64_t blocks_by_registers(const struct gpu_limits *limits, uint64_t warps,
                                    uint32_t registers)
{
	uint64_t of_warp = rounded_up((uint64_t)registers * GPU_THREADS_PER_WARP, REGISTER_PIECE);

	return of_warp ? limits->registers / PARTITIONS / of_warp * PARTITIONS / warps
	               : limits->blocks;
}

/* Since compute capability 8.0 CUDA keeps a KiB of each block for itself. */
static uint64_t blocks_by_shmem(const struct gpu_limits *limits, uint64_t shmem)
{
	bool late = limits->major >= 8;
	uint64_t of_block = rounded_up(shmem + (late ? 1024 : 0), late ? 128 : 256);

	return of_block ? (uint64_t)limits->shmem_kib * 1024 / of_block : limits->blocks;
}

uint32_t gpu_resident_blocks(const struct gpu_limits *limits, uint64_t block_threads,
                             uint32_t thread_registers, uint64_t block_shmem)
{
	uint64_t warps = (block_threads + GPU_THREADS_PER_WARP - 1) / GPU_THREADS_PER_WARP;
	uint64_t by_warps = warps ? limits->warps / warps : 0;
	uint64_t by_registers = warps ? blocks_by_registers(limits, warps, thread_registers) : 0;
	uint64_t by_shmem = blocks_by_shmem(limits, block_shmem), blocks = limits->blocks;

	blocks = blocks < by_warps ? blocks : by_warps;
	blocks = blocks < by_registers ? blocks : by_registers;
	return (uint32_t)(blocks < by_shmem ? blocks : by_shmem);
}
