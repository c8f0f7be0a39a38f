// SPDX-License-Identifier: MIT
#include "top/terminal.h"

#include <curses.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/array.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "top/top.h"

/* ---- screen -------------------------------------------------------------------------------- */

void screen_begin(struct screen *screen, size_t rows, size_t columns)
{
	screen->rows = rows;
	screen->columns = columns;
	screen->n_lines = 0;
}

void screen_free(struct screen *screen)
{
	for (size_t i = 0; i < screen->room; i++)
		buf_free(&screen->lines[i].text);
	free(screen->lines);
	memset(screen, 0, sizeof(*screen));
}

static struct screen_line *last_line(struct screen *screen)
{
	return &screen->lines[screen->n_lines - 1];
}

struct buf *screen_line(struct screen *screen)
{
	struct screen_line *line;

	if (screen->n_lines == screen->room) {
		size_t more = screen->room ? 2 * screen->room : 32;

		screen->lines = xrealloc(screen->lines, more * sizeof(*screen->lines));
		memset(screen->lines + screen->room, 0,
		       (more - screen->room) * sizeof(*screen->lines));
		screen->room = more;
	}
	screen->n_lines++;
	line = last_line(screen);
	buf_reset(&line->text);
	buf_puts(&line->text, "");
	line->n_runs = 0;
	return &line->text;
}

struct buf *screen_last(struct screen *screen)
{
	return &last_line(screen)->text;
}

void screen_style(struct screen *screen, enum screen_style style)
{
	struct screen_line *line = last_line(screen);

	if (line->n_runs < SCREEN_RUNS_MAX)
		line->runs[line->n_runs++] = (struct screen_run){ line->text.len, style };
}

void screen_pad(struct screen *screen, size_t columns)
{
	if (screen->columns && columns > screen->columns)
		columns = screen->columns;
	text_pad(&last_line(screen)->text, 0, columns);
}

static void screen_cut(struct screen_line *line, size_t columns)
{
	struct buf whole = line->text;

	if (text_columns(whole.data) <= columns)
		return;
	memset(&line->text, 0, sizeof(line->text));
	text_add_cut(&line->text, whole.data, columns);
	buf_free(&whole);
}

void screen_end(struct screen *screen)
{
	if (screen->rows && screen->n_lines > screen->rows)
		screen->n_lines = screen->rows;
	for (size_t i = 0; screen->columns && i < screen->n_lines; i++)
		screen_cut(&screen->lines[i], screen->columns);
}

void screen_text(const struct screen *screen, struct buf *out)
{
	for (size_t i = 0; i < screen->n_lines; i++) {
		const struct buf *text = &screen->lines[i].text;
		size_t len = text->len;

		while (len && text->data[len - 1] == ' ')
			len--;
		buf_add(out, text->data, len);
		buf_putc(out, '\n');
	}
}

/* ---- terminal ------------------------------------------------------------------------------ */

#define ESCAPE_MS 25 /* what follows an escape within this time is one key with it */

enum { PAIR_WARNING = 1, PAIR_BAD };

/* ncurses has one terminal, and a signal's handler finds nothing but what is static. */
static struct {
	SCREEN *screen; /* NULL: none is open */
	struct termios before;
	char restore[128]; /* what makes the screen ordinary again */
	size_t restore_len;
	bool utf8, told_exit;
	attr_t attributes[SCREEN_STYLES];
	short pairs[SCREEN_STYLES];
} terminal;

/* ---- giving it back ------------------------------------------------------------------------ */

void terminal_close(void)
{
	if (!terminal.screen)
		return;
	endwin();
	delscreen(terminal.screen);
	terminal.screen = NULL;
}

static const int crash_signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT,
	                             SIGQUIT, SIGSYS, SIGINT, SIGTERM };

/* ncurses cannot be called here: write(2) and tcsetattr(3) can. */
static void on_crash(int sig)
{
	if (terminal.screen) {
		ssize_t wrote = write(STDOUT_FILENO, terminal.restore, terminal.restore_len);

		(void)wrote; /* nothing could be done about it */
		tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal.before);
	}
	signal(sig, SIG_DFL);
	raise(sig);
}

static void keep(const char *name)
{
	const char *text = tigetstr((char *)name);
	size_t len;

	if (!text || text == (const char *)-1)
		return;
	len = strlen(text);
	if (terminal.restore_len + len > sizeof(terminal.restore))
		return;
	memcpy(terminal.restore + terminal.restore_len, text, len);
	terminal.restore_len += len;
}

static void prepare_restoring(void)
{
	struct sigaction action = { .sa_handler = on_crash, .sa_flags = SA_RESETHAND };

	terminal.restore_len = 0;
	keep("sgr0");  /* no colours */
	keep("rmkx");  /* keys send what they did */
	keep("cnorm"); /* the cursor is seen */
	keep("rmcup"); /* what was there before comes back */
	for (size_t i = 0; i < ARRAY_SIZE(crash_signals); i++)
		sigaction(crash_signals[i], &action, NULL);
	if (!terminal.told_exit)
		atexit(terminal_close);
	terminal.told_exit = true;
}

