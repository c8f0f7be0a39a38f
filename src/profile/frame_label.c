// SPDX-License-Identifier: MIT
#include "profile/frame_label.h"

#include <string.h>

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

void frame_label(const struct stack_frame *frame, bool by_line, struct buf *out)
{
	if (frame->function && *frame->function)
		buf_puts(out, frame->function);
	else if (!frame->module)
		buf_puts(out, "[unknown]");
	else if (*frame->module == '[')
		buf_puts(out, frame->module);
	else
		buf_printf(out, "[%s]", frame->module);
	if (frame->kind != FRAME_PYTHON || !frame->file || !*frame->file)
		return;
	buf_printf(out, " (%s", base_name(frame->file));
	if (by_line && frame->line)
		buf_printf(out, ":%u", frame->line);
	buf_putc(out, ')');
}

void frame_label_drop_line(char *label)
{
	char *open = strrchr(label, '('), *colon = open ? strrchr(open, ':') : NULL;

	if (!colon || open < label + 2 || open[-1] != ' ' || colon[1] < '0' || colon[1] > '9' ||
	    strcmp(colon + 1 + strspn(colon + 1, "0123456789"), ")"))
		return;
	strcpy(colon, ")");
}
