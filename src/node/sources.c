// SPDX-License-Identifier: MIT
/* All sources, in the order of their metrics. */
#include "node/sources.h"

const struct node_source *const node_sources[] = {
	&source_machine, &source_processes, &source_errors, &source_leaks,    &source_gpus,
	&source_self,    &source_recorder,  &source_ranks,  &source_gpuprobe, NULL,
};