/* ---- taking it ----------------------------------------------------------------------------- */

static void choose_styles(void)
{
	const char *no_color = getenv("NO_COLOR");

	memset(terminal.attributes, 0, sizeof(terminal.attributes));
	memset(terminal.pairs, 0, sizeof(terminal.pairs));
	terminal.attributes[SCREEN_DIM] = A_DIM;
	terminal.attributes[SCREEN_BOLD] = A_BOLD;
	terminal.attributes[SCREEN_HEADING] = A_REVERSE;
	terminal.attributes[SCREEN_SELECTED] = A_REVERSE | A_BOLD;
	terminal.attributes[SCREEN_CHOSEN] = A_BOLD | A_UNDERLINE;
	terminal.attributes[SCREEN_WARNING] = A_BOLD;
	terminal.attributes[SCREEN_BAD] = A_BOLD;
	if ((no_color && *no_color) || !has_colors() || start_color() == ERR ||
	    use_default_colors() == ERR)
		return;
	init_pair(PAIR_WARNING, COLOR_YELLOW, -1);
	init_pair(PAIR_BAD, COLOR_RED, -1);
	terminal.attributes[SCREEN_WARNING] = 0;
	terminal.pairs[SCREEN_WARNING] = PAIR_WARNING;
	terminal.pairs[SCREEN_BAD] = PAIR_BAD;
}

int terminal_open(struct err *err)
{
	const char *type = getenv("TERM");

	setlocale(LC_CTYPE, "");
	terminal.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	if (tcgetattr(STDIN_FILENO, &terminal.before))
		return err_set(err, errno, "reading keys: %s", strerror(errno));
	terminal.screen = newterm(NULL, stdout, stdin);
	if (!terminal.screen)
		return err_set(err, ENOTTY,
		               "this kind of terminal (TERM=%s) is not known here: --once prints "
		               "one page without it",
		               type ? type : "");
	prepare_restoring();
	choose_styles();
	set_escdelay(ESCAPE_MS);
	cbreak();
	noecho();
	nonl();
	curs_set(0);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	return 0;
}

/* ---- using it ------------------------------------------------------------------------------ */

void terminal_size(size_t *rows, size_t *columns)
{
	*rows = (size_t)LINES;
	*columns = (size_t)COLS;
}

/* Where the terminal does not take UTF-8, what is not ASCII becomes a question mark. */
static void add_text(const char *text, size_t len)
{
	for (size_t i = 0; i < len && !terminal.utf8; i++) {
		if ((text[i] & 0xc0) != 0x80)
			addch((chtype)(text[i] & 0x80 ? '?' : text[i]));
	}
	if (terminal.utf8)
		addnstr(text, (int)len);
}

static void show_line(const struct screen_line *line)
{
	size_t at = 0;

	attr_set(A_NORMAL, 0, NULL);
	for (size_t i = 0; i <= line->n_runs && at < line->text.len; i++) {
		size_t to = i < line->n_runs ? line->runs[i].from : line->text.len;

		if (to > line->text.len) /* the line was cut after its runs were made */
			to = line->text.len;
		add_text(line->text.data + at, to - at);
		at = to;
		if (i < line->n_runs)
			attr_set(terminal.attributes[line->runs[i].style],
			         terminal.pairs[line->runs[i].style], NULL);
	}
	attr_set(A_NORMAL, 0, NULL);
}

void terminal_show(const struct screen *screen)
{
	erase();
	for (size_t i = 0; i < screen->n_lines && i < (size_t)LINES; i++) {
		move((int)i, 0);
		show_line(&screen->lines[i]);
	}
	refresh();
}

int terminal_key(void)
{
	static const struct {
		int curses, key;
	} keys[] = {
		{ KEY_UP, TOP_KEY_UP },
		{ KEY_DOWN, TOP_KEY_DOWN },
		{ KEY_LEFT, TOP_KEY_LEFT },
		{ KEY_RIGHT, TOP_KEY_RIGHT },
		{ KEY_PPAGE, TOP_KEY_PAGE_UP },
		{ KEY_NPAGE, TOP_KEY_PAGE_DOWN },
		{ KEY_HOME, TOP_KEY_HOME },
		{ KEY_END, TOP_KEY_END },
		{ KEY_ENTER, '\n' },
		{ KEY_BTAB, TOP_KEY_BACKWARD_TAB },
		{ ERR, TERMINAL_NO_KEY },
		{ KEY_RESIZE, TERMINAL_RESIZED },
	};
	int got = getch();

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (got == keys[i].curses)
			return keys[i].key;
	}
	return got;
}
