/* SPDX-License-Identifier: MIT */
/* `cuscope probes SPEC`: what the pattern of a hook (hooks/spec.h) stands for on this machine. */
#ifndef CUSCOPE_CLI_PROBES_HOOKS_H
#define CUSCOPE_CLI_PROBES_HOOKS_H

#include "cli/cli.h"

/* Whether a word of the command line is a hook: "kprobe:nv*". */
bool probes_is_hook(const char *word);

/*
 * Lists it: of `file` where there is one, else of the processes of `choice` where one is given.
 * Returns the exit status; what failed is told.
 */
int probes_list_hook(const char *text, const char *file, struct target_choice *choice,
                     enum table_form form);

#endif
