/* SPDX-License-Identifier: MIT */
/*
 * The golden trace `stacks`: two steps of a training in Python, whose launches have stacks but for
 * one, and samples of its threads: in all kinds of code, blocked, cut short, and one without a
 * stack.
 */
#ifndef TESTS_GOLDEN_STACKS_H
#define TESTS_GOLDEN_STACKS_H

#include "base/array.h"
#include "scene.h"

enum stacks_place {
	AT_START,
	AT_TRAIN,
	AT_FORWARD,
	AT_ADDMM,
	AT_CHECK,
	AT_LAUNCH,
	AT_LIBCUDA,
	AT_IOCTL,
	AT_NVIDIA,
	AT_JIT,
	AT_WORKER,
	AT_WAIT,
	STACKS_PLACES
};

static const struct stack_frame stacks_frames[STACKS_PLACES] = {
	[AT_START] = { AT_START, FRAME_NATIVE, false, "_start", "python3.11", .offset = 0x1120 },
	[AT_TRAIN] = { AT_TRAIN, FRAME_PYTHON, false, "train", NULL, "/app/train.py", 88, 80 },
	[AT_FORWARD] = { AT_FORWARD, FRAME_PYTHON, false, "Net.forward", NULL,
	                 "/app/\xc3\xa4 \"1\".py", 12, 10 },
	[AT_ADDMM] = { AT_ADDMM, FRAME_NATIVE, false,
	               "at::addmm(at::Tensor const&, at::Tensor const&)", "libtorch_cpu.so",
	               "Addmm.cpp", 301, 290, 0x1234 },
	[AT_CHECK] = { AT_CHECK, FRAME_NATIVE, true, "check", "libtorch_cpu.so", "Check.h", 7, 5,
	               0x1234 },
	[AT_LAUNCH] = { AT_LAUNCH, FRAME_CUDA, false, "cudaLaunchKernel", "libcudart.so.13",
	                .offset = 0x777 },
	[AT_LIBCUDA] = { AT_LIBCUDA, FRAME_CUDA, false, NULL, "libcuda.so.1", .offset = 0x9000 },
	[AT_IOCTL] = { AT_IOCTL, FRAME_KERNEL_MODE, false, "__x64_sys_ioctl", "[kernel]" },
	[AT_NVIDIA] = { AT_NVIDIA, FRAME_DRIVER, false, "nvidia_ioctl", "nvidia" },
	[AT_JIT] = { AT_JIT, FRAME_JIT, false, "triton_\x1b[31mfused", "[anon]", .offset = 0x40 },
	[AT_WORKER] = { AT_WORKER, FRAME_NATIVE, false, "worker", "libtorch_cpu.so",
	                .offset = 0x5000 },
	[AT_WAIT] = { AT_WAIT, FRAME_KERNEL_MODE, false, "futex_wait", "[kernel]" },
};

static inline const struct stack *stacks_of(uint32_t id, enum stack_end end, bool python_cut,
                                            const enum stacks_place *places, size_t n)
{
	static const struct stack_frame *frames[16][8];
	static struct stack stacks[16];

	for (size_t i = 0; i < n; i++)
		frames[id][i] = &stacks_frames[places[i]];
	stacks[id] = (struct stack){ id, end, python_cut, n, frames[id] };
	return &stacks[id];
}

#define STACK_OF(id, end, cut, ...)                                                                \
	stacks_of(id, end, cut, (const enum stacks_place[]){ __VA_ARGS__ },                        \
	          ARRAY_SIZE(((const enum stacks_place[]){ __VA_ARGS__ })))

static inline void put_one(struct scene *s, double at_us, const struct sample *sample)
{
	struct event event = { .type = EVENT_SAMPLE,
		               .time_ns = US(at_us),
		               .process = s->process,
		               .tid = s->tid,
		               .sample = sample };

	put_event(s, &event);
}

static inline void put_sample(struct scene *s, double at_us, double us, const struct stack *stack)
{
	const struct sample sample = { .weight_ns = (uint64_t)(us * 1000), .stack = stack };

	put_one(s, at_us, &sample);
}

static inline void put_blocked(struct scene *s)
{
	const struct sample woken = { .kind = SAMPLE_OFF_CPU,
		                      .weight_ns = 3250125,
		                      .stack = STACK_OF(6, STACK_WHOLE, false, AT_WAIT, AT_WORKER),
		                      .blocked = BLOCKED_WOKEN,
		                      .waker = "lo;ader",
		                      .waker_tid = 77,
		                      .count = 1 };
	const struct sample brief = {
		.kind = SAMPLE_OFF_CPU, .weight_ns = 120000, .blocked = BLOCKED_BRIEF, .count = 4
	};

	put_one(s, 4000, &woken);
	put_one(s, 4000, &brief);
}

static inline void put_step(struct scene *s, const struct kernel *kernel, uint64_t mark,
                            double at_us, const struct stack *stack)
{
	struct activity ran = { .kind = ACTIVITY_KERNEL,
		                .correlation = mark,
		                .context = 1,
		                .stream = 7,
		                .kernel = kernel,
		                .grid = { 196, 1, 1 },
		                .block = { 256, 1, 1 } };
	struct call call = launch_at("cudaLaunchKernel", at_us, kernel);

	call.stack = stack;
	s->mark = mark;
	put_call(s, call);
	put_activity(s, ran, at_us + 20, 400);
}

static inline void put_stacks(struct scene *s, const struct process *process,
                              const struct kernel *one, const struct kernel *other)
{
	const struct stack *forward =
		STACK_OF(0, STACK_WHOLE, false, AT_FORWARD, AT_TRAIN, AT_START);
	const struct stack *launch = STACK_OF(1, STACK_WHOLE, false, AT_LAUNCH, AT_CHECK, AT_ADDMM,
	                                      AT_FORWARD, AT_TRAIN, AT_START);
	const struct stack *driver =
		STACK_OF(2, STACK_WHOLE, false, AT_NVIDIA, AT_IOCTL, AT_LIBCUDA, AT_LAUNCH,
	                 AT_ADDMM, AT_FORWARD, AT_TRAIN, AT_START);
	const struct stack *train = STACK_OF(3, STACK_WHOLE, true, AT_LAUNCH, AT_TRAIN, AT_START);

	put_process(s, 0, process);
	put_thread(s, 5, process->pid, "python3", 20);
	put_step(s, one, 1, 1000, launch);
	put_step(s, other, 2, 2000, train);
	put_step(s, one, 3, 3000, NULL);
	put_sample(s, 500, 1000, forward);
	put_sample(s, 1500, 1000, driver);
	put_sample(s, 2500, 1000, forward);
	put_sample(s, 3500, 1000, STACK_OF(4, STACK_NO_TABLE, false, AT_JIT, AT_FORWARD));
	put_sample(s, 4500, 1000, NULL);
	put_thread(s, 600, process->pid + 1, "worker", 20);
	put_sample(s, 700, 1000, STACK_OF(5, STACK_WHOLE, false, AT_WORKER));
	put_blocked(s);
}

static inline struct run_stacks stacks_asked(void)
{
	return (struct run_stacks){ .sample_ns = 1000000,
		                    .calls = STACK_CALLS_WORK,
		                    .one_in = 1,
		                    .call_ns = 1000000,
		                    .blocked = true,
		                    .blocked_ns = 100000,
		                    .missed = { [STACKS_LOST] = 1, [STACKS_PYTHON_LOST] = 2 } };
}

#endif
