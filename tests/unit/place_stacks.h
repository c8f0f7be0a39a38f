/* SPDX-License-Identifier: MIT */
/* Two stacks of calls into CUDA: under a line of Python, and under a function of C++. */
#ifndef CUSCOPE_TESTS_PLACE_STACKS_H
#define CUSCOPE_TESTS_PLACE_STACKS_H

#include "base/array.h"
#include "trace/stack.h"

#define IN_PYTHON_PLACE "Cache.fill (train.py:88)"
#define IN_NATIVE_PLACE "Model::grow(int) (app)"

static const struct stack_frame frame_of_cuda = { .kind = FRAME_CUDA,
	                                          .function = "cudaMalloc",
	                                          .module = "libcudart.so.13" };
static const struct stack_frame frame_of_python = {
	.kind = FRAME_PYTHON, .function = "Cache.fill", .file = "/app/train.py", .line = 88
};
static const struct stack_frame frame_of_app = { .kind = FRAME_NATIVE,
	                                         .function = "Model::grow(int)",
	                                         .module = "app" };
static const struct stack_frame *const python_frames[] = { &frame_of_cuda, &frame_of_app,
	                                                   &frame_of_python };
static const struct stack_frame *const native_frames[] = { &frame_of_cuda, &frame_of_app };

static const struct stack in_python = { .id = 0, .n_frames = 3, .frames = python_frames };
static const struct stack in_native = { .id = 1, .n_frames = 2, .frames = native_frames };

#endif
