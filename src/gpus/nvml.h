/* SPDX-License-Identifier: MIT */
/* NVIDIA's management library, loaded at run time. Private to src/cuda: see gpus.h. */
#ifndef CUSCOPE_GPUS_NVML_H
#define CUSCOPE_GPUS_NVML_H

#include "gpus/gpus.h"

struct nvml;

/* Whether this program is linked statically, so that it cannot load the library. */
bool nvml_is_static(void);

/* NULL with a sentence in `why` where it cannot be used. */
struct nvml *nvml_open(char *why, size_t size);
void nvml_close(struct nvml *nvml);

/* Fills all but `why`, which is set when the library stops answering. */
void nvml_sample(struct nvml *nvml, struct gpus_sample *sample);

/* Names, UUIDs and places only, of what /proc/driver/nvidia lists. */
void gpus_from_proc(struct gpus_sample *sample);

#endif
