// SPDX-License-Identifier: MIT
#include "profile/frame_label.h"

#include <string.h>

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

void frame_label(const struct stack_frame *frame, struct buf *out)
{
	if (frame->function && *frame->function)
		buf_puts(out, frame->function);
	else if (!frame->module)
		buf_puts(out, "[unknown]");
	else if (*frame->module == '[')
		buf_puts(out, frame->module);
	else
		buf_printf(out, "[%s]", frame->module);
	if (frame->kind == FRAME_PYTHON && frame->file && *frame->file)
		buf_printf(out, " (%s)", base_name(frame->file));
}
