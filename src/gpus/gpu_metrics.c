// SPDX-License-Identifier: MIT
#include "gpus/gpu_metrics.h"

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
