/* SPDX-License-Identifier: MIT */
/*
 * The golden trace `ranks`: a training of four ranks, of which the third sleeps 4 ms in a line
 * before each second all-reduce; the last one is of the host's own copy, and of no known
 * communicator.
 */
#ifndef TESTS_GOLDEN_RANKS_H
#define TESTS_GOLDEN_RANKS_H

#include "kernel.h"
#include "scene.h"

#define RANKS_N     4
#define RANKS_STEPS 24
#define RANKS_LATE  2
#define RANKS_COMM  0x55d0bb000000

static inline const struct stack *ranks_stack(void)
{
	static const struct stack_frame frames[] = {
		{ .id = 0,
		  .kind = FRAME_PYTHON,
		  .function = "fetch",
		  .file = "/home/ann/app/data.py",
		  .line = 9,
		  .first_line = 5 },
		{ .id = 1,
		  .kind = FRAME_PYTHON,
		  .function = "train",
		  .file = "/home/ann/app/train.py",
		  .line = 31,
		  .first_line = 20 },
	};
	static const struct stack_frame *const of[] = { &frames[0], &frames[1] };
	static const struct stack stack = { .id = 0, .frames = of, .n_frames = 2 };

	return &stack;
}

static inline void ranks_launch(struct scene *s, const struct kernel *kernel, double at_us,
                                double begin_us, double duration_us)
{
	static uint64_t mark;
	struct activity ran = { .kind = ACTIVITY_KERNEL,
		                .device = s->process->pid - 7400,
		                .context = 1,
		                .stream = 13,
		                .kernel = kernel,
		                .grid = { 24, 1, 1 },
		                .block = { 512, 1, 1 } };

	s->mark = ran.correlation = ++mark;
	put_call(s, launch_at("cuLaunchKernel", at_us, kernel));
	put_activity(s, ran, begin_us, duration_us);
}

static inline void ranks_reduce(struct scene *s, const struct kernel *kernel, uint64_t comm,
                                double at_us, double end_us)
{
	ranks_launch(s, kernel, at_us + 2, at_us + 12, end_us - at_us - 12);
	put_call(s, other_call(other_function(LAYER_HOOK, "nccl.ncclAllReduce", "libnccl.so.2",
	                                      "bytes:size comm:addr"),
	                       at_us, 9, 8 << 20, comm));
}

/* Each is at its collective when its own time says; all leave it when the last has come. */
static inline void put_ranks(struct scene *s, const struct kernel *gemm,
                             const struct kernel *reduce)
{
	for (uint32_t rank = 0; rank < RANKS_N; rank++) {
		struct call made;

		put_process(s, 500, new_process(7400 + rank, "python3"));
		put_thread(s, 600, 7400 + rank, "python3", 20);
		made = other_call(other_function(LAYER_HOOK, "nccl.ncclCommInitRank",
		                                 "libnccl.so.2",
		                                 "ranks:int rank:int id:hex comm:addr"),
		                  700, 200, RANKS_N, rank);
		made.args.arg[2] = 0x5eedc0ffee123456;
		made.args.arg[3] = RANKS_COMM + rank;
		put_call(s, made);
		for (unsigned step = 0; step < RANKS_STEPS; step++) {
			double begin_us = 1000 + 3000 * step + 2000 * (step / 2);
			double late_us = step % 2 ? 4000 : 0,
			       own_us = rank == RANKS_LATE ? late_us : 0;
			struct sample asleep = { .kind = SAMPLE_OFF_CPU,
				                 .blocked = BLOCKED_INTERRUPT,
				                 .wait = WAIT_SLEEP,
				                 .weight_ns = 4000000,
				                 .stack = ranks_stack() };
			struct event slept = { .type = EVENT_SAMPLE,
				               .time_ns = US(begin_us + 200 + own_us),
				               .process = s->process,
				               .tid = s->tid,
				               .sample = &asleep };

			ranks_launch(s, gemm, begin_us, begin_us + 10, 150);
			if (own_us > 0)
				put_event(s, &slept);
			ranks_reduce(s, reduce, RANKS_COMM + rank,
			             begin_us + 200 + 15 * rank + own_us, begin_us + 700 + late_us);
		}
		ranks_reduce(s, reduce, RANKS_COMM + 100, 98000, 98100);
	}
}

#endif
