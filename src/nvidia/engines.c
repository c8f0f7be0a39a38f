// SPDX-License-Identifier: MIT
#include "nvidia/engines.h"

#include <stdio.h>

#include "base/array.h"

static const struct {
	uint32_t first, last;
	const char *name; /* followed by which of them */
} engines[] = {
	{ 1, 8, "GR" },   { 9, 18, "COPY" }, { 19, 26, "NVDEC" }, { 27, 29, "NVENC" },
	{ 34, 34, "SW" }, { 38, 38, "SEC" }, { 43, 50, "NVJPG" }, { 51, 51, "OFA" },
};

const char *nvidia_engine_name(uint32_t number, char name[NVIDIA_ENGINE_NAME])
{
	snprintf(name, NVIDIA_ENGINE_NAME, "engine %u", number);
	for (size_t i = 0; i < ARRAY_SIZE(engines); i++) {
		if (engines[i].first <= number && number <= engines[i].last)
			snprintf(name, NVIDIA_ENGINE_NAME, "%s%u", engines[i].name,
			         number - engines[i].first);
	}
	return name;
}
