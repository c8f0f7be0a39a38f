/* SPDX-License-Identifier: MIT */
/* What a frame is called in all outputs. Frames of one name under the same frame are one. */
#ifndef CUSCOPE_PROFILE_FRAME_LABEL_H
#define CUSCOPE_PROFILE_FRAME_LABEL_H

#include "base/buf.h"
#include "trace/stack.h"

/*
 * Appends "at::matmul(at::Tensor const&)"; of Python "Net.forward (model.py)", since many classes
 * have a function of that name; of a file without names "[libcuda.so.1]": its addresses differ
 * from call to call within what may be one function, so all of it in one place is one frame.
 */
void frame_label(const struct stack_frame *frame, struct buf *out);

#endif
