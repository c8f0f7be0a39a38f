/* SPDX-License-Identifier: MIT */
/*
 * The place of a stack: the one frame that a user would name as the code that did it, and what
 * reports call it. All reports that name places ask here, so they agree.
 */
#pragma once

#include "base/buf.h"
#include "trace/stack.h"

#define PLACE_NO_STACK "(no stack)"

/* How near a frame is to being what a user would name: the least wins, of equals the innermost. */
enum place_rank {
	PLACE_PYTHON,         /* a line of the user's */
	PLACE_PYTHON_LIBRARY, /* a line of an installed package or of Python's own */
	PLACE_NATIVE,
	PLACE_FRAMEWORK, /* of a library that stands between programs and CUDA, or of its headers */
	PLACE_SYSTEM,    /* the C library, the interpreter, the loader */
	PLACE_CUDA,
	PLACE_KERNEL,
	PLACE_COUNT
};

enum place_rank place_rank(const struct stack_frame *frame);

/* Of JAX: it has a compiler of its own, and no graphs that a program captures. */
bool place_is_jax(const struct stack_frame *frame);

enum place_compiler {
	PLACE_NO_COMPILER = 1,
	PLACE_COMPILER,    /* a compiler's own code, mostly of kernels: nvrtc, Triton, XLA */
	PLACE_TO_COMPILER, /* Python that stands between a program and one, or what it compiled */
};

enum place_compiler place_compiler(const struct stack_frame *frame);

/*
 * The package of a line of an installed one: *name is in its file's path, and so many letters long.
 * 0: it has none, or is PyTorch's, within which programs' own loops are called.
 */
size_t place_package(const struct stack_frame *frame, const char **name);

/* One that has the loop of programs that use it: trainers, servers. */
bool place_package_loops(const char *name, size_t length);

/*
 * The innermost frame of Python that is not in a folder of libraries; else the innermost frame of
 * Python; else the innermost native one that is neither CUDA's, nor a framework's or an allocator's
 * that passes calls on, nor of the C library, the interpreter, the loader, or of a header of the
 * system, the compiler or CUDA. Where there is no such frame, the innermost that comes nearest.
 * NULL where `stack` is NULL.
 */
const struct stack_frame *place_of(const struct stack *stack);

/*
 * Appends "DataLoader.__next__ (train.py:88)"; of native code "Model::grow (model.cpp:23)"
 * where its lines are known, else "Model::grow(int) (app)", or "app+0x1234" where it has no name;
 * PLACE_NO_STACK for NULL. Frames of one label are one place.
 */
void place_label(const struct stack_frame *frame, struct buf *out);

/* "train.py" of "/home/u/train.py": what labels have of a source file. */
const char *place_file(const char *path);

/* ---- places of many stacks ------------------------------------------------------------------- */

struct stack_places;

struct stack_places *stack_places_new(void);
void stack_places_free(struct stack_places *places);

/*
 * The number of the place of a stack of a run, from 0 on; each stack is looked at once. 0 is
 * PLACE_NO_STACK.
 */
uint32_t stack_places_number(struct stack_places *places, const struct stack *stack);

/* The same of a place whose label is known. */
uint32_t stack_places_number_of(struct stack_places *places, const char *label);

/* Lives as long as `places`. */
const char *stack_places_label(const struct stack_places *places, uint32_t number);
size_t stack_places_count(const struct stack_places *places);
