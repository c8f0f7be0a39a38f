// SPDX-License-Identifier: MIT
/*
 * A page, here of 80 columns:
 *
 *   cuscope top: all processes                          by CALLS/s, over 1.0 s, for 12m33s
 *   GPU0  NVIDIA H200                  busy  87%  mem 12.3G/141G   412W/700W   61C
 *   nothing lost; tracing costs 1.2% of a thread's time, cuscope 0.4% of a CPU
 *
 *       PID NAME               CALLS/s LAUNCH/s MEMORY  PEAK H2D/s D2H/s ERRORS SYNC
 *      4242 python3              12345     8012  12.3G 13.0G  1.2G  3.4M      0  12%
 *           1 process            12345     8012  12.3G 13.0G  1.2G  3.4M      0  12%
 *   Enter open  < > sort  p pause  r reset  h help  q quit
 */
#include <stdlib.h>
#include <string.h>

#include "account/account.h"
#include "analysis/missed.h"
#include "base/array.h"
#include "base/text.h"
#include "top/top_tables.h"

#define NAME_LEAST 15 /* "12345 processes" */

struct painter {
	const struct top_page *page;
	struct top_view *view;
	struct screen *screen;
	const struct top_table_description *table;
	size_t name_columns; /* what is left for the column without a width */
};

static size_t columns_of(const struct painter *p)
{
	return p->screen->columns;
}

/* ---- above the table ----------------------------------------------------------------------- */

static void add_period(struct buf *out, uint64_t ns)
{
	uint64_t s = ns / 1000000000;

	if (s < 60)
		buf_printf(out, "%lus", s);
	else if (s < 3600)
		buf_printf(out, "%lum%02lus", s / 60, s % 60);
	else
		buf_printf(out, "%luh%02lum", s / 3600, s / 60 % 60);
}

/* "PAUSED, by CALLS/s, over 1.0 s, for 12m33s" */
static void add_state(const struct painter *p, struct buf *out)
{
	const struct top_snapshot *snapshot = p->page->snapshot;
	const struct top_order *order = &p->view->order[p->view->table];

	if (p->view->paused)
		buf_puts(out, "PAUSED, ");
	buf_printf(out, "by %s%s, ", p->table->columns[order->column].title,
	           order->backwards ? " backwards" : "");
	buf_printf(out, "over %.1f s, for ", (double)snapshot->interval_ns / 1e9);
	add_period(out, snapshot->time_ns - snapshot->begin_ns);
}

static void paint_title(struct painter *p)
{
	AT_END(buf_free) struct buf state = { 0 }, left = { 0 };
	struct buf *out = screen_line(p->screen);
	size_t room;

	add_state(p, &state);
	room = columns_of(p) > state.len + 2 ? columns_of(p) - state.len - 2 : 0;
	buf_puts(&left, "cuscope top: ");
	text_add_safe(&left, p->page->target);
	screen_style(p->screen, SCREEN_BOLD);
	text_add_cut(out, left.data, room ? room : left.len);
	screen_style(p->screen, p->view->paused ? SCREEN_WARNING : SCREEN_DIM);
	if (room)
		screen_pad(p->screen, room + 2);
	else
		buf_puts(out, "  ");
	buf_puts(out, state.data);
}

static void add_bytes_or_dash(struct buf *out, int64_t bytes)
{
	if (bytes < 0)
		buf_putc(out, '-');
	else
		top_add_bytes(out, (double)bytes);
}

static void add_watts(struct buf *out, int64_t mw)
{
	if (mw < 0)
		buf_putc(out, '-');
	else
		buf_printf(out, "%.0fW", (double)mw / 1e3);
}

/* Behind the rest: what a GPU without GPM does not tell, and a narrow terminal cuts off. */
static void add_metrics(struct buf *out, const struct gpu *gpu)
{
	if (gpu->sm_percent >= 0)
		buf_printf(out, "  SM %3d%%", gpu->sm_percent);
	if (gpu->tensor_percent >= 0)
		buf_printf(out, "  tensor %3d%%", gpu->tensor_percent);
	if (gpu->dram_percent >= 0)
		buf_printf(out, "  DRAM %3d%%", gpu->dram_percent);
}

