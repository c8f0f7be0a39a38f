/* SPDX-License-Identifier: MIT */
/* A profile whose every number is known: a training step in Python that launches kernels. */
#ifndef CUSCOPE_TESTS_PROFILE_SCENE_H
#define CUSCOPE_TESTS_PROFILE_SCENE_H

#include "profile/profile_write.h"

#include "base/array.h"

#define MS 1000000ull

static const struct stack_frame scene_start = { 0, FRAME_NATIVE, false, "_start", "python3.11" };
static const struct stack_frame scene_train = { 1,    FRAME_PYTHON, false, "train",
	                                        NULL, "train.py",   88,    80 };
static const struct stack_frame scene_forward = { 2,    FRAME_PYTHON,    false, "Net.forward",
	                                          NULL, "/app/model.py", 12,    10 };
static const struct stack_frame scene_addmm = { 3,
	                                        FRAME_NATIVE,
	                                        false,
	                                        "at::addmm(at::Tensor const&, at::Tensor const&)",
	                                        "libtorch_cpu.so",
	                                        "Addmm.cpp",
	                                        301,
	                                        290,
	                                        0x1234,
	                                        "0123abcd" };
static const struct stack_frame scene_inlined = {
	4, FRAME_NATIVE, true, "check", "libtorch_cpu.so", "Check.h", 7, 5, 0x1234, "0123abcd"
};
static const struct stack_frame scene_launch = {
	5, FRAME_CUDA, false, "cudaLaunchKernel", "libcudart.so.12", NULL, 0, 0, 0x777
};
static const struct stack_frame scene_libcuda = { 6,    FRAME_CUDA, false, NULL,   "libcuda.so.1",
	                                          NULL, 0,          0,     0x9000, "aa01" };
static const struct stack_frame scene_libcuda_2 = { 7,    FRAME_CUDA, false, NULL,   "libcuda.so.1",
	                                            NULL, 0,          0,     0x9100, "aa02" };
static const struct stack_frame scene_ioctl = { 8, FRAME_KERNEL_MODE, false, "__x64_sys_ioctl",
	                                        "kernel" };
static const struct stack_frame scene_nvidia = { 9, FRAME_DRIVER, false, "nvidia_ioctl", "nvidia" };
static const struct stack_frame scene_jit = { 10, FRAME_JIT, false, "Builtin:ArrayMap", "[jit]" };

#define SCENE_STACK(name, number, how, ...)                                                        \
	static const struct stack_frame *const name##_frames[] = { __VA_ARGS__ };                  \
	static const struct stack name = { .id = number,                                           \
		                           .end = how,                                             \
		                           .n_frames = ARRAY_SIZE(name##_frames),                  \
		                           .frames = name##_frames }

SCENE_STACK(scene_in_forward, 0, STACK_WHOLE, &scene_forward, &scene_train, &scene_start);
SCENE_STACK(scene_in_check, 1, STACK_WHOLE, &scene_inlined, &scene_addmm, &scene_forward,
            &scene_train, &scene_start);
SCENE_STACK(scene_in_launch, 2, STACK_WHOLE, &scene_launch, &scene_addmm, &scene_forward,
            &scene_train, &scene_start);
SCENE_STACK(scene_in_driver, 3, STACK_WHOLE, &scene_nvidia, &scene_ioctl, &scene_libcuda,
            &scene_launch, &scene_addmm, &scene_forward, &scene_train, &scene_start);
SCENE_STACK(scene_in_driver_2, 4, STACK_WHOLE, &scene_nvidia, &scene_ioctl, &scene_libcuda_2,
            &scene_launch, &scene_addmm, &scene_forward, &scene_train, &scene_start);
SCENE_STACK(scene_cut, 5, STACK_NO_TABLE, &scene_libcuda);
SCENE_STACK(scene_in_jit, 6, STACK_BAD, &scene_jit);

static void scene_add(struct profile *profile, enum weight_kind kind, const struct stack *stack,
                      uint64_t ms, const char *gpu)
{
	static const struct process process = { 0, 4242, "python3" };

	profile_add(profile, &(struct profile_sample){ .kind = kind,
	                                               .ns = ms * MS,
	                                               .stack = stack,
	                                               .gpu = gpu,
	                                               .process = &process,
	                                               .tid = 4243,
	                                               .thread = "worker" });
}

/* 100 ms on CPUs, 60 ms on GPUs, 40 ms blocked. */
static inline void scene_fill(struct profile *profile)
{
	scene_add(profile, WEIGHT_CPU, &scene_in_forward, 40, NULL);
	scene_add(profile, WEIGHT_CPU, &scene_in_check, 20, NULL);
	scene_add(profile, WEIGHT_CPU, &scene_in_driver, 10, NULL);
	scene_add(profile, WEIGHT_CPU, &scene_in_driver_2, 15, NULL);
	scene_add(profile, WEIGHT_CPU, &scene_cut, 10, NULL);
	scene_add(profile, WEIGHT_CPU, &scene_in_jit, 5, NULL);
	scene_add(profile, WEIGHT_GPU, &scene_in_launch, 50,
	          "[GPU_Kernel]void gemm<float, 128>(float const*, int)");
	scene_add(profile, WEIGHT_GPU, &scene_in_launch, 6, "[GPU_Copy]HtoD");
	scene_add(profile, WEIGHT_GPU, NULL, 4, "[GPU_Set]Device");
	scene_add(profile, WEIGHT_OFF_CPU, &scene_in_driver, 40, NULL);
}

/* Another run: the check is gone, the kernel is half as long, and there is a new one. */
static inline void scene_fill_faster(struct profile *profile)
{
	scene_add(profile, WEIGHT_CPU, &scene_in_forward, 40, NULL);
	scene_add(profile, WEIGHT_CPU, &scene_in_driver, 25, NULL);
	scene_add(profile, WEIGHT_CPU, &scene_cut, 10, NULL);
	scene_add(profile, WEIGHT_GPU, &scene_in_launch, 25,
	          "[GPU_Kernel]void gemm<float, 128>(float const*, int)");
	scene_add(profile, WEIGHT_GPU, &scene_in_launch, 20, "[GPU_Kernel]relu(float*)");
	scene_add(profile, WEIGHT_OFF_CPU, &scene_in_driver, 40, NULL);
}

static const struct profile_info scene_info = {
	.subject = "python3 train.py",
	.hostname = "gpu1",
	.duration_ns = 200 * MS,
	.rate_hz = 99,
	.processes = 1,
};

#endif
