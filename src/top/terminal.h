/* SPDX-License-Identifier: MIT */
/*
 * The user's terminal while a screen is drawn on it (ncurses). It is given back as it was at
 * terminal_close(), at exit(), and by a handler when a crash ends the program. Only SIGKILL leaves
 * it as it is, as of every program.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* ---- screen -------------------------------------------------------------------------------- */

/*
 * A page of text lines with styles, as a terminal or a test can take it: nothing here knows of
 * terminals. Lines are made from top to bottom; what is wider or longer than the screen is cut.
 */

enum screen_style {
	SCREEN_PLAIN,
	SCREEN_DIM,
	SCREEN_BOLD,
	SCREEN_HEADING,  /* of a table */
	SCREEN_SELECTED, /* the row that keys act on */
	SCREEN_CHOSEN,   /* in a heading: what is sorted by, the tab that is open */
	SCREEN_WARNING,
	SCREEN_BAD,
	SCREEN_STYLES,
};

#define SCREEN_RUNS_MAX 24 /* changes of style in a line; further ones are ignored */

struct screen_run {
	size_t from; /* byte of the line's text */
	enum screen_style style;
};

struct screen_line {
	struct buf text; /* printable, UTF-8 */
	struct screen_run runs[SCREEN_RUNS_MAX];
	size_t n_runs;
};

struct screen {
	size_t rows, columns; /* 0: no limit */
	struct screen_line *lines;
	size_t n_lines, room;
};

/* A zeroed screen is an empty one; this empties it and keeps its memory. */
void screen_begin(struct screen *screen, size_t rows, size_t columns);
void screen_free(struct screen *screen);

/* Begins the next line; its text is to be appended to what is returned, until the next call. */
struct buf *screen_line(struct screen *screen);

/* The present line's text. */
struct buf *screen_last(struct screen *screen);

/* The style of what is appended to the present line from now on. */
void screen_style(struct screen *screen, enum screen_style style);

/* Blanks until the present line has as many columns, or has no more room. */
void screen_pad(struct screen *screen, size_t columns);

/* To be called when all lines are there. */
void screen_end(struct screen *screen);

/* All lines as text, without blanks at their ends. */
void screen_text(const struct screen *screen, struct buf *out);

/* ---- terminal ------------------------------------------------------------------------------ */

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