static void paint_gpu(struct painter *p, size_t index, const struct gpu *gpu)
{
	struct buf *out = screen_line(p->screen);
	struct buf name = { 0 };

	text_add_safe(&name, gpu->name);
	buf_printf(out, "GPU%zu  ", index);
	text_add_cut(out, name.data, 27);
	text_pad(out, 0, 34);
	buf_free(&name);
	if (gpu->busy_percent == GPU_UNKNOWN && gpu->memory_total_bytes == GPU_UNKNOWN)
		return;
	if (gpu->busy_percent < 0)
		buf_puts(out, "busy    -");
	else
		buf_printf(out, "busy %3d%%", gpu->busy_percent);
	buf_puts(out, "  mem ");
	add_bytes_or_dash(out, gpu->memory_used_bytes);
	buf_putc(out, '/');
	add_bytes_or_dash(out, gpu->memory_total_bytes);
	text_pad(out, 0, 62);
	add_watts(out, gpu->power_mw);
	if (gpu->power_limit_mw >= 0) {
		buf_putc(out, '/');
		add_watts(out, gpu->power_limit_mw);
	}
	text_pad(out, 0, 74);
	if (gpu->temperature_c >= 0)
		buf_printf(out, "%3dC", gpu->temperature_c);
	add_metrics(out, gpu);
}

/* A third of the screen at most: processes matter more. */
static void paint_gpus(struct painter *p)
{
	const struct gpus_sample *gpus = p->page->gpus;
	size_t most = p->screen->rows ? p->screen->rows / 3 : GPUS_MAX;

	for (size_t i = 0; gpus && i < gpus->n && i < most; i++)
		paint_gpu(p, i, &gpus->gpus[i]);
	if (gpus && gpus->n > most) {
		buf_printf(screen_line(p->screen), "%zu more GPUs", gpus->n - most);
	} else if (!gpus || gpus->why[0]) {
		struct buf *out = screen_line(p->screen);

		screen_style(p->screen, SCREEN_DIM);
		text_add_safe(out, gpus ? gpus->why : "GPU figures are being asked for");
	}
}

static void paint_costs(struct painter *p)
{
	bool any = p->page->missed;

	for (int i = 0; i < LOST_COUNT && !p->page->missed; i++) {
		struct buf *out;

		any |= p->page->lost[i] > 0;
		if (!p->page->lost[i])
			continue;
		out = screen_line(p->screen);
		screen_style(p->screen, SCREEN_WARNING);
		buf_printf(out, "%s %lu: %s", missed_lost_word((enum lost_reason)i),
		           p->page->lost[i], lost_reason_text(i));
	}
	if (p->page->estimate_scale > 1) {
		screen_line(p->screen);
		screen_style(p->screen, SCREEN_WARNING);
		buf_printf(screen_last(p->screen),
		           "measured in windows: counts and rates are 1/%.1f of the estimates",
		           p->page->estimate_scale);
	}
	screen_line(p->screen);
	screen_style(p->screen, SCREEN_DIM);
	buf_printf(screen_last(p->screen),
	           "%stracing costs %.1f%% of a thread's time, cuscope %.1f%% of a CPU",
	           any ? "" : "nothing lost; ", p->page->overhead_percent, p->page->own_percent);
}

static void paint_notice(struct painter *p)
{
	if (!p->page->notice)
		return;
	screen_line(p->screen);
	screen_style(p->screen, SCREEN_WARNING);
	text_add_safe(screen_last(p->screen), p->page->notice);
}

static void paint_account(struct painter *p)
{
	if (!p->page->account)
		return;
	buf_puts(screen_line(p->screen), "last 10 s: ");
	text_add_safe(screen_last(p->screen), p->page->account);
}

/* ---- the process that is opened ------------------------------------------------------------ */

static void paint_process(struct painter *p, const struct top_process *process)
{
	const struct top_count *numbers = process->numbers;
	struct buf *out = screen_line(p->screen);

	screen_style(p->screen, SCREEN_BOLD);
	buf_printf(out, "%u ", process->process->pid);
	text_add_safe(out, process->process->comm);
	screen_style(p->screen, process->ended ? SCREEN_WARNING : SCREEN_PLAIN);
	if (process->ended)
		buf_puts(out, " (ended)");
	buf_puts(out, "  ");
	top_add_count(out, numbers[TOP_COUNT_CALLS].rate);
	buf_puts(out, " calls/s  ");
	top_add_count(out, numbers[TOP_COUNT_LAUNCHES].rate);
	buf_puts(out, " launches/s  ");
	top_add_bytes(out, (double)process->memory[MEMORY_NONE].bytes);
	buf_printf(out, " in use  %lu errors", numbers[TOP_COUNT_ERRORS].total);
}

