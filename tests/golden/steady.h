/* SPDX-License-Identifier: MIT */
/*
 * The scene `steady`: a training loop that does what one should not. Each of its rounds of 100 us
 * allocates and frees, copies four small pieces from pageable memory, launches a kernel and one of
 * NCCL, waits for the device and reads nothing; it ends with a row of polls.
 */
#ifndef TESTS_GOLDEN_STEADY_H
#define TESTS_GOLDEN_STEADY_H

#include "scene.h"

#define STEADY_ROUNDS 80
#define STEADY_COPIES 4

static inline void steady_calls(struct scene *s, const struct kernel *compute,
                                const struct kernel *nccl, uint64_t mark, double at_us)
{
	struct call call;

	put_call(s, alloc_at("cudaMalloc", at_us, 0x7f2a00000000, 1 << 20));
	for (unsigned i = 0; i < STEADY_COPIES; i++) {
		call = copy_at("cudaMemcpyAsync", at_us + 11 + 3 * i, DIRECTION_H2D, 2048);
		call.end_ns = call.begin_ns + 2500;
		set_stream(&call, 0);
		s->mark = mark + i;
		put_call(s, call);
	}
	s->mark = mark + STEADY_COPIES;
	put_call(s, launch_at("cudaLaunchKernel", at_us + 24, compute));
	call = launch_at("cudaLaunchKernel", at_us + 30, nccl);
	set_stream(&call, 0x55d0aa000020);
	s->mark = mark + STEADY_COPIES + 1;
	put_call(s, call);
	put_call(s, call_at("cudaDeviceSynchronize", at_us + 36, 48));
	put_call(s, free_at("cudaFree", at_us + 85, 0x7f2a00000000));
}

static inline void steady_activities(struct scene *s, const struct kernel *compute,
                                     const struct kernel *nccl, uint64_t mark, double at_us)
{
	struct activity copy = { .kind = ACTIVITY_COPY,
		                 .context = 1,
		                 .stream = 7,
		                 .bytes = 2048,
		                 .direction = DIRECTION_H2D,
		                 .source = ACTIVITY_MEMORY_PAGEABLE,
		                 .destination = ACTIVITY_MEMORY_DEVICE };
	struct activity kernel = { .kind = ACTIVITY_KERNEL,
		                   .correlation = mark + STEADY_COPIES,
		                   .context = 1,
		                   .stream = 7,
		                   .kernel = compute,
		                   .grid = { 196, 1, 1 },
		                   .block = { 256, 1, 1 } };

	for (unsigned i = 0; i < STEADY_COPIES; i++) {
		copy.correlation = mark + i;
		put_activity(s, copy, at_us + 12 + 3 * i, 1.25);
	}
	put_activity(s, kernel, at_us + 30, 25);
	kernel.correlation++;
	kernel.kernel = nccl;
	kernel.stream = 20;
	put_activity(s, kernel, at_us + 50, 30);
}

static inline void put_steady(struct scene *s, const struct process *process,
                              const struct kernel *compute, const struct kernel *nccl)
{
	s->flush_ns = 4000000;
	put_process(s, 100, process);
	put_thread(s, 110, process->pid, "python3", 20);
	for (unsigned i = 0; i < STEADY_ROUNDS; i++) {
		uint64_t mark = 1 + i * (STEADY_COPIES + 2);

		steady_calls(s, compute, nccl, mark, 1000 + 100 * i);
		steady_activities(s, compute, nccl, mark, 1000 + 100 * i);
	}
	for (unsigned i = 0; i < 40; i++)
		put_call(s, call_at("cudaEventQuery", 9000 + 5 * i, 1));
}

#endif
