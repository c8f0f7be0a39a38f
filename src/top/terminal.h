/* SPDX-License-Identifier: MIT */
/*
 * The user's terminal while a screen is drawn on it (ncurses). It is given back as it was at
 * terminal_close(), at exit(), and by a handler when a crash ends the program. Only SIGKILL leaves
 * it as it is, as of every program.
 */
#ifndef CUSCOPE_TOP_TERMINAL_H
#define CUSCOPE_TOP_TERMINAL_H

#include "base/err.h"
#include "top/screen.h"

/* One at a time. Colours unless NO_COLOR is set and not empty. */
int terminal_open(struct err *err);
void terminal_close(void); /* also where none is open */

void terminal_size(size_t *rows, size_t *columns);

/* Only what changed is sent. */
void terminal_show(const struct screen *screen);

#define TERMINAL_NO_KEY  -1
#define TERMINAL_RESIZED -2

/* Does not wait. A character, an enum top_key, or one of the above. */
int terminal_key(void);

#endif