/* What its sums prove of where its time goes, in why's words, and who tells the rest. */
static void paint_why(struct painter *p, const struct top_process *process)
{
	struct buf *out;

	if (process->ended || (p->page->account && p->page->account_pid == process->process->pid))
		return; /* there is nothing to watch; the account says it above */
	out = screen_line(p->screen);
	if (process->threads && !process->entries_only)
		buf_printf(out, "%s %.0f%%, ", account_cause_text(ACCOUNT_GPU_WAIT),
		           100 * process->sync_share);
	if (p->page->snapshot->gpu_times && process->gpu_share >= 0)
		buf_printf(out, "GPU busy with it %.0f%%, ", 100 * process->gpu_share);
	buf_printf(out, "why: cuscope why -p %u", process->process->pid);
}

static void paint_tabs(struct painter *p)
{
	struct buf *out = screen_line(p->screen);

	for (int i = TOP_KERNELS; i < (p->page->hooks ? TOP_ALL_HOOKS : TOP_HOOKS); i++) {
		screen_style(p->screen, i == (int)p->view->table ? SCREEN_CHOSEN : SCREEN_PLAIN);
		buf_printf(out, " %d %s ", i, top_tables[i].title);
		screen_style(p->screen, SCREEN_PLAIN);
		buf_putc(out, ' ');
	}
}

/* ---- the table ----------------------------------------------------------------------------- */

static bool is_shown(const struct painter *p, const struct top_column *column)
{
	return top_column_shown(column, columns_of(p), p->page->snapshot->gpu_times);
}

/* Without a limit the names take what they need. */
static size_t widest_name(const struct painter *p, const struct top_column *column,
                          const struct top_row *rows, size_t n)
{
	size_t most = NAME_LEAST;

	for (size_t i = 0; i < n; i++) {
		AT_END(buf_free) struct buf cell = { 0 };

		top_cell(column, p->page, &rows[i], 0, &cell);
		if (text_columns(cell.data) > most)
			most = text_columns(cell.data);
	}
	return most;
}

static void choose_widths(struct painter *p, const struct top_row *rows, size_t n)
{
	size_t taken = 0;

	for (size_t i = 0; i < p->table->n_columns; i++) {
		const struct top_column *column = &p->table->columns[i];

		if (!is_shown(p, column))
			continue;
		taken += (size_t)(column->width + (i > 0));
		if (!column->width && !columns_of(p))
			p->name_columns = widest_name(p, column, rows, n);
	}
	if (columns_of(p))
		p->name_columns = columns_of(p) - taken;
}

static void add_cell(struct buf *out, const char *text, size_t width, bool left)
{
	size_t used = text_columns(text), from = out->len;

	if (!left && used < width)
		text_pad(out, from, width - used);
	buf_puts(out, text);
	if (left)
		text_pad(out, from, width);
}

static void paint_headings(struct painter *p)
{
	const struct top_order *order = &p->view->order[p->view->table];
	struct buf *out = screen_line(p->screen);

	screen_style(p->screen, SCREEN_HEADING);
	for (size_t i = 0; i < p->table->n_columns; i++) {
		const struct top_column *column = &p->table->columns[i];

		if (!is_shown(p, column))
			continue;
		if (i > 0)
			buf_putc(out, ' ');
		if (i == order->column)
			screen_style(p->screen, SCREEN_CHOSEN);
		add_cell(out, column->title, column->width ? column->width : p->name_columns,
		         !column->width);
		if (i == order->column)
			screen_style(p->screen, SCREEN_HEADING);
	}
	screen_pad(p->screen, columns_of(p));
}

