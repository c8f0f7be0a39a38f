/* SPDX-License-Identifier: MIT */
/*
 * The golden trace `lines`: a training in C++ whose frames have parts, so its source lines and what
 * was inlined are known. Of one library nothing is known.
 */
#ifndef TESTS_GOLDEN_LINES_H
#define TESTS_GOLDEN_LINES_H

#include "stacks.h"

#define LINES_STEPS 6

enum lines_place {
	LINES_START,
	LINES_MAIN,
	LINES_STEP,
	LINES_NEXT,
	LINES_GROW,
	LINES_INFLATE,
	LINES_LAUNCH,
	LINES_MALLOC,
	LINES_FUTEX,
	LINES_MAIN_ITSELF, /* from here on: parts of those above */
	LINES_RUN_KERNEL,
	LINES_STEP_ITSELF,
	LINES_PUSH_BACK,
	LINES_DECODE,
	LINES_NEXT_ITSELF,
	LINES_GROW_ITSELF,
	LINES_FRAMES
};

#define TRAINER(function_, offset_)                                                                \
	.kind = FRAME_NATIVE, .function = (function_), .module = "trainer", .offset = (offset_)

static struct stack_frame lines_frames[LINES_FRAMES] = {
	[LINES_START] = { TRAINER("_start", 0x1120) },
	[LINES_MAIN] = { TRAINER("main", 0x2040) },
	[LINES_STEP] = { TRAINER("Trainer::step(Batch const&)", 0x3080) },
	[LINES_NEXT] = { TRAINER("Loader::next()", 0x40c0) },
	[LINES_GROW] = { TRAINER("Pool::grow(unsigned long)", 0x5100) },
	[LINES_INFLATE] = { .kind = FRAME_NATIVE,
	                    .function = "inflate",
	                    .module = "libz.so.1",
	                    .offset = 0x600 },
	[LINES_LAUNCH] = { .kind = FRAME_CUDA,
	                   .function = "cudaLaunchKernel",
	                   .module = "libcudart.so.13" },
	[LINES_MALLOC] = { .kind = FRAME_CUDA,
	                   .function = "cudaMalloc",
	                   .module = "libcudart.so.13" },
	[LINES_FUTEX] = { .kind = FRAME_KERNEL_MODE,
	                  .function = "futex_wait",
	                  .module = "[kernel]" },
	[LINES_MAIN_ITSELF] = { TRAINER("main", 0x2040), .file = "/home/ann/trainer/main.cu",
	                        .line = 41, .first_line = 30 },
	[LINES_RUN_KERNEL] = { TRAINER("run_gemm", 0x3080), .inlined = true,
	                       .file = "/home/ann/trainer/ops.cuh", .line = 17, .first_line = 12 },
	[LINES_STEP_ITSELF] = { TRAINER("Trainer::step", 0x3080),
	                        .file = "/home/ann/trainer/trainer.cu", .line = 88,
	                        .first_line = 80 },
	[LINES_PUSH_BACK] = { TRAINER("std::vector<float>::push_back", 0x40c0), .inlined = true,
	                      .file = "/usr/include/c++/12/bits/stl_vector.h", .line = 1280,
	                      .first_line = 1276 },
	[LINES_DECODE] = { TRAINER("Loader::decode", 0x40c0), .inlined = true,
	                   .file = "/home/ann/trainer/loader.cpp", .line = 55, .first_line = 50 },
	[LINES_NEXT_ITSELF] = { TRAINER("Loader::next", 0x40c0),
	                        .file = "/home/ann/trainer/loader.cpp", .line = 70,
	                        .first_line = 66 },
	[LINES_GROW_ITSELF] = { TRAINER("Pool::grow", 0x5100), .file = "/home/ann/trainer/pool.cpp",
	                        .line = 23, .first_line = 20 },
};

static inline void lines_part(enum lines_place place, const enum lines_place *parts, size_t n)
{
	static const struct stack_frame *all[LINES_FRAMES][4];

	for (size_t i = 0; i < n; i++)
		all[place][i] = &lines_frames[parts[i]];
	lines_frames[place].parts = all[place];
	lines_frames[place].n_parts = n;
}

#define LINES_PART(place, ...)                                                                     \
	lines_part(place, (const enum lines_place[]){ __VA_ARGS__ },                               \
	           ARRAY_SIZE(((const enum lines_place[]){ __VA_ARGS__ })))

static inline const struct stack *lines_stack(uint32_t id, const enum lines_place *places, size_t n)
{
	static const struct stack_frame *frames[8][8];
	static struct stack stacks[8];

	for (size_t i = 0; i < n; i++)
		frames[id][i] = &lines_frames[places[i]];
	stacks[id] = (struct stack){ .id = id, .n_frames = n, .frames = frames[id] };
	return &stacks[id];
}

#define LINES_STACK(id, ...)                                                                       \
	lines_stack(id, (const enum lines_place[]){ __VA_ARGS__, LINES_MAIN, LINES_START },        \
	            ARRAY_SIZE(((const enum lines_place[]){ __VA_ARGS__ })) + 2)

static inline void lines_of_frames(void)
{
	for (uint32_t i = 0; i < LINES_FRAMES; i++)
		lines_frames[i].id = i;
	LINES_PART(LINES_MAIN, LINES_MAIN_ITSELF);
	LINES_PART(LINES_STEP, LINES_RUN_KERNEL, LINES_STEP_ITSELF);
	LINES_PART(LINES_NEXT, LINES_PUSH_BACK, LINES_DECODE, LINES_NEXT_ITSELF);
	LINES_PART(LINES_GROW, LINES_GROW_ITSELF);
}

/* Of each 10 ms the loader takes 8, of which it waits for one; the pool grows each time. */
static inline void put_lines(struct scene *s, const struct process *process,
                             const struct kernel *kernel)
{
	const struct stack *next = LINES_STACK(0, LINES_NEXT);
	const struct stack *inflate = LINES_STACK(1, LINES_INFLATE, LINES_NEXT);
	const struct stack *wait = LINES_STACK(2, LINES_FUTEX, LINES_NEXT);
	const struct stack *step = LINES_STACK(3, LINES_LAUNCH, LINES_STEP);
	const struct stack *grow = LINES_STACK(4, LINES_MALLOC, LINES_GROW, LINES_STEP);
	const struct sample waited = { .kind = SAMPLE_OFF_CPU,
		                       .weight_ns = 1000000,
		                       .stack = wait,
		                       .blocked = BLOCKED_INTERRUPT,
		                       .count = 1 };

	lines_of_frames();
	put_process(s, 0, process);
	put_thread(s, 5, process->pid, "trainer", 20);
	for (uint32_t i = 0; i < LINES_STEPS; i++) {
		double at_us = 1000 + 10000 * i;
		struct call call = alloc_at("cudaMalloc", at_us + 8200,
		                            0x7f2a00000000 + ((uint64_t)i << 20), 1 << 20);

		for (unsigned j = 0; j < 7; j++)
			put_sample(s, at_us + 500 + 1000 * j, 1000, j < 5 ? next : inflate);
		put_one(s, at_us + 8000, &waited);
		call.stack = grow;
		put_call(s, call);
		put_step(s, kernel, i + 1, at_us + 8500, step);
	}
}

#endif
