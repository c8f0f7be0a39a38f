// SPDX-License-Identifier: MIT
/* Values of the options that the commands with tables share. */
#include "cli/cli.h"

#include <stdint.h>
#include <string.h>

#include "base/parse.h"

enum table_form cli_table_form(const struct argp_state *state, const char *arg)
{
	for (int form = 0; form < TABLE_FORM_COUNT; form++) {
		if (!strcmp(table_form_name(form), arg))
			return form;
	}
	cli_bad_value(state, "--format", arg, "format (table, csv or json)");
}

size_t cli_top_rows(const struct argp_state *state, const char *arg)
{
	uint64_t top;

	if (!parse_number(arg, SIZE_MAX / 2, &top) || !top)
		cli_bad_value(state, "--top", arg, "number from 1 on");
	return top;
}

const char *cli_when(const struct argp_state *state, const char *arg)
{
	if (strcmp(arg, "auto") && strcmp(arg, "always") && strcmp(arg, "never"))
		cli_bad_value(state, "--color", arg, "choice (auto, always or never)");
	return arg;
}