/* `label` stands where a name would, and there is no pid then. */
static void paint_row(struct painter *p, const struct top_row *row, enum screen_style style,
                      const char *label)
{
	struct buf *out = screen_line(p->screen), cell = { 0 };

	screen_style(p->screen, style);
	for (size_t i = 0; i < p->table->n_columns; i++) {
		const struct top_column *column = &p->table->columns[i];
		size_t width = column->width ? column->width : p->name_columns;

		if (!is_shown(p, column))
			continue;
		buf_reset(&cell);
		buf_puts(&cell, "");
		if (!label || (column->width && column->format != TOP_NUMBER))
			top_cell(column, p->page, row, width, &cell);
		else if (!column->width)
			text_add_cut(&cell, label, width);
		if (i > 0)
			buf_putc(out, ' ');
		add_cell(out, cell.data, width, !column->width);
	}
	screen_pad(p->screen, columns_of(p));
	buf_free(&cell);
}

static enum screen_style row_style(const struct painter *p, const struct top_row *row)
{
	const struct top_process *process = row->process;

	if (p->view->table != TOP_PROCESSES)
		return SCREEN_PLAIN;
	if (p->view->keys && p->view->any_selected && p->view->selected == process->process->id)
		return SCREEN_SELECTED;
	if (process->numbers[TOP_COUNT_ERRORS].rate > 0)
		return SCREEN_BAD;
	return process->ended ? SCREEN_DIM : SCREEN_PLAIN;
}

static void paint_sums(struct painter *p)
{
	const struct top_snapshot *snapshot = p->page->snapshot;
	const struct top_row gone = { .process = &snapshot->gone, .item = &snapshot->gone };
	const struct top_row total = { .process = &snapshot->total, .item = &snapshot->total };
	size_t all = snapshot->n_processes + snapshot->n_gone;
	char label[64];

	if (snapshot->n_gone) {
		snprintf(label, sizeof(label), "%zu gone", snapshot->n_gone);
		paint_row(p, &gone, SCREEN_DIM, label);
	}
	snprintf(label, sizeof(label), "%zu process%s", all, all == 1 ? "" : "es");
	paint_row(p, &total, SCREEN_BOLD, label);
}

static size_t index_of_selected(const struct painter *p, const struct top_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (rows[i].process->process->id == p->view->selected)
			return i;
	}
	return 0;
}

/* What does not fit is scrolled to: the selected process stays in sight. */
static size_t first_row(struct painter *p, const struct top_row *rows, size_t n)
{
	struct top_view *view = p->view;
	size_t fit = view->body_rows, at;

	if (n <= fit)
		return view->first = 0;
	if (view->first > n - fit)
		view->first = n - fit;
	if (view->table != TOP_PROCESSES || !view->any_selected)
		return view->first;
	at = index_of_selected(p, rows, n);
	if (at < view->first)
		view->first = at;
	if (at >= view->first + fit)
		view->first = at - fit + 1;
	return view->first;
}

static void select_one(struct top_view *view, const struct top_row *rows, size_t n)
{
	bool there = false;

	for (size_t i = 0; i < n; i++)
		there |= rows[i].process->process->id == view->selected;
	if (n && !(view->any_selected && there))
		view->selected = rows[0].process->process->id;
	view->any_selected = n > 0;
}

static void paint_table(struct painter *p)
{
	bool processes = p->view->table == TOP_PROCESSES;
	size_t n, below = p->view->keys, from;
	AT_END(at_end_free) struct top_row *rows = top_rows(p->page, p->view, &n);

	if (processes) {
		below += 1 + (p->page->snapshot->n_gone > 0);
		select_one(p->view, rows, n);
	}
	choose_widths(p, rows, n);
	paint_headings(p);
	p->view->body_rows = n;
	if (p->screen->rows)
		p->view->body_rows = p->screen->rows > p->screen->n_lines + below
		                             ? p->screen->rows - p->screen->n_lines - below
		                             : 1;
	from = first_row(p, rows, n);
	for (size_t i = from; i < n && i < from + p->view->body_rows; i++)
		paint_row(p, &rows[i], row_style(p, &rows[i]), NULL);
	if (!n) {
		screen_line(p->screen);
		screen_style(p->screen, SCREEN_DIM);
		buf_puts(screen_last(p->screen), p->table->empty);
	}
	if (processes)
		paint_sums(p);
}

/* ---- pages --------------------------------------------------------------------------------- */

