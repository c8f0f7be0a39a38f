// SPDX-License-Identifier: MIT
/* What the keys of `cuscope top` do. */
#include <stdlib.h>

#include "top/top_tables.h"

#define ESCAPE 27

/* ---- sorting ------------------------------------------------------------------------------- */

static void sort_by(struct top_view *view, size_t column)
{
	view->order[view->table] = (struct top_order){ .column = column };
	view->first = 0;
}

/* To the next column in that direction that is on the screen. */
static void sort_beside(struct top_view *view, int step)
{
	const struct top_table_description *table = &top_tables[view->table];
	size_t at = view->order[view->table].column;

	do
		at = (at + table->n_columns + (size_t)step) % table->n_columns;
	while (!top_column_shown(&table->columns[at], view->columns, view->gpu_times));
	sort_by(view, at);
}

static enum top_action sort_by_key(struct top_view *view, int key)
{
	const struct top_table_description *table = &top_tables[view->table];

	for (size_t i = 0; i < table->n_columns; i++) {
		if (table->columns[i].key == key && key &&
		    top_column_shown(&table->columns[i], 0, view->gpu_times)) {
			sort_by(view, i);
			return TOP_REDRAW;
		}
	}
	return TOP_NOTHING;
}

/* ---- moving -------------------------------------------------------------------------------- */

static size_t moved(size_t at, size_t n, long by)
{
	if (by < 0 && at < (size_t)-by)
		return 0;
	at += (size_t)by;
	return at < n ? at : n - 1;
}

static void select_beside(struct top_view *view, const struct top_page *page, long by)
{
	size_t n, at = 0;
	AT_END(at_end_free) struct top_row *rows = top_rows(page, view, &n);

	for (size_t i = 0; i < n; i++) {
		if (view->any_selected && rows[i].process->process->id == view->selected)
			at = i;
	}
	if (n) {
		view->selected = rows[moved(at, n, by)].process->process->id;
		view->any_selected = true;
	}
}

static enum top_action move(struct top_view *view, const struct top_page *page, long by)
{
	if (view->table == TOP_PROCESSES)
		select_beside(view, page, by);
	else if (by < 0 && view->first < (size_t)-by)
		view->first = 0;
	else
		view->first += (size_t)by; /* the next page knows how many rows there are */
	return TOP_REDRAW;
}

static enum top_action move_by_key(struct top_view *view, const struct top_page *page, int key)
{
	long far = 1 << 20, screen = view->body_rows > 1 ? (long)view->body_rows - 1 : 1;

	switch (key) {
	case TOP_KEY_UP:
	case 'k':
		return move(view, page, -1);
	case TOP_KEY_DOWN:
	case 'j':
		return move(view, page, 1);
	case TOP_KEY_PAGE_UP:
		return move(view, page, -screen);
	case TOP_KEY_PAGE_DOWN:
		return move(view, page, screen);
	case TOP_KEY_HOME:
		return move(view, page, -far);
	case TOP_KEY_END:
		return move(view, page, far);
	}
	return TOP_NOTHING;
}

/* ---- tables -------------------------------------------------------------------------------- */

static enum top_action open_table(struct top_view *view, enum top_table table)
{
	if (top_is_detail(table) && !top_is_detail(view->table)) {
		if (!view->any_selected)
			return TOP_NOTHING;
		view->process = view->selected;
	}
	view->table = table;
	view->first = 0;
	return TOP_REDRAW;
}

static enum top_action open_beside(struct top_view *view, int step)
{
	int details = (view->hooks ? TOP_ALL_HOOKS : TOP_HOOKS) - TOP_KERNELS;
	int at = (int)view->table - TOP_KERNELS;

	if (!top_is_detail(view->table))
		return open_table(view, TOP_KERNELS);
	return open_table(view, TOP_KERNELS + (at + details + step) % details);
}

/* Out of what is open: help, then the process, then everything. */
static enum top_action go_back(struct top_view *view, bool quit)
{
	if (view->help)
		view->help = false;
	else if (view->table != TOP_PROCESSES)
		view->table = TOP_PROCESSES;
	else
		return quit ? TOP_QUIT : TOP_NOTHING;
	view->first = 0;
	return TOP_REDRAW;
}

static enum top_action toggle(bool *what)
{
	*what = !*what;
	return TOP_REDRAW;
}

static enum top_action table_by_key(struct top_view *view, int key)
{
	switch (key) {
	case '\t':
		return open_beside(view, 1);
	case TOP_KEY_BACKWARD_TAB:
		return open_beside(view, -1);
	case '\n':
	case '\r':
		return view->table == TOP_PROCESSES ? open_table(view, TOP_KERNELS) : TOP_NOTHING;
	case '<':
	case TOP_KEY_LEFT:
		sort_beside(view, -1);
		return TOP_REDRAW;
	case '>':
	case TOP_KEY_RIGHT:
		sort_beside(view, 1);
		return TOP_REDRAW;
	case 'R':
		return toggle(&view->order[view->table].backwards);
	case 'H':
		return view->hooks ? open_table(view, TOP_ALL_HOOKS) : TOP_NOTHING;
	}
	if (key > '0' && key < '0' + (view->hooks ? TOP_ALL_HOOKS : TOP_HOOKS))
		return open_table(view, (enum top_table)(key - '0'));
	return TOP_NOTHING;
}

enum top_action top_key(struct top_view *view, const struct top_page *page, int key)
{
	enum top_action action;

	switch (key) {
	case 'q':
		return go_back(view, true);
	case ESCAPE:
		return go_back(view, false);
	case 'h':
	case '?':
		return toggle(&view->help);
	case 'p':
	case ' ':
		return toggle(&view->paused);
	case 'r':
		return TOP_RESET;
	}
	if (view->help)
		return TOP_NOTHING;
	action = table_by_key(view, key);
	if (action == TOP_NOTHING)
		action = move_by_key(view, page, key);
	return action == TOP_NOTHING ? sort_by_key(view, key) : action;
}
