/* SPDX-License-Identifier: MIT */
/*
 * A terminal of its own for a command that runs as another user: a pseudo-terminal, in a session of
 * its own. Who shares root's terminal can put words into it that root's shell then reads (TIOCSTI),
 * read what root types later, and change its settings.
 *
 * A process of its own passes on what is typed, while cuscope is in the foreground, and what is
 * written. Keys mean to the command what its own terminal's settings say. Ctrl-C interrupts it, and
 * cuscope is told. Ctrl-Z stops it and cuscope, unless the command has jobs of its own. When
 * cuscope is gone, killed as well, the terminal is given back, and what the command still writes is
 * shown.
 *
 * What was no terminal stays as it is: a pipe, a file.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <termios.h>

#include "base/err.h"

struct own_terminal;

/*
 * For a command whose standard streams are to be `streams`, three descriptors, or NULL: our own.
 * NULL in *terminal if none of these is a terminal. It will belong to `owner`. Before there are
 * threads that hold locks: it forks.
 */
int own_terminal_new(const int *streams, uid_t owner, struct own_terminal **terminal,
                     struct err *err);

/*
 * In the child, which has its streams already: a session of its own, and instead of each terminal
 * among the streams its own one. `terminal` may be NULL. 0 or an errno.
 */
int own_terminal_enter(const struct own_terminal *terminal);

/* In the parent, when the child is made. */
void own_terminal_made(struct own_terminal *terminal);

/* Who sends SIGINT for a Ctrl-C that the command got already; 0: nobody. */
pid_t own_terminal_sender(const struct own_terminal *terminal);

/* When the command has ended: what it wrote is shown by then, and our terminal as it was. */
void own_terminal_end(struct own_terminal *terminal);

void own_terminal_free(struct own_terminal *terminal); /* NULL is fine */

/*
 * The process between two terminals: what is typed at ours goes to the command's, what is written
 * to the command's goes to ours. See own_terminal.h. It is forked from a process that may have
 * threads, so it makes system calls and nothing else.
 */

struct relay {
	int in, out;       /* of our terminal */
	int master, slave; /* of the command's; the slave is kept open until the end */
	/* It writes its pid first. A byte that comes: the command has ended; it is answered by
	 * one when all is shown. Closed: cuscope is gone. */
	int control;
	pid_t owner; /* cuscope */
};

void relay_run(const struct relay *relay) __attribute__((noreturn));
