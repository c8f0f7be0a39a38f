// SPDX-License-Identifier: MIT
/* What commands say on standard error and output, and how they parse their options. */
#include "cli/cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/text.h"
#include "cli/completion.h"
#include "cli/scan.h"

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

void cli_bad_value(const struct argp_state *state, const char *option, const char *value,
                   const char *what)
{
	fprintf(stderr, "%s: %s: '%s' is no %s\n", state->name, option, value, what);
	exit(EXIT_USAGE);
}

static void reject(const char *program, const struct unknown_option *unknown)
{
	fprintf(stderr, "%s: there is no option '--%s'", program, unknown->typed);
	if (unknown->near)
		fprintf(stderr, "; did you mean '--%s'?\n", unknown->near);
	else
		fprintf(stderr, "; see '%s --help'\n", program);
	exit(EXIT_USAGE);
}

void cli_parse(const struct argp *argp, int argc, char **argv, bool command, void *input)
{
	struct unknown_option unknown;

	completion_answer(argp);
	if (!scan_options(argp, argc, argv, command, &unknown))
		reject(argv[0], &unknown);
	argp_err_exit_status = EXIT_USAGE;
	if (argp_parse(argp, argc, argv, command ? ARGP_IN_ORDER : 0, NULL, input))
		exit(EXIT_USAGE);
}
