/* SPDX-License-Identifier: MIT */
/* What several formats say of the frames of stacks. Private to src/output. */
#ifndef CUSCOPE_OUTPUT_FRAMES_H
#define CUSCOPE_OUTPUT_FRAMES_H

#include "base/buf.h"
#include "trace/stack.h"

/* "native", "python": the word that all formats have for a kind. */
const char *frame_kind_name(enum frame_kind kind);

/* Appends the function, or where it has no name its file, "[libcuda.so.1]". Not made safe. */
void frame_add_words(const struct stack_frame *frame, struct buf *out);

#endif
