// SPDX-License-Identifier: MIT
#include "output/frames.h"

const char *frame_kind_name(enum frame_kind kind)
{
	static const char *const names[FRAME_COUNT] = {
		[FRAME_NATIVE] = "native",
		[FRAME_PYTHON] = "python",
		[FRAME_JIT] = "jit",
		[FRAME_CUDA] = "cuda",
		[FRAME_KERNEL_MODE] = "kernel",
		[FRAME_DRIVER] = "driver",
		[FRAME_GPU] = "gpu",
	};

	return names[kind];
}

void frame_add_words(const struct stack_frame *frame, struct buf *out)
{
	if (frame->function && *frame->function)
		buf_puts(out, frame->function);
	else if (!frame->module || !*frame->module)
		buf_puts(out, "[unknown]");
	else if (*frame->module == '[')
		buf_puts(out, frame->module);
	else
		buf_printf(out, "[%s]", frame->module);
}
