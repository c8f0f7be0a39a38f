/* SPDX-License-Identifier: MIT */
/* NVIDIA's management library, loaded at run time. */
#ifndef CUSCOPE_GPUS_NVML_NVML_H
#define CUSCOPE_GPUS_NVML_NVML_H

#include "gpus/gpus.h"

struct nvml;

/* `folders`: as gpu_threads.h has them. NULL with a sentence in `why` where it cannot be used. */
struct nvml *nvml_open(const char *folders, char *why, size_t size);
void nvml_close(struct nvml *nvml);

/* Fills all but `why`, which is set when the library stops answering. */
void nvml_sample(struct nvml *nvml, struct gpus_sample *sample);

#endif
