// SPDX-License-Identifier: MIT
#include "trace/decoded.h"

#include "trace/codec.h"
#include "trace/format.h"

static enum activity_memory known_memory(uint64_t memory)
{
	return memory <= ACTIVITY_MEMORY_MANAGED_STATIC ? (enum activity_memory)memory
	                                                : ACTIVITY_MEMORY_UNKNOWN;
}

void decoded_activity(struct activity *activity, const uint64_t *values)
{
	activity->device = (uint32_t)values[ACTIVITY_DEVICE];
	activity->context = (uint32_t)values[ACTIVITY_CONTEXT];
	activity->stream = (uint32_t)values[ACTIVITY_STREAM];
	for (unsigned i = 0; i < 3; i++) {
		activity->grid[i] = (uint32_t)values[ACTIVITY_GRID + i];
		activity->block[i] = (uint32_t)values[ACTIVITY_BLOCK + i];
	}
	activity->registers = (uint32_t)values[ACTIVITY_REGISTERS];
	activity->shmem_static = (uint32_t)values[ACTIVITY_SHMEM_STATIC];
	activity->shmem_dynamic = (uint32_t)values[ACTIVITY_SHMEM_DYNAMIC];
	activity->graph = values[ACTIVITY_GRAPH];
	activity->graph_node = values[ACTIVITY_GRAPH_NODE];
	activity->bytes = values[ACTIVITY_BYTES];
	activity->direction = values[ACTIVITY_DIRECTION] < DIRECTION_COUNT
	                              ? (enum api_direction)values[ACTIVITY_DIRECTION]
	                              : DIRECTION_NONE;
	activity->source = known_memory(values[ACTIVITY_SOURCE]);
	activity->destination = known_memory(values[ACTIVITY_DESTINATION]);
	activity->peer_device = (uint32_t)values[ACTIVITY_PEER];
}

bool decoded_range(struct range *range, const struct names *names, const uint64_t *values)
{
	range->kind = (enum range_kind)values[RANGE_VALUE_KIND];
	range->name = values[RANGE_VALUE_NAME] ? names_text(names, values[RANGE_VALUE_NAME]) : "";
	range->domain = names_text(names, values[RANGE_VALUE_DOMAIN]);
	range->depth = (uint32_t)values[RANGE_VALUE_DEPTH];
	range->context = (uint32_t)values[RANGE_VALUE_CONTEXT];
	range->stream = (uint32_t)values[RANGE_VALUE_STREAM];
	range->correlation = values[RANGE_VALUE_CORRELATION];
	range->category = (uint32_t)values[RANGE_VALUE_CATEGORY];
	range->color = (uint32_t)values[RANGE_VALUE_COLOR];
	return range->name && (range->domain || !values[RANGE_VALUE_DOMAIN]);
}

bool decoded_sample(struct sample *sample, const struct names *names, const uint64_t *values)
{
	uint64_t waker = values[SAMPLE_VALUE_WAKER], rival = values[SAMPLE_VALUE_RIVAL];

	sample->kind = (enum sample_kind)values[SAMPLE_VALUE_KIND];
	sample->weight_ns = values[SAMPLE_VALUE_WEIGHT];
	sample->blocked = values[SAMPLE_VALUE_BLOCKED] < BLOCKED_COUNT
	                          ? (enum blocked)values[SAMPLE_VALUE_BLOCKED]
	                          : BLOCKED_UNKNOWN;
	sample->waker = names_text(names, waker);
	sample->waker_tid = (uint32_t)values[SAMPLE_VALUE_WAKER_TID];
	sample->count = values[SAMPLE_VALUE_COUNT];
	sample->wait = values[SAMPLE_VALUE_WAIT] < WAIT_COUNT
	                       ? (enum wait_kind)values[SAMPLE_VALUE_WAIT]
	                       : WAIT_UNKNOWN;
	sample->runnable_ns = values[SAMPLE_VALUE_RUNNABLE] < sample->weight_ns
	                              ? values[SAMPLE_VALUE_RUNNABLE]
	                              : sample->weight_ns;
	sample->rival = names_text(names, rival);
	sample->rival_pid = (uint32_t)values[SAMPLE_VALUE_RIVAL_PID];
	return (sample->waker || !waker) && (sample->rival || !rival);
}
