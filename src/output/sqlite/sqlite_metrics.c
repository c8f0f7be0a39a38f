// SPDX-License-Identifier: MIT
/*
 * Metrics of GPUs as Nsight Systems' export has them: whole numbers, a percentage each or bytes a
 * second, with the number of the GPU in the lowest byte of typeId.
 */
#include "gpus/gpu_metrics.h"
#include "output/sqlite/nsys_tables.h"
#include "output/sqlite/sqlite.h"

#define TYPE_OF_GPU(gpu) (0x1000100000000ll | (int64_t)(gpu))
#define SOURCE           0x1000100000000ll

/* Those that mean what Nsight Systems' do have its names. */
static const char *const names[GPU_METRICS] = {
	[GPU_METRIC_GRAPHICS] = "GR Active [Throughput %]",
	[GPU_METRIC_SM] = "SMs Active [Throughput %]",
	[GPU_METRIC_OCCUPANCY] = "Compute Warps in Flight [Throughput %]",
	[GPU_METRIC_TENSOR] = "Tensor Active [Throughput %]",
	[GPU_METRIC_FP32] = "FP32 Active [Throughput %]",
	[GPU_METRIC_FP64] = "FP64 Active [Throughput %]",
	[GPU_METRIC_FP16] = "FP16 Active [Throughput %]",
	[GPU_METRIC_INTEGER] = "Integer Active [Throughput %]",
	[GPU_METRIC_DRAM] = "DRAM Bandwidth [Throughput %]",
	[GPU_METRIC_PCIE_TX] = "PCIe TX Throughput [Bytes/s]",
	[GPU_METRIC_PCIE_RX] = "PCIe RX Throughput [Bytes/s]",
	[GPU_METRIC_NVLINK_TX] = "NVLink TX Throughput [Bytes/s]",
	[GPU_METRIC_NVLINK_RX] = "NVLink RX Throughput [Bytes/s]",
	[GPU_METRIC_BUSY] = "GPU Utilization [%]",
	[GPU_METRIC_MEMORY_BUSY] = "Memory Utilization [%]",
};

static void describe(struct sqlite *sqlite, uint32_t gpu, enum gpu_metric metric)
{
	struct database *db = sqlite->db;
	uint32_t bit = 1u << metric;

	if (sqlite->metrics[gpu] & bit)
		return;
	sqlite->metrics[gpu] |= bit;
	row_begin(db, TABLE_GPU_METRIC_NAME);
	row_int(db, TYPE_OF_GPU(gpu));
	row_int(db, SOURCE);
	row_static(db, "GPU Metrics");
	row_int(db, metric);
	row_static(db, names[metric]);
	row_end(db);
}

void sqlite_add_metrics(struct sqlite *sqlite, const struct event *event)
{
	const struct gpu_metrics_sample *sample = event->metrics;
	struct database *db = sqlite->db;

	for (enum gpu_metric i = 0; i < GPU_METRICS && sample->gpu < RUN_GPUS_MAX; i++) {
		bool is_rate = gpu_metric_info(i)->is_rate;

		if (!gpu_metric_is_drawn(sample, i))
			continue;
		describe(sqlite, sample->gpu, i);
		row_begin(db, TABLE_GPU_METRIC);
		row_int(db, since_begin(sqlite, sample->begin_ns));
		row_int(db, TYPE_OF_GPU(sample->gpu));
		row_int(db, i);
		row_int(db, is_rate ? sample->value[i] : (sample->value[i] + 50) / 100);
		row_end(db);
	}
}
