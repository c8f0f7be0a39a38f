/* SPDX-License-Identifier: MIT */
/* Figures and phrases that all outputs of a profile have in common. Private to src/profile. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "profile/profile_private.h"
#include "profile/profile_write.h"
#include "trace/stack.h"

/*
 * "12.3 %". What is something is never shown as "0.0 %", and what is not all never as "100.0 %".
 * Of nothing it is "0.0 %".
 */
void words_add_share(struct buf *out, uint64_t part, uint64_t whole);

/* "CPU", "off CPU", "GPU" */
const char *words_weight(enum weight_kind kind);

/* "Python", "kernel mode", "GPU": for legends. */
const char *words_kind(enum profile_kind kind);

/* "Profile of python3 train.py: 9.8 s on CPUs, 4.1 s on GPUs". Names in it are not made safe. */
void words_add_title(const struct profile *profile, const struct profile_info *info,
                     struct buf *out);

/* "4 processes, 10 s at 99 samples a second, on gpu1, 2026-11-22 13:00:00"; may be empty. */
void words_add_subject(const struct profile_info *info, struct buf *out);

/*
 * A frame's name in so many columns. What it is of stays, however long the rest:
 * "[GPU_Kernel]gemm<...>(...)"; the file of a function of Python goes first. Not made safe.
 */
void words_add_frame(struct buf *out, const char *label, size_t columns);

/* a + b, at most UINT64_MAX: weights come from files and programs that may say anything. */
static inline uint64_t words_sum(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

/* ---- frame label --------------------------------------------------------------------------- */

/* What a frame is called in all outputs. Frames of one name under the same frame are one. */

/*
 * Appends "at::matmul(at::Tensor const&)"; of Python "Net.forward (model.py:16)", by the line that
 * ran, or without `by_line` "Net.forward (model.py)", since many classes have a function of that
 * name; of a file without names "[libcuda.so.1]": its addresses differ from call to call within
 * what may be one function, so all of it in one place is one frame.
 */
void frame_label(const struct stack_frame *frame, bool by_line, struct buf *out);

/* Takes the line off a label: what has changed is told by function. In its place. */
void frame_label_drop_line(char *label);
