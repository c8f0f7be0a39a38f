/* SPDX-License-Identifier: MIT */
/*
 * What the GPUs of this machine are doing, as NVIDIA's management library (NVML) tells it. It is
 * called now and then in a process of its own (nvml_process.h), since a driver takes seconds to
 * wake a GPU up, and since a static program can load no library. Where there is no NVML, names come
 * from /proc/driver/nvidia, and a sentence says why there is no more.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPUS_MAX          16
#define GPU_PROCESSES_MAX 512
#define GPU_UNKNOWN       -1 /* in any field: this GPU or driver does not tell */

struct gpu {
	char name[96];
	int busy_percent; /* of the last sample period, a kernel ran for this share of it */
	int64_t memory_used_bytes, memory_total_bytes;
	int64_t power_mw, power_limit_mw;
	int temperature_c;
	/* Means since the sample before, by NVML's GPM (gpu_metrics.h); not of the first two. */
	int sm_percent, tensor_percent, dram_percent;
	/* what does not change */
	char uuid[48], bus[32]; /* empty: not known */
	int compute_major, compute_minor;
	int multiprocessors;
	int64_t clock_hz;         /* the highest of its multiprocessors */
	int64_t memory_bandwidth; /* bytes a second */
};

/* Device memory of a process on all GPUs together, contexts and code included. */
struct gpu_process {
	uint32_t pid;
	uint32_t gpus; /* a bit for each that it uses */
	uint64_t bytes;
};

struct gpus_sample {
	size_t n;
	struct gpu gpus[GPUS_MAX];
	size_t n_processes;
	struct gpu_process processes[GPU_PROCESSES_MAX];
	uint32_t processes_cut; /* not 0: there may be more than these */
	uint64_t read_ns;       /* CLOCK_MONOTONIC, when NVML had told it; 0: it did not */
	char why[256];          /* why nothing more is known; empty where all is */
};

/* All of it unknown, without a name. */
extern const struct gpu gpu_unknown;

/* Of one process, GPU_UNKNOWN where it is not listed. */
int64_t gpus_process_bytes(const struct gpus_sample *sample, uint32_t pid);

struct gpus;

/* Starts the thread. */
struct gpus *gpus_new(uint64_t interval_ns);

/* The latest sample; waits up to `patience_ns` for the first one. False while there is none. */
bool gpus_read(struct gpus *gpus, uint64_t patience_ns, struct gpus_sample *sample);

/* Does not wait for a library that hangs. */
void gpus_free(struct gpus *gpus);
