/* SPDX-License-Identifier: MIT */
/*
 * A process's command in a few words: "python3 train.py", where its name alone is python3. No more
 * of a command line is shown, since passwords stand there.
 */
#ifndef CUSCOPE_IDENTITY_PROCESS_COMMAND_H
#define CUSCOPE_IDENTITY_PROCESS_COMMAND_H

#include <stddef.h>

/* Of /proc/PID/cmdline: words, each with a NUL. Harmless, and cut to its room. */
void process_command_parse(const char *words, size_t bytes, char *command, size_t room);

#endif
