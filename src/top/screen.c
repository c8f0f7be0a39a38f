// SPDX-License-Identifier: MIT
#include "top/screen.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/xalloc.h"

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

static void cut(struct screen_line *line, size_t columns)
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
		cut(&screen->lines[i], screen->columns);
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
