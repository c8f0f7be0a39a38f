/* SPDX-License-Identifier: MIT */
/* NVIDIA's management library, loaded at run time. */
#pragma once

#include "gpus/gpu_metrics.h"
#include "gpus/gpu_state.h"
#include "gpus/gpus.h"
#include "gpus/nvml/nvml_calls.h"

struct nvml;

/* `folders`: as main.h has them. NULL with a sentence in `why` where it cannot be used. */
struct nvml *nvml_open(const char *folders, char *why, size_t size);
void nvml_close(struct nvml *nvml);

/* Fills all but `why`, which is set when the library stops answering. */
void nvml_sample(struct nvml *nvml, struct gpus_sample *sample);

/*
 * NVML's GPU performance metrics (GPM) of one GPU: two readings of its counters, and the means
 * between them. A reading takes 0.06 to 0.25 ms on an H200.
 */

struct gpm;

/* NULL where this GPU or library has none. */
struct gpm *gpm_open(const struct nvml *nvml, gpu_handle handle);
void gpm_close(struct gpm *gpm);

/*
 * Reads and fills in the means since the reading before. False where there are none: at the first
 * two readings, after a pause of more than `pause_ns`, when what came was no number, and on
 * failure, which *result (enum nvml_result) tells.
 *
 * GPU_METRIC_GRAPHICS is asked for once a second, and is what it was last in between. Where it is
 * asked for, it is the mean since *graphics_ns, which is 0 elsewhere.
 */
bool gpm_read(struct gpm *gpm, gpu_handle handle, uint64_t pause_ns,
              struct gpu_metrics_sample *sample, uint64_t *graphics_ns, int *result);

/* ---- gpu reader ----------------------------------------------------------------------------- */

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
