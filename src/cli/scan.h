/* SPDX-License-Identifier: MIT */
/*
 * A look at a command line before argp's: of an option that does not exist argp says just that, and
 * "--durration" deserves better.
 */
#ifndef CUSCOPE_CLI_SCAN_H
#define CUSCOPE_CLI_SCAN_H

#include <stdbool.h>

#include "cli/option.h"

#define SCAN_OPTIONS_MAX 128

/* The options that a command understands, help's among them. */
struct scan_known {
	const struct option_row *option[SCAN_OPTIONS_MAX];
	const char *name[SCAN_OPTIONS_MAX];
	size_t count;
};

void scan_known_of(const struct option_group *group, struct scan_known *known);

/* The option that a long name means: exact, or one that begins so. NULL: none. */
const struct option_row *scan_find_long(const struct scan_known *known, const char *name,
                                        size_t len);

/* Of a group of short options that of the last, if it takes its value from the next word. */
const struct option_row *scan_short_takes_next(const struct scan_known *known, const char *word);

struct unknown_option {
	char typed[64];   /* without the dashes and the value; cut where it is longer */
	const char *near; /* the name that was meant, or NULL */
};

/*
 * Whether every long option exists, whole or as the beginning of a name; *unknown is the first that
 * does not. What else may be wrong is argp's to say. With `command`, the first word that is no
 * option begins a command, whose own options are not ours.
 *
 * "-h" becomes "--help": it is no option of any command, and what many try first.
 */
bool scan_options(const struct option_group *group, int argc, char **argv, bool command,
                  struct unknown_option *unknown);

#endif
