// SPDX-License-Identifier: MIT
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int err_set(struct err *err, int code, const char *fmt, ...)
{
	va_list ap;

	code = code > 0 ? -code : code;
	if (!err)
		return code;
	err->code = code;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return code;
}

int err_prefix(struct err *err, const char *fmt, ...)
{
	char head[256], whole[sizeof(err->text) + sizeof(head) + 2];
	va_list ap;

	if (!err)
		return 0;
	va_start(ap, fmt);
	vsnprintf(head, sizeof(head), fmt, ap);
	va_end(ap);
	snprintf(whole, sizeof(whole), "%s: %s", head, err->text);
	snprintf(err->text, sizeof(err->text), "%.*s", (int)sizeof(err->text) - 1, whole);
	return err->code;
}
