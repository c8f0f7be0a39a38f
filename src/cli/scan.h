/* SPDX-License-Identifier: MIT */
/*
 * A look at a command line before argp's: of an option that does not exist argp says just that, and
 * "--durration" deserves better.
 */
#ifndef CUSCOPE_CLI_SCAN_H
#define CUSCOPE_CLI_SCAN_H

#include <argp.h>
#include <stdbool.h>

struct unknown_option {
	char typed[64];   /* without the dashes and the value; cut where it is longer */
	const char *near; /* the name that was meant, or NULL */
};

/*
 * Whether every long option exists, whole or as the beginning of a name; *unknown is the first that
 * does not. What else may be wrong is argp's to say. With `command`, the first word that is no
 * option begins a command, whose own options are not ours.
 */
bool scan_options(const struct argp *argp, int argc, char *const *argv, bool command,
                  struct unknown_option *unknown);

#endif