static void paint_keys(struct painter *p)
{
	struct buf *out;

	while (p->screen->rows && p->screen->n_lines + 1 < p->screen->rows)
		screen_line(p->screen);
	out = screen_line(p->screen);
	screen_style(p->screen, SCREEN_DIM);
	if (p->view->table == TOP_PROCESSES)
		buf_printf(out,
		           "Enter open%s  < > sort  R reverse  p pause  r reset  h help  q quit",
		           p->page->hooks ? "  H hooks" : "");
	else if (p->view->table == TOP_ALL_HOOKS)
		buf_puts(out, "Esc back  < > sort  R reverse  p pause  r reset  h help");
	else
		buf_printf(out,
		           "Esc back  Tab 1-%d tables  < > sort  R reverse  p pause  r reset  h "
		           "help",
		           p->page->hooks ? TOP_HOOKS : TOP_TRANSFERS);
}

static void paint_help(struct screen *screen)
{
	static const char *const lines[] = {
		"cuscope top: what processes do with CUDA",
		"",
		"  Up Down PgUp PgDn Home End   choose a process, scroll",
		"  Enter                        open it; Esc, q: back",
		"  Tab, 1 to 5                  kernels, functions, streams, memory, transfers",
		"  H, 6 with --hook             hooks of one's own: of all processes, of this one",
		"  < >                          sort by the column to the left, to the right",
		"  d n c l m x i o e s b        sort by PID, NAME, CALLS/s, LAUNCH/s, MEMORY,",
		"                               PEAK, H2D/s, D2H/s, ERRORS, SYNC, GPU",
		"  R                            the other way round",
		"  p, blank                     pause the screen; counting goes on",
		"  r                            all counts begin anew",
		"  h, ?                         this page, and back",
		"  q                            quit; what is traced runs on",
		"",
		"Rates are those of the last interval. MEMORY is what the process allocated",
		"since it is traced and has not freed; GPUMEM is what the driver says it uses.",
		"SYNC: the share of time that threads spent in calls that wait for the GPU, of",
		"those threads that made calls. Calls made inside others (cuda* calling cu*)",
		"are not counted. A red line: errors in the last interval.",
		"With --gpu, GPU: the share of the time in which something of it ran on a GPU.",
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		screen_line(screen);
		screen_style(screen, i ? SCREEN_PLAIN : SCREEN_BOLD);
		buf_puts(screen_last(screen), lines[i]);
	}
}

/* On a page without a screen, where no key opens them: below the processes. */
static void paint_hooks_below(struct painter *p)
{
	if (p->view->table != TOP_PROCESSES || p->view->keys || !p->page->hooks)
		return;
	screen_line(p->screen);
	p->view->table = TOP_ALL_HOOKS;
	p->table = &top_tables[TOP_ALL_HOOKS];
	paint_table(p);
	p->view->table = TOP_PROCESSES;
}

static void paint(struct painter *p)
{
	const struct top_process *opened = NULL;

	if (top_is_detail(p->view->table)) {
		opened = top_opened(p->page, p->view);
		if (!opened)
			p->view->table = TOP_PROCESSES;
	}
	p->table = &top_tables[p->view->table];
	paint_title(p);
	paint_gpus(p);
	paint_costs(p);
	paint_account(p);
	paint_notice(p);
	screen_line(p->screen);
	if (opened) {
		paint_process(p, opened);
		paint_why(p, opened);
		paint_tabs(p);
	}
	paint_table(p);
	paint_hooks_below(p);
	if (p->view->keys)
		paint_keys(p);
}

void top_view_init(struct top_view *view)
{
	memset(view, 0, sizeof(*view));
	for (int i = 0; i < TOP_TABLES; i++)
		view->order[i].column = top_tables[i].sorted;
}

void top_render(const struct top_page *page, struct top_view *view, size_t rows, size_t columns,
                struct screen *screen)
{
	struct painter painter = { .page = page, .view = view, .screen = screen };

	view->columns = columns;
	view->gpu_times = page->snapshot->gpu_times;
	view->hooks = page->hooks;
	screen_begin(screen, rows, columns);
	if ((columns && columns < TOP_COLUMNS) || (rows && rows < TOP_ROWS))
		buf_printf(screen_line(screen), "needs %d x %d; this is %zu x %zu (q quits)",
		           TOP_COLUMNS, TOP_ROWS, columns, rows);
	else if (view->help)
		paint_help(screen);
	else
		paint(&painter);
	screen_end(screen);
}
