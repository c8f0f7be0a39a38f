// SPDX-License-Identifier: MIT
/* What commands say on standard error and output. */
#include "cli/cli.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/text.h"

__attribute__((format(printf, 2, 0))) static void cli_print_safe(FILE *out, const char *fmt,
                                                                 va_list ap)
{
	struct buf text = { 0 }, safe = { 0 };

	buf_vprintf(&text, fmt, ap);
	text_add_safe(&safe, text.data ? text.data : "");
	if (safe.len)
		fwrite(safe.data, 1, safe.len, out);
	buf_free(&text);
	buf_free(&safe);
}

void cli_say(const char *fmt, ...)
{
	va_list ap;

	fputs("cuscope: ", stderr);
	va_start(ap, fmt);
	cli_print_safe(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

void cli_notice(void *data, const char *text)
{
	cli_say("%s", text);
}

void cli_print_line(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	cli_print_safe(stdout, fmt, ap);
	va_end(ap);
	putchar('\n');
}
