/* SPDX-License-Identifier: MIT */
/*
 * How well a GPU is used: which share of the time its multiprocessors, tensor cores, other pipes,
 * memory and links were busy. NVML's GPM tells it of Hopper and newer, as means between two
 * readings, without anything in the programs that use the GPU. Of older GPUs there is NVML's
 * utilisation alone: a kernel ran, memory was accessed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The numbers are in trace files: new ones come last. */
enum gpu_metric {
	GPU_METRIC_GRAPHICS,  /* any engine for graphics or compute was busy */
	GPU_METRIC_SM,        /* multiprocessors that had a warp, on average */
	GPU_METRIC_OCCUPANCY, /* warps of those that there is room for */
	GPU_METRIC_TENSOR,    /* pipes of the tensor cores */
	GPU_METRIC_FP32,
	GPU_METRIC_FP64,
	GPU_METRIC_FP16,
	GPU_METRIC_INTEGER,
	GPU_METRIC_DRAM, /* bandwidth of the device's memory */
	GPU_METRIC_PCIE_TX,
	GPU_METRIC_PCIE_RX,
	GPU_METRIC_NVLINK_TX,
	GPU_METRIC_NVLINK_RX,
	GPU_METRIC_BUSY,        /* NVML's utilisation: a kernel ran */
	GPU_METRIC_MEMORY_BUSY, /* and memory was read or written */
	GPU_METRICS
};

/* In no sample: what is drawn of stretches, beside NVML's means of the same time. */
#define GPU_METRIC_SAMPLED_SM     ((enum gpu_metric)GPU_METRICS)
#define GPU_METRIC_SAMPLED_TENSOR ((enum gpu_metric)(GPU_METRICS + 1))
#define GPU_METRIC_SAMPLED_DRAM   ((enum gpu_metric)(GPU_METRICS + 2))
#define GPU_METRICS_DRAWN         ((enum gpu_metric)(GPU_METRICS + 3))

enum gpu_metrics_source {
	GPU_METRICS_NONE,
	GPU_METRICS_GPM,
	GPU_METRICS_UTILIZATION, /* GPU_METRIC_BUSY and GPU_METRIC_MEMORY_BUSY only */
	/* Stretches of CUPTI's PM sampling (struct gpu_stretch): GPU_METRIC_BUSY is the share of
	 * kernels, GPU_METRIC_MEMORY_BUSY that of copies without any; SM, tensor cores, DRAM. */
	GPU_METRICS_STRETCHES,
	GPU_METRICS_SOURCES
};

/* Means between two moments of CLOCK_MONOTONIC. */
struct gpu_metrics_sample {
	uint32_t gpu; /* as nvidia-smi counts them */
	enum gpu_metrics_source source;
	uint64_t begin_ns, end_ns;
	/* Hundredths of a percent, or bytes a second; GPU_METRIC_UNKNOWN: not told. */
	int64_t value[GPU_METRICS];
};

#define GPU_METRIC_UNKNOWN -1               /* as GPU_UNKNOWN of gpus.h */
#define GPU_SHARE_WHOLE    10000            /* 100 % */
#define GPU_RATE_MOST      1000000000000000 /* bytes a second: more is not believed */

struct gpu_metric_info {
	const char *key;   /* "sm", of options and columns */
	const char *name;  /* "SM active" */
	const char *about; /* half a sentence */
	bool is_rate;      /* bytes a second, else hundredths of a percent */
	unsigned gpm;      /* nvmlGpmMetricId_t; 0: not of GPM */
};

const struct gpu_metric_info *gpu_metric_info(enum gpu_metric metric);

/* The counter that a value is drawn as; GPU_METRICS_DRAWN: none. */
enum gpu_metric gpu_metric_drawn(const struct gpu_metrics_sample *sample, enum gpu_metric metric);

/* Bytes a second, or percent with two decimals: "93.46". */
struct buf;
void gpu_metric_print(struct buf *out, enum gpu_metric metric, int64_t value);

/* "gpm", "utilization", "none". */
const char *gpu_metrics_source_name(enum gpu_metrics_source source);

/*
 * What a multiprocessor has room for. It follows from the compute capability, so nothing is asked
 * of a GPU. Source: CUDA C++ Programming Guide, technical specifications per compute capability.
 */

struct gpu_limits {
	uint32_t major, minor;
	uint32_t cores;           /* that NVML counts for a multiprocessor */
	uint32_t warps;           /* at most, of 32 threads */
	uint32_t blocks;          /* at most */
	uint32_t registers;       /* of 32 bits; as many for one block */
	uint32_t shmem_kib;       /* shared memory */
	uint32_t block_shmem_kib; /* of one block that asked for it */
};

#define GPU_THREADS_PER_WARP  32
#define GPU_THREADS_PER_BLOCK 1024
#define GPU_BLOCK_SHMEM_BYTES (48u << 10) /* of a block that asked for nothing special */
#define GPU_CONSTANT_BYTES    (64u << 10)

/*
 * How many blocks of a kernel a multiprocessor has room for at once: by its warps, registers and
 * shared memory, which are given out in pieces.
 */
uint32_t gpu_resident_blocks(const struct gpu_limits *limits, uint64_t block_threads,
                             uint32_t thread_registers, uint64_t block_shmem);

/* Of a later GPU than those in the table: NULL. */
const struct gpu_limits *gpu_limits(uint32_t major, uint32_t minor);

/*
 * When a GPU was busy, of samples of its counters: each says for a short time for which share of it
 * kernels ran. Samples that say the same are one stretch. Where a stretch begins or ends within a
 * sample, the sample's share says where.
 */

/* Of shares GPU_SHARE_WHOLE is all; GPU_METRIC_UNKNOWN: not told. */
struct pm_sample {
	uint64_t begin_ns, end_ns;
	int64_t busy;   /* kernels ran for this share */
	int64_t copies; /* engines for copies did */
	int64_t sm, tensor, dram;
};

/*
 * Kernels ran all of the time (busy GPU_SHARE_WHOLE), none did (0), or for a share of it: where
 * in the stretch is not known then. Of time without kernels `copies` is all or nothing.
 */
struct gpu_stretch {
	uint64_t begin_ns, end_ns;
	int16_t busy, copies, sm, tensor, dram;
};

#define GPU_STRETCH_OTHER_NS                                                                       \
	300000ull /* after which what goes on with other values is told apart */

struct stretches {
	void (*each)(void *data, const struct gpu_stretch *stretch);
	void *data;
	struct pm_sample run;  /* what goes on: sums by time, not yet divided */
	struct pm_sample held; /* a sample in whose midst a stretch may begin or end */
	double sums[5];
	uint32_t n_run;
	int kind;
	bool any, holds;
};

/* Samples in their order; a hole between two ends what goes on. */
void stretches_add(struct stretches *stretches, const struct pm_sample *sample);

/* Gives away what goes on. */
void stretches_end(struct stretches *stretches);
