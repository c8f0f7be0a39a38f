// SPDX-License-Identifier: MIT
/* What a stream is written to. */
#include "cli/cli.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

const char *const cli_whens[] = { "auto", "always", "never", NULL };

bool cli_color(const char *when, FILE *out)
{
	const char *no_color = getenv("NO_COLOR");

	if (when && strcmp(when, "auto"))
		return !strcmp(when, "always");
	return out && isatty(fileno(out)) && !(no_color && *no_color);
}

size_t cli_width(FILE *out)
{
	const char *columns = getenv("COLUMNS");
	unsigned long most = UINT16_MAX, asked;
	struct winsize size;

	if (out && isatty(fileno(out)) && !ioctl(fileno(out), TIOCGWINSZ, &size))
		return size.ws_col;
	asked = out && columns ? strtoul(columns, NULL, 10) : 0;
	return asked < most ? asked : most;
}
