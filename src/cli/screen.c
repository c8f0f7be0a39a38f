// SPDX-License-Identifier: MIT
/* What a stream is written to. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool cli_color(const char *when, FILE *out)
{
	const char *no_color = getenv("NO_COLOR");

	if (when && strcmp(when, "auto"))
		return !strcmp(when, "always");
	return out && isatty(fileno(out)) && !(no_color && *no_color);
}

size_t cli_width(FILE *out)
{
	struct winsize size;

	if (!out || !isatty(fileno(out)) || ioctl(fileno(out), TIOCGWINSZ, &size))
		return 0;
	return size.ws_col;
}
