/* SPDX-License-Identifier: MIT */
/* The DETAILS of a line in the three parts that the table fits into a line. Private
 * to src/output. */
#pragma once

#include "base/buf.h"
#include "output/format.h"
#include "trace/event.h"
#include "trace/stack.h"

/* Each may be empty; describe_call() is those that are not with a blank between. */
struct description {
	struct buf subject; /* "vectorAdd(float const*)", a range's name: may be shortened */
	struct buf words;   /* "grid=(196,1,1) block=(256,1,1) shmem=0 stream=0" */
	struct buf result;  /* "= cudaErrorMemoryAllocation (2)": never cut off */
};

/* Replaces what was there; a zeroed description is an empty one. */
void describe(const struct call *call, struct description *description);
void describe_activity(const struct activity *activity, const struct delay *delay,
                       struct description *description);
void describe_range(const struct range *range, struct description *description);
/* What a thread waited for, and who ended or prolonged it: of `record --host-waits`. */
void describe_wait(const struct sample *sample, struct description *description);
void description_free(struct description *description);

/* ---- activity ------------------------------------------------------------------------------ */

/* What ran on the GPU, in the words of PyTorch's profiler. */

/* "Memcpy HtoD (Pinned -> Device)", "Memset (Device)", or the kernel's name, as it is. */
void activity_name(const struct activity *activity, struct buf *out);

/*
 * A kernel's name where it stands in each line that has the kernel. Long ones are cut, with the
 * kernel's number behind them, so that two that begin alike are still two.
 */
void kernel_add_shown(const struct kernel *kernel, struct buf *out);
void kernel_add_json(const struct kernel *kernel, struct buf *out); /* as a string of JSON */
bool kernel_is_cut(const struct kernel *kernel);

/* "Pinned", "Device"; "Unknown" for what is none. */
const char *activity_memory_name(enum activity_memory memory);

/* "HtoD"; "Unknown" for a direction that is not known. */
const char *activity_direction_name(enum api_direction direction);

/*
 * Rows of one stream. What runs at the same time in one stream (the branches of a graph, kernels
 * that begin before the one before has ended) cannot stand in one row, where slices have to nest.
 * Activities have to be given in order of their ends, as they come.
 */
#define ROWS_MAX 64

struct rows {
	uint64_t end_ns[ROWS_MAX]; /* of the last activity in each */
};

/* The first row that is free for it, and is not any longer. */
unsigned rows_choose(struct rows *rows, const struct activity *activity);
unsigned rows_choose_span(struct rows *rows, uint64_t begin_ns, uint64_t end_ns);

/* What several formats say of the frames of stacks. Private to src/output. */

/* "native", "python": the word that all formats have for a kind. */
const char *frame_kind_name(enum frame_kind kind);

/* Appends the function, or where it has no name its file, "[libcuda.so.1]". Not made safe. */
void frame_add_words(const struct stack_frame *frame, struct buf *out);
