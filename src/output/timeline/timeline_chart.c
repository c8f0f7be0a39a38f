// SPDX-License-Identifier: MIT
/* Axis, lanes and legend. */
#include "base/order.h"
#include "output/timeline/timeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "base/xalloc.h"

#define LABEL_LEAST   18
#define LABEL_MOST    28
#define SHARE_COLUMNS 9   /* " 1234.5 %" */
#define COLUMNS_MOST  400 /* beyond, an eye sees no more and memory does */
#define LANES_SHOWN   24  /* the busiest: what fits on a screen, about */
#define TICK_LEAST    12  /* columns between two marks on the axis */

static size_t label_columns(size_t width)
{
	size_t columns = width / 5;

	return columns < LABEL_LEAST ? LABEL_LEAST : columns > LABEL_MOST ? LABEL_MOST : columns;
}

size_t timeline_text_columns(size_t width)
{
	size_t columns = width - label_columns(width) - 1 - SHARE_COLUMNS;

	return columns > COLUMNS_MOST ? COLUMNS_MOST : columns;
}

/* ---- the axis ------------------------------------------------------------------------------ */

struct axis {
	double step_ns; /* from mark to mark */
	double unit_ns;
	const char *unit;
	int decimals;
};

/* Marks at 1, 2 or 5 times a power of ten, no nearer to each other than TICK_LEAST columns. */
static struct axis axis_of(const struct timeline_printer *p)
{
	static const struct {
		double ns;
		const char *name;
	} units[] = { { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "us" }, { 1, "ns" } };
	double span = (double)(p->view->to_ns - p->view->from_ns);
	double least = span * TICK_LEAST / (double)p->view->columns, power;
	double end = fabs((double)timeline_since(p, p->view->to_ns));
	struct axis axis;
	size_t unit = 0;

	power = pow(10, floor(log10(least)));
	axis.step_ns = least <= power       ? power
	               : least <= 2 * power ? 2 * power
	               : least <= 5 * power ? 5 * power
	                                    : 10 * power;
	if (axis.step_ns < 1)
		axis.step_ns = 1;
	while (unit < 3 && end < units[unit].ns)
		unit++;
	axis.unit_ns = units[unit].ns;
	axis.unit = units[unit].name;
	axis.decimals = (int)ceil(-log10(axis.step_ns / axis.unit_ns) - 1e-9);
	if (axis.decimals < 0)
		axis.decimals = 0;
	return axis;
}

/* Both lines of the axis: times, and the marks below them. */
static void add_axis(const struct timeline_printer *p, size_t label)
{
	struct axis axis = axis_of(p);
	double from = (double)timeline_since(p, p->view->from_ns);
	double column_ns = (double)(p->view->to_ns - p->view->from_ns) / (double)p->view->columns;
	AT_END(buf_free) struct buf marks = { 0 }, text = { 0 };
	size_t begin = p->out->len;

	buf_fill(p->out, ' ', label);
	buf_fill(&marks, ' ', label);
	for (size_t i = 0; i <= p->view->columns; i++) {
		double at = (ceil(from / axis.step_ns) + (double)i) * axis.step_ns;
		double place = floor((at - from) / column_ns + 1e-6);
		size_t column = label + (size_t)number_u64(place);

		if (!(place < (double)p->view->columns))
			break;
		if (column < marks.len) /* so late that a real number cannot tell them apart */
			continue;
		buf_reset(&text);
		buf_printf(&text, "%.*f %s", axis.decimals, at / axis.unit_ns, axis.unit);
		buf_fill(&marks, ' ', column - marks.len);
		buf_puts(&marks, "|");
		if (column < p->out->len - begin || column + text.len > p->options->width)
			continue; /* no room: the mark stands alone */
		buf_fill(p->out, ' ', column - (p->out->len - begin));
		buf_puts(p->out, text.data);
		buf_putc(p->out, ' ');
	}
	while (p->out->len > begin && p->out->data[p->out->len - 1] == ' ')
		p->out->len--;
	buf_putc(p->out, '\n');
	timeline_style(p, "\033[2m");
	buf_add(p->out, marks.data, marks.len);
	timeline_style_off(p);
	buf_putc(p->out, '\n');
}

/* ---- lanes --------------------------------------------------------------------------------- */

/* What a column mostly has, and how much of it is in use. */
struct cell {
	enum category category;
	double share; /* 0 to 1 */
};

static struct cell cell_of(const struct timeline_printer *p, const struct timeline_lane *lane,
                           size_t column)
{
	const double *ns = &lane->columns[column * CATEGORY_COUNT];
	double column_ns = (double)(p->view->to_ns - p->view->from_ns) / (double)p->view->columns;
	struct cell cell = { CATEGORY_INIT, 0 };

	for (int c = 0; c < CATEGORY_COUNT; c++) {
		cell.share += ns[c] / column_ns;
		if (ns[c] > ns[cell.category])
			cell.category = c;
	}
	return cell;
}

static void add_label(const struct timeline_printer *p, const struct timeline_lane *lane,
                      size_t columns)
{
	AT_END(buf_free) struct buf label = { 0 };
	size_t from = p->out->len;

	if (lane->kind == LANE_OTHERS)
		buf_puts(&label, "all others");
	else if (lane->kind == LANE_GPU)
		buf_printf(&label, "GPU%u stream %u", lane->device, lane->stream);
	else
		buf_u64(&label, lane->tid);
	if (lane->kind == LANE_THREAD && lane->comm[0]) {
		buf_putc(&label, ' ');
		text_add_safe(&label, lane->comm);
	}
	buf_puts(p->out, "  ");
	text_add_cut(p->out, label.data, columns - 3);
	text_pad(p->out, from, columns);
}

