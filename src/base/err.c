// SPDX-License-Identifier: MIT
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

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
	text_make_safe(err->text, sizeof(err->text));
	return code;
}

int err_prefix(struct err *err, const char *fmt, ...)
{
	char rest[sizeof(err->text)];
	size_t used;
	va_list ap;

	if (!err)
		return 0;
	memcpy(rest, err->text, sizeof(rest));
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	used = strlen(err->text);
	snprintf(err->text + used, sizeof(err->text) - used, ": %s", rest);
	text_make_safe(err->text, sizeof(err->text));
	return err->code;
}
