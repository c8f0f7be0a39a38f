/* SPDX-License-Identifier: MIT */
/*
 * The process between two terminals: what is typed at ours goes to the command's, what is written
 * to the command's goes to ours. See own_terminal.h. It is forked from a process that may have
 * threads, so it makes system calls and nothing else.
 */
#ifndef CUSCOPE_PROBE_TERMINAL_RELAY_H
#define CUSCOPE_PROBE_TERMINAL_RELAY_H

#include <stdbool.h>
#include <sys/types.h>
#include <termios.h>

struct relay {
	int in, out;       /* of our terminal */
	int master, slave; /* of the command's; the slave is kept open until the end */
	/* It writes its pid first. A byte that comes: the command has ended; it is answered by
	 * one when all is shown. Closed: cuscope is gone. */
	int control;
	pid_t owner; /* cuscope */
};

void relay_run(const struct relay *relay) __attribute__((noreturn));

#endif
