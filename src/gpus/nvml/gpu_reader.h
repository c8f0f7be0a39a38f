/* SPDX-License-Identifier: MIT */
/*
 * Reads one GPU by NVML, on the thread of that GPU: every call can take seconds.
 */
#ifndef CUSCOPE_GPUS_NVML_GPU_READER_H
#define CUSCOPE_GPUS_NVML_GPU_READER_H

#include "gpus/gpu_state.h"
#include "gpus/nvml/nvml_calls.h"

struct gpu_reader;

struct gpu_reader *gpu_reader_new(const struct nvml *nvml, uint32_t index);
void gpu_reader_free(struct gpu_reader *reader);

/* All values. Names stay as they were where the GPU does not answer. */
void gpu_reader_state(struct gpu_reader *reader, uint64_t interval_ns, struct gpu_state *state);

/* The metrics alone; false where there are none this time. *graphics_ns: see nvml.h. */
bool gpu_reader_metrics(struct gpu_reader *reader, uint64_t interval_ns,
                        struct gpu_metrics_sample *sample, uint64_t *graphics_ns);

/* From what the metrics are read: GPU_METRICS_NONE before the first one, and where there is
 * nothing. */
enum gpu_metrics_source gpu_reader_source(const struct gpu_reader *reader);

#endif
