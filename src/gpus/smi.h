/* SPDX-License-Identifier: MIT */
/*
 * GPU figures out of nvidia-smi, which comes with the driver: for a static program, which cannot
 * load NVML itself. One nvidia-smi runs as long as it is asked and writes a line for each GPU each
 * interval. That takes less than 1 % of a CPU (H200, driver 580, five times a second). Private to
 * src/cuda: see gpus.h.
 */
#ifndef CUSCOPE_GPUS_SMI_H
#define CUSCOPE_GPUS_SMI_H

#include "gpus/gpus.h"

struct smi;

/*
 * Starts it; NULL where there is none, or it cannot be started. `path`: NULL for the places where
 * drivers and containers put it, not PATH, since root's PATH is not asked what to run. The child
 * ends with the thread that calls this, however that ends.
 */
struct smi *smi_open(const char *path, uint64_t interval_ns);
void smi_close(struct smi *smi);

/*
 * Puts what it has written into the sample, all but processes; waits up to `wait_ms` where there
 * is nothing. False when it has ended: nothing more will come.
 */
bool smi_read(struct smi *smi, int wait_ms, struct gpus_sample *sample);

/* One line, for smi_read: "0, NVIDIA H200, 87, 12288, 143771, 412.34, 700.00, 61, GPU-8c0d,
 * 00000000:18:00.0, 1980". What is missing at the end is not known. */
void smi_parse(const char *line, struct gpus_sample *sample);

#endif
