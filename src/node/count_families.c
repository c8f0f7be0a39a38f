// SPDX-License-Identifier: MIT
#include "node/count_families.h"

#include "base/array.h"

#define FAMILY(name_, unit_, help_)                                                                \
	{ "cuscope_" name_, METRIC_COUNTER, unit_, help_ ", of all processes" },                   \
	{                                                                                          \
		"cuscope_process_" name_, METRIC_COUNTER, unit_, help_ ", by process"              \
	}

static const char *count_direction(size_t direction)
{
	return direction ? api_direction_name((enum api_direction)direction) : "unknown";
}

const char *count_kind(size_t kind)
{
	return kind ? api_memory_name((enum api_memory)kind) : NULL;
}

const struct count_family count_families[] = {
	{ FAMILY("launches", NULL, "Kernels launched"), COUNT_LAUNCHES, 1, NULL, NULL, 0 },
	{ FAMILY("launch_seconds", "seconds", "Time in the calls that launch kernels and graphs"),
	  COUNT_LAUNCH_NS, 1, NULL, NULL, 9 },
	{ FAMILY("graph_launches", NULL, "Graphs launched"), COUNT_GRAPH_LAUNCHES, 1, NULL, NULL,
	  0 },
	{ FAMILY("copies", NULL, "Copies asked for"), COUNT_COPIES, DIRECTION_COUNT, "direction",
	  count_direction, 0 },
	{ FAMILY("copy_bytes", "bytes", "Bytes of copies"), COUNT_COPY_BYTES, DIRECTION_COUNT,
	  "direction", count_direction, 0 },
	{ FAMILY("copy_seconds", "seconds", "Time in the calls that copy"), COUNT_COPY_NS,
	  DIRECTION_COUNT, "direction", count_direction, 9 },
	{ FAMILY("sets", NULL, "Memory sets asked for"), COUNT_SETS, 1, NULL, NULL, 0 },
	{ FAMILY("set_bytes", "bytes", "Bytes of memory sets"), COUNT_SET_BYTES, 1, NULL, NULL, 0 },
	{ FAMILY("allocations", NULL, "Allocations that succeeded"), COUNT_ALLOCATIONS,
	  MEMORY_COUNT, "kind", count_kind, 0 },
	{ FAMILY("allocated_bytes", "bytes", "Bytes of allocations that succeeded"),
	  COUNT_ALLOCATED_BYTES, MEMORY_COUNT, "kind", count_kind, 0 },
	{ FAMILY("syncs", NULL, "Waits for the GPU"), COUNT_SYNCS, 1, NULL, NULL, 0 },
	{ FAMILY("sync_seconds", "seconds", "Time in calls that wait for the GPU"), COUNT_SYNC_NS,
	  1, NULL, NULL, 9 },
	{ FAMILY("frees", NULL, "Allocations that a call freed"), COUNT_FREES, MEMORY_COUNT, "kind",
	  count_kind, 0 },
	{ { NULL },
	  { "cuscope_process_errors", METRIC_COUNTER, NULL, "Calls that failed, by process" },
	  COUNT_ERRORS,
	  1,
	  NULL,
	  NULL,
	  0 },
};
const size_t n_count_families = ARRAY_SIZE(count_families);
