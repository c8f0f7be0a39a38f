/* SPDX-License-Identifier: MIT */
/* What a frame is called in all outputs. Frames of one name under the same frame are one. */
#ifndef CUSCOPE_PROFILE_FRAME_LABEL_H
#define CUSCOPE_PROFILE_FRAME_LABEL_H

#include <stdbool.h>

#include "base/buf.h"
#include "trace/stack.h"

/*
 * Appends "at::matmul(at::Tensor const&)"; of Python "Net.forward (model.py:16)", by the line that
 * ran, or without `by_line` "Net.forward (model.py)", since many classes have a function of that
 * name; of a file without names "[libcuda.so.1]": its addresses differ from call to call within
 * what may be one function, so all of it in one place is one frame.
 */
void frame_label(const struct stack_frame *frame, bool by_line, struct buf *out);

/* Takes the line off a label: what has changed is told by function. In its place. */
void frame_label_drop_line(char *label);

#endif