/* Heights of an eighth each. */
static const char *const heights[] = { "\u2581", "\u2582", "\u2583", "\u2584",
	                               "\u2585", "\u2586", "\u2587", "\u2588" };

static void add_height(const struct timeline_printer *p, const struct cell *cell)
{
	int eighths = (int)((cell->share < 1 ? cell->share : 1) * 8 + 0.5);

	if (cell->share <= 0) {
		buf_putc(p->out, ' ');
		return;
	}
	timeline_category_style(p, cell->category);
	buf_puts(p->out, heights[eighths < 1 ? 0 : eighths > 8 ? 7 : eighths - 1]);
	timeline_style_off(p);
}

static void add_letter(const struct timeline_printer *p, const struct cell *cell, bool by_case)
{
	char letter = category_letter(cell->category);

	if (cell->share <= 0) {
		buf_putc(p->out, '.');
		return;
	}
	timeline_category_style(p, cell->category);
	buf_putc(p->out, by_case && cell->share < 0.5 ? (char)(letter | 0x20) : letter);
	timeline_style_off(p);
}

/* With blocks, a line that shows how much above one that says of what. */
static void add_lane(const struct timeline_printer *p, const struct timeline_lane *lane,
                     size_t label)
{
	double span = (double)(p->view->to_ns - p->view->from_ns);

	if (p->options->utf8) {
		buf_fill(p->out, ' ', label);
		for (size_t i = 0; i < p->view->columns; i++) {
			struct cell cell = cell_of(p, lane, i);

			add_height(p, &cell);
		}
		while (p->out->data[p->out->len - 1] == ' ')
			p->out->len--;
		buf_putc(p->out, '\n');
	}
	add_label(p, lane, label);
	for (size_t i = 0; i < p->view->columns; i++) {
		struct cell cell = cell_of(p, lane, i);

		add_letter(p, &cell, !p->options->utf8);
	}
	buf_printf(p->out, "%*.1f %%\n", SHARE_COLUMNS - 2, 100 * (double)lane->busy_ns / span);
}

ORDER_BY(descending, uint64_t, ORDER_OF(*b, *a));

/* The time in CUDA that a lane needs to be among the LANES_SHOWN busiest. */
static uint64_t least_to_show(const struct timeline_view *view)
{
	uint64_t *busy, least;

	if (view->n_lanes <= LANES_SHOWN)
		return 0;
	busy = xcalloc(view->n_lanes, sizeof(*busy));
	for (size_t i = 0; i < view->n_lanes; i++)
		busy[i] = view->lanes[i].busy_ns;
	SORT(busy, view->n_lanes, descending);
	least = busy[LANES_SHOWN - 1];
	free(busy);
	return least;
}

static void add_process(const struct timeline_printer *p, const struct process *process)
{
	timeline_style(p, "\033[1m");
	if (process) {
		text_add_safe(p->out, process->comm);
		buf_printf(p->out, " (pid %u)", process->pid);
	} else {
		buf_puts(p->out, "more threads and streams");
	}
	timeline_style_off(p);
	buf_putc(p->out, '\n');
}

static void add_lanes(const struct timeline_printer *p, size_t label)
{
	uint64_t least = least_to_show(p->view);
	const struct process *last = NULL;
	size_t shown = 0;

	for (size_t i = 0; i < p->view->n_lanes; i++) {
		const struct timeline_lane *lane = &p->view->lanes[i];

		if (lane->busy_ns < least || shown == LANES_SHOWN)
			continue;
		if (!shown || lane->process != last)
			add_process(p, lane->process);
		last = lane->process;
		add_lane(p, lane, label);
		shown++;
	}
	if (shown < p->view->n_lanes)
		buf_printf(p->out,
		           "%zu lanes that were less busy are left out: --pid and --tid show "
		           "them\n",
		           p->view->n_lanes - shown);
}

/* ---- the legend ---------------------------------------------------------------------------- */

static bool occurs(const struct timeline_view *view, enum category category)
{
	return view->calls[category].calls || view->gpu[category].calls;
}

static void add_legend(const struct timeline_printer *p)
{
	size_t used = 0;

	for (int c = 0; c < CATEGORY_COUNT; c++) {
		size_t columns = strlen(category_name(c)) + 4;

		if (!occurs(p->view, c))
			continue;
		if (used && used + columns > p->options->width) {
			buf_putc(p->out, '\n');
			used = 0;
		}
		buf_puts(p->out, used ? "  " : "");
		timeline_category_style(p, c);
		buf_putc(p->out, category_letter(c));
		timeline_style_off(p);
		buf_printf(p->out, " %s", category_name(c));
		used += columns;
	}
	buf_puts(p->out, p->options->utf8
	                         ? "\nheight: share of the column's time; letter: most of it"
	                         : "\ncapital: half of the column's time or more; '.': none");
	buf_puts(p->out, "; %: share of the window\n");
}

void timeline_chart(const struct timeline_printer *p)
{
	size_t label = label_columns(p->options->width);

	add_axis(p, label);
	add_lanes(p, label);
	add_legend(p);
}
