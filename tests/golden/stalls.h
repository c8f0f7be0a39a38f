/* SPDX-License-Identifier: MIT */
/*
 * The golden trace `stalls`: two windows in which a kernel waits for memory at a line that is known
 * and another one for its tensor cores at one that is not, and some of its instructions are told of
 * together.
 */
#ifndef TESTS_GOLDEN_STALLS_H
#define TESTS_GOLDEN_STALLS_H

#include "scene.h"

static inline void put_stall(struct scene *s, double begin_us, struct stall stall)
{
	struct event event = { .type = EVENT_STALL, .process = s->process, .stall = &stall };

	stall.begin_ns = US(begin_us);
	stall.end_ns = event.time_ns = US(begin_us + 20000);
	put_event(s, &event);
}

static inline void put_window(struct scene *s, double begin_us, const struct kernel *gemm,
                              const struct kernel *softmax)
{
	const char *file = "/home/user/train/softmax.cu";
	const struct stall stalls[] = {
		{ .kernel = gemm, .reason = "gmma", .offset = 0x1a40, .samples = 6100 },
		{ .kernel = gemm, .reason = "selected", .offset = 0x1a40, .samples = 200 },
		{ .kernel = gemm, .reason = "wait", .offset = STALL_ANYWHERE, .samples = 300 },
		{ .kernel = softmax,
		  .reason = "long_scoreboard",
		  .offset = 0x1b0,
		  .samples = 2500,
		  .file = file,
		  .line = 88 },
		{ .kernel = softmax,
		  .reason = "barrier",
		  .offset = 0x300,
		  .samples = 700,
		  .file = file,
		  .line = 91 },
		{ .samples = 10000, .dropped = 20, .foreign = 180, .cost_ns = 61000 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(stalls); i++) {
		struct stall stall = stalls[i];

		if (stall.kernel)
			stall.cubin = stall.kernel == gemm ? 0xc0ffee : 0xbeef;
		put_stall(s, begin_us, stall);
	}
}

/* So that the GPU is busy, and most of it with the second kernel. */
static inline void put_stalled(struct scene *s, const struct kernel *kernel, uint64_t mark,
                               double at_us, double length_us)
{
	const struct activity activity = { .kind = ACTIVITY_KERNEL,
		                           .correlation = mark,
		                           .context = 1,
		                           .stream = 7,
		                           .kernel = kernel,
		                           .grid = { 132, 1, 1 },
		                           .block = { 256, 1, 1 } };

	s->mark = mark;
	put_call(s, launch_at("cudaLaunchKernel", at_us, kernel));
	put_activity(s, activity, at_us + 10, length_us);
}

static inline void trace_stalls(struct scene *s, const struct process *process,
                                const struct kernel *gemm, const struct kernel *softmax)
{
	put_process(s, 0, process);
	put_thread(s, 5, process->pid, "python3", 20);
	put_window(s, 1000, gemm, softmax);
	for (unsigned i = 0; i < 50; i++) {
		put_stalled(s, gemm, 2 * i + 1, 900 + 10000 * i, 3900);
		put_stalled(s, softmax, 2 * i + 2, 4800 + 10000 * i, 5900);
	}
	put_window(s, 470000, gemm, softmax);
}

#endif
