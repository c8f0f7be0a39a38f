// SPDX-License-Identifier: MIT
/* What is known of GPUs without NVML. */
#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "gpus/gpus.h"

/*
 * "Model: \t\t NVIDIA H200" is a line of the file. The UUID of a GPU that sleeps has question
 * marks: then it is not known.
 */
static bool read_information(const char *path, struct gpu *gpu)
{
	FILE *file = fopen(path, "re");
	char line[160];
	bool found = false;

	while (file && fgets(line, sizeof(line), file)) {
		found |= sscanf(line, "Model: %95[^\n]", gpu->name) == 1;
		sscanf(line, "GPU UUID: %47s", gpu->uuid);
		sscanf(line, "Bus Location: %31s", gpu->bus);
	}
	if (strchr(gpu->uuid, '?'))
		gpu->uuid[0] = '\0';
	if (file)
		fclose(file);
	return found;
}

void gpus_from_proc(struct gpus_sample *sample)
{
	glob_t found = { 0 };

	sample->n = sample->n_processes = 0;
	if (glob("/proc/driver/nvidia/gpus/*/information", 0, NULL, &found) == 0) {
		for (size_t i = 0; i < found.gl_pathc && sample->n < GPUS_MAX; i++) {
			sample->gpus[sample->n] = gpu_unknown;
			sample->n += read_information(found.gl_pathv[i], &sample->gpus[sample->n]);
		}
	}
	globfree(&found);
}
