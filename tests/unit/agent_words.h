/* SPDX-License-Identifier: MIT */
/* Records made by hand, as an agent would write them. Times are in microseconds. */
#ifndef TESTS_UNIT_AGENT_WORDS_H
#define TESTS_UNIT_AGENT_WORDS_H

#include "agent/wire.h"
#include "unit.h"

#define AT(us) ((uint64_t)(us)*1000)

/* Any record, with room for what follows it. */
union agent_words {
	struct agent_head head;
	struct agent_name name;
	struct agent_shape shape;
	struct agent_lane lane;
	struct agent_call call;
	struct agent_kernel kernel;
	struct agent_kernel_long longer;
	struct agent_copy copy;
	struct agent_graph graph;
	struct agent_wait wait;
	struct agent_nvtx nvtx;
	struct agent_probed probed;
	struct agent_stall stall;
	struct agent_stall_window stall_window;
	struct agent_stalls_told stalls_told;
	uint64_t word[64];
};

static inline union agent_words words_of(enum agent_record_type type, size_t bytes)
{
	union agent_words words = { 0 };

	words.head.type = (uint8_t)type;
	words.head.bytes = (uint32_t)((bytes + 7) & ~(size_t)7);
	return words;
}

static inline union agent_words name_words(uint32_t number, const char *text)
{
	size_t at = offsetof(struct agent_name, text);
	union agent_words words = words_of(AGENT_NAME, at + strlen(text) + 1);

	words.name.number = number;
	strcpy((char *)&words + at, text);
	return words;
}

static inline union agent_words shape_words(uint32_t number, uint32_t name, uint32_t grid_x)
{
	union agent_words words = words_of(AGENT_SHAPE, sizeof(struct agent_shape));

	words.shape.number = number;
	words.shape.name = name;
	words.shape.grid[0] = grid_x;
	words.shape.grid[1] = words.shape.grid[2] = 1;
	words.shape.block[0] = 256;
	words.shape.block[1] = words.shape.block[2] = 1;
	words.shape.registers = 32;
	words.shape.shmem_static = 1024;
	words.shape.shmem_dynamic = 2048;
	return words;
}

static inline union agent_words lane_words(uint16_t number, uint32_t device, uint32_t stream)
{
	union agent_words words = words_of(AGENT_LANE, sizeof(struct agent_lane));

	words.head.lane = number;
	words.lane.device = device;
	words.lane.context = 1;
	words.lane.stream = stream;
	return words;
}

static inline union agent_words kernel_words(uint32_t shape, uint32_t correlation,
                                             uint64_t begin_us, uint64_t end_us)
{
	union agent_words words = words_of(AGENT_KERNEL, sizeof(struct agent_kernel));

	words.kernel.shape = shape;
	words.kernel.correlation = correlation;
	words.kernel.begin_ns = AT(begin_us);
	words.kernel.duration_ns = (uint32_t)(AT(end_us) - AT(begin_us));
	return words;
}

static inline union agent_words copy_words(uint8_t kind, uint64_t bytes, uint32_t correlation,
                                           uint64_t begin_us, uint64_t end_us)
{
	union agent_words words = words_of(AGENT_COPY, sizeof(struct agent_copy));

	words.copy.kind = kind;
	words.copy.bytes = bytes;
	words.copy.correlation = correlation;
	words.copy.begin_ns = AT(begin_us);
	words.copy.end_ns = AT(end_us);
	return words;
}

static inline union agent_words call_words(uint32_t correlation, uint32_t tid, uint64_t begin_us,
                                           uint64_t end_us)
{
	union agent_words words = words_of(AGENT_CALL, sizeof(struct agent_call));

	words.call.correlation = correlation;
	words.call.tid = tid;
	words.call.begin_ns = AT(begin_us);
	words.call.end_ns = AT(end_us);
	return words;
}

static inline union agent_words nvtx_words(enum agent_nvtx_kind kind, const char *text,
                                           uint64_t begin_us, uint64_t end_us)
{
	size_t at = offsetof(struct agent_nvtx, text);
	union agent_words words = words_of(AGENT_NVTX, at + strlen(text) + 1);

	words.head.flags = (uint8_t)kind;
	words.nvtx.begin_ns = AT(begin_us);
	words.nvtx.end_ns = AT(end_us);
	strcpy((char *)&words + at, text);
	return words;
}

#endif
