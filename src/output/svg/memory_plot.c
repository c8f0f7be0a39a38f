// SPDX-License-Identifier: MIT
/*
 * Drawing. One panel for the kinds of memory and, where there is more than one process, one for
 * those. Nobody could read both in one picture.
 *
 * The areas are painted from the top of the stack down, each to the base line, so that every one
 * needs only its upper edge.
 */
#include "output/svg/memory_plot.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "output/svg/svg.h"
#include "output/svg/memory_history.h"

/* Pixels of the picture; coordinates are ints of a tenth of one. */
#define WIDTH       960
#define LEFT        84
#define PLOT_WIDTH  852
#define PLOT_HEIGHT 230
#define HEADER      64
#define LEGEND_ROW  18
#define LEGEND_GAP  34 /* room for the marks of failures and for the name of a high peak */
#define PER_ROW     3  /* entries of a legend */
#define AXIS_BELOW  30
#define PANEL_GAP   22
#define FOOTER      26
#define MOST_BYTES  (1ull << 60) /* of the axes: more is nonsense, and would overflow them */
#define MOST_NS     (1ull << 60)
#define STRIPS      120 /* places that tell their numbers when pointed at */

#define LAYERS   10
#define NO_LAYER 255
#define MOMENTS  (3 * HISTORY_BUCKETS)

struct layer {
	const char *name;
	uint64_t peak;
};

struct panel {
	const char *heading;
	char palette; /* first letter of the colours' classes */
	struct layer layers[LAYERS];
	size_t n;
	uint8_t layer_of[ROW_COUNT];
	int top; /* pixels: of the heading */
};

struct picture {
	struct memory_plot *plot;
	const struct memory_plot_frame *frame;
	struct buf *svg;
	const struct moment *moments[MOMENTS];
	size_t n;
	uint64_t left_ns, end_ns;
	uint64_t step_bytes, most_bytes;
	struct buf others; /* "12 other processes" */
};

static const char style[] =
	"<style>\n"
	"text{font:12px system-ui,-apple-system,'Segoe UI',sans-serif;fill:#444}\n"
	".title{font-size:16px;font-weight:600;fill:#111}.heading{font-weight:600;fill:#111}\n"
	".bg{fill:#fff}.grid{stroke:#8886;stroke-width:.5}.axis{stroke:#888}\n"
	".peak{stroke:#111;stroke-dasharray:3 3}.dot{fill:#111}.mark{fill:#111;font-weight:600}\n"
	".failed{fill:#d01f2e}.at{fill:#000;fill-opacity:0}.at:hover{fill-opacity:.12}\n"
	".k0{fill:#4269d0}.k1{fill:#6cb8f5}.k2{fill:#a463f2}.k3{fill:#efb118}.k4{fill:#ff8ab7}\n"
	".k5{fill:#3ca951}.k6{fill:#9c6b4e}.p0{fill:#2a8f9c}.p1{fill:#e0823d}.p2{fill:#7d6bd0}\n"
	".p3{fill:#8aa62e}.p4{fill:#c65b8f}.p5{fill:#5a9bd8}.p6{fill:#c9a227}.p7{fill:#4f8a5b}\n"
	".p8{fill:#a8715a}.p9{fill:#9498a0}\n"
	"@media(prefers-color-scheme:dark){text{fill:#bbb}.bg{fill:#16181d}\n"
	".title,.heading,.mark,.dot{fill:#eee}.peak{stroke:#eee}.failed{fill:#ff6b6b}\n"
	".at{fill:#fff;fill-opacity:0}}\n"
	"</style>\n";

/* ---- what is drawn --------------------------------------------------------------------------- */

static const char *kind_title(enum api_memory kind)
{
	static const char *const titles[MEMORY_COUNT] = {
		[MEMORY_DEVICE] = "device",         [MEMORY_ASYNC] = "stream-ordered",
		[MEMORY_MANAGED] = "managed",       [MEMORY_HOST] = "pinned host",
		[MEMORY_ARRAY] = "array",           [MEMORY_VMM] = "physical (VMM)",
		[MEMORY_VMM_VA] = "reserved (VMM)",
	};

	return titles[kind] ? titles[kind] : "other";
}

/* A kind has the same colour in every picture, so its place in the stack is its own as well. */
static void choose_kinds(const struct memory_plot *plot, struct panel *panel)
{
	*panel = (struct panel){ .heading = "By kind of memory", .palette = 'k' };
	memset(panel->layer_of, NO_LAYER, sizeof(panel->layer_of));
	for (unsigned kind = MEMORY_NONE + 1; kind < MEMORY_COUNT; kind++) {
		panel->layers[panel->n].name = kind_title(kind);
		panel->layers[panel->n].peak = plot->kind_peak[kind];
		panel->layer_of[ROW_KINDS + kind] = (uint8_t)panel->n++;
	}
}

ORDER_POINTERS_BY(by_peak, struct row_owner, DOWN(peak), UP(id));

static size_t sort_owners(const struct memory_plot *plot, const struct row_owner **owners)
{
	size_t n = 0;

	for (size_t i = 0; i < HISTORY_PROCESSES; i++) {
		if (plot->owners[i].used)
			owners[n++] = &plot->owners[i];
	}
	SORT(owners, n, by_peak);
	return n;
}

/* The largest at the bottom; what does not fit into the legend is one layer on top. */
static void choose_processes(struct picture *picture, struct panel *panel)
{
	const struct memory_plot *plot = picture->plot;
	const struct row_owner *owners[HISTORY_PROCESSES];
	size_t n = sort_owners(plot, owners), shown = n;
	uint64_t others;

	if (n > LAYERS || plot->merged)
		shown = n < LAYERS ? n : LAYERS - 1;
	others = n - shown + plot->merged;
	*panel = (struct panel){ .heading = "By process", .palette = 'p', .n = shown };
	memset(panel->layer_of, NO_LAYER, sizeof(panel->layer_of));
	for (size_t i = 0; i < n; i++) {
		bool own = i < shown;

		panel->layer_of[owners[i] - plot->owners] = own ? (uint8_t)i : LAYERS - 1;
		if (own)
			panel->layers[i] = (struct layer){ owners[i]->name, owners[i]->peak };
	}
	panel->layer_of[ROW_OTHERS] = LAYERS - 1;
	if (!others)
		return;
	buf_u64(&picture->others, others);
	buf_puts(&picture->others, others == 1 ? " other process" : " other processes");
	panel->n = LAYERS;
	panel->layers[LAYERS - 1].name = picture->others.data;
}

static void live_of_layers(const struct panel *panel, const struct moment *moment,
                           uint64_t live[LAYERS])
{
	memset(live, 0, LAYERS * sizeof(*live));
	for (size_t i = 0; i < ROW_COUNT; i++) {
		if (panel->layer_of[i] != NO_LAYER)
			live[panel->layer_of[i]] += moment->live[i];
	}
}

/* ---- places ---------------------------------------------------------------------------------- */

static int x_of(const struct picture *picture, uint64_t time_ns)
{
	double span = (double)(picture->end_ns - picture->left_ns);
	double share = (double)(time_ns - picture->left_ns) / span;

	return LEFT * 10 + (int)((share < 1 ? share : 1) * PLOT_WIDTH * 10 + 0.5);
}

static int legend_rows(const struct panel *panel)
{
	size_t n = 0;

	for (size_t i = 0; i < panel->n; i++)
		n += panel->layers[i].name && (panel->layers[i].peak || i == LAYERS - 1);
	return (int)(n + PER_ROW - 1) / PER_ROW;
}

static int base_of(const struct panel *panel)
{
	return panel->top + legend_rows(panel) * LEGEND_ROW + LEGEND_GAP + PLOT_HEIGHT;
}

static int y_of(const struct picture *picture, const struct panel *panel, uint64_t bytes)
{
	double share = (double)bytes / (double)picture->most_bytes;

	return base_of(panel) * 10 - (int)((share < 1 ? share : 1) * PLOT_HEIGHT * 10 + 0.5);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static void add_tenths(struct buf *out, int tenths)
{
	buf_s64(out, tenths / 10);
	if (tenths % 10) {
		buf_putc(out, '.');
		buf_putc(out, (char)('0' + tenths % 10));
	}
}

static void add_attribute(struct buf *out, const char *name, int tenths)
{
	buf_printf(out, " %s=\"", name);
	add_tenths(out, tenths);
	buf_putc(out, '"');
}

static void begin_text(struct buf *out, const char *class, int x, int y, const char *anchor)
{
	buf_printf(out, "<text class=\"%s\" text-anchor=\"%s\"", class, anchor);
	add_attribute(out, "x", x);
	add_attribute(out, "y", y);
	buf_putc(out, '>');
}

static void end_text(struct buf *out)
{
	buf_puts(out, "</text>\n");
}

static void add_line(struct buf *out, const char *class, int x1, int y1, int x2, int y2)
{
	buf_printf(out, "<line class=\"%s\"", class);
	add_attribute(out, "x1", x1);
	add_attribute(out, "y1", y1);
	add_attribute(out, "x2", x2);
	add_attribute(out, "y2", y2);
	buf_puts(out, "/>\n");
}

/* "3.2 s", since the beginning. */
static void add_time(const struct picture *picture, uint64_t time_ns)
{
	axis_add_ns(picture->svg, time_ns - picture->plot->zero_ns, 0);
}

/* ---- a panel --------------------------------------------------------------------------------- */

static void draw_axes(const struct picture *picture, const struct panel *panel)
{
	uint64_t from = picture->left_ns - picture->plot->zero_ns;
	uint64_t to = picture->end_ns - picture->plot->zero_ns, step = axis_step_ns(to - from, 10);
	int left = LEFT * 10, right = (LEFT + PLOT_WIDTH) * 10, base = base_of(panel) * 10;

	for (uint64_t bytes = 0; bytes <= picture->most_bytes; bytes += picture->step_bytes) {
		int y = y_of(picture, panel, bytes);

		add_line(picture->svg, bytes ? "grid" : "axis", left, y, right, y);
		begin_text(picture->svg, "tick", left - 60, y + 40, "end");
		axis_add_bytes(picture->svg, bytes);
		end_text(picture->svg);
	}
	for (uint64_t ns = (from + step - 1) / step * step; ns <= to; ns += step) {
		int x = x_of(picture, picture->plot->zero_ns + ns);

		add_line(picture->svg, "axis", x, base, x, base + 50);
		begin_text(picture->svg, "tick", x, base + 190, "middle");
		axis_add_ns(picture->svg, ns, step);
		end_text(picture->svg);
	}
}

static void draw_legend(const struct picture *picture, const struct panel *panel)
{
	struct buf *out = picture->svg;
	int entry = 0;

	begin_text(out, "heading", LEFT * 10, panel->top * 10, "start");
	buf_puts(out, panel->heading);
	end_text(out);
	for (size_t i = 0; i < panel->n; i++) {
		const struct layer *layer = &panel->layers[i];
		int x = (LEFT + entry % PER_ROW * (PLOT_WIDTH / PER_ROW)) * 10;
		int y = (panel->top + (entry / PER_ROW + 1) * LEGEND_ROW) * 10;

		if (!layer->name || (!layer->peak && i != LAYERS - 1))
			continue;
		buf_printf(out, "<rect class=\"area %c%zu\" width=\"11\" height=\"11\"",
		           panel->palette, i);
		add_attribute(out, "x", x);
		add_attribute(out, "y", y - 100);
		buf_puts(out, "/>\n");
		begin_text(out, "legend", x + 170, y, "start");
		xml_add_text(out, layer->name);
		if (layer->peak) {
			buf_puts(out, ", peak ");
			axis_add_bytes(out, layer->peak);
		}
		end_text(out);
		entry++;
	}
}

/* The upper edge of a layer: memory stays what it is until the next moment. */
static void draw_area(const struct picture *picture, const struct panel *panel, size_t layer)
{
	struct buf *out = picture->svg;
	int base = base_of(panel) * 10, at = base;

	buf_printf(out, "<path class=\"area %c%zu\" d=\"M", panel->palette, layer);
	add_tenths(out, LEFT * 10);
	buf_putc(out, ' ');
	add_tenths(out, base);
	for (size_t i = 0; i < picture->n; i++) {
		uint64_t live[LAYERS], sum = 0;
		int y;

		live_of_layers(panel, picture->moments[i], live);
		for (size_t k = 0; k <= layer; k++)
			sum += live[k];
		y = y_of(picture, panel, sum);
		if (y == at)
			continue;
		buf_putc(out, 'H');
		add_tenths(out, x_of(picture, picture->moments[i]->time_ns));
		buf_putc(out, 'V');
		add_tenths(out, y);
		at = y;
	}
	buf_putc(out, 'H');
	add_tenths(out, (LEFT + PLOT_WIDTH) * 10);
	buf_putc(out, 'V');
	add_tenths(out, base);
	buf_puts(out, "Z\"/>\n");
}

static void draw_areas(const struct picture *picture, const struct panel *panel)
{
	for (size_t layer = panel->n; layer--;) {
		if (panel->layers[layer].name && (panel->layers[layer].peak || layer == LAYERS - 1))
			draw_area(picture, panel, layer);
	}
}

static void draw_peak(const struct picture *picture, const struct panel *panel)
{
	const struct moment *peak = &picture->plot->peak;
	int x = x_of(picture, peak->time_ns), y = y_of(picture, panel, peak->total);
	bool right = x > (LEFT + PLOT_WIDTH / 2) * 10;

	if (!peak->total)
		return;
	add_line(picture->svg, "peak", x, y, x, base_of(panel) * 10);
	buf_puts(picture->svg, "<circle class=\"dot\" r=\"3\"");
	add_attribute(picture->svg, "cx", x);
	add_attribute(picture->svg, "cy", y);
	buf_puts(picture->svg, "/>\n");
	begin_text(picture->svg, "mark", right ? x - 60 : x + 60, y - 50, right ? "end" : "start");
	buf_puts(picture->svg, "peak ");
	axis_add_bytes(picture->svg, peak->total);
	end_text(picture->svg);
}

static void add_failure(const struct picture *picture, const struct failure *failure)
{
	struct buf *out = picture->svg;

	if (failure->count > 1) {
		buf_u64(out, failure->count);
		buf_puts(out, " allocations failed, the largest of ");
	} else {
		buf_puts(out, "An allocation failed: ");
	}
	axis_add_bytes(out, failure->bytes);
	buf_printf(out, " (%s) by ", kind_title(failure->kind));
	xml_add_text(out, failure->process);
	buf_puts(out, ", after ");
	add_time(picture, failure->time_ns);
}

static void draw_failures(const struct picture *picture, const struct panel *panel)
{
	int top = (base_of(panel) - PLOT_HEIGHT) * 10;

	for (size_t i = 0; i < HISTORY_BUCKETS; i++) {
		const struct failure *failure = &picture->plot->buckets[i].failure;
		int x = failure->count ? x_of(picture, failure->time_ns) : 0;

		if (!failure->count)
			continue;
		buf_puts(picture->svg, "<path class=\"failed\" d=\"M");
		add_tenths(picture->svg, x - 50);
		buf_putc(picture->svg, ' ');
		add_tenths(picture->svg, top - 250);
		buf_puts(picture->svg, "h10l-5 9z\"><title>");
		add_failure(picture, failure);
		buf_puts(picture->svg, "</title></path>\n");
	}
}

/* ---- numbers where one points ---------------------------------------------------------------- */

static void add_strip_text(const struct picture *picture, const struct panel *panel,
                           const struct moment *moment)
{
	uint64_t live[LAYERS];

	buf_puts(picture->svg, "after ");
	add_time(picture, moment->time_ns);
	buf_puts(picture->svg, ": ");
	axis_add_bytes(picture->svg, moment->total);
	live_of_layers(panel, moment, live);
	for (size_t i = panel->n; i--;) {
		if (!live[i])
			continue;
		buf_putc(picture->svg, '\n');
		xml_add_text(picture->svg, panel->layers[i].name);
		buf_puts(picture->svg, ": ");
		axis_add_bytes(picture->svg, live[i]);
	}
}

/* Each strip tells its highest moment, which can be the one that it began with. */
static void draw_strips(const struct picture *picture, const struct panel *panel)
{
	const struct moment *last = NULL;
	size_t at = 0;

	for (int strip = 0; strip < STRIPS; strip++) {
		int x = LEFT * 10 + strip * PLOT_WIDTH * 10 / STRIPS;
		int next = LEFT * 10 + (strip + 1) * PLOT_WIDTH * 10 / STRIPS;
		const struct moment *high = last;

		for (; at < picture->n &&
		       (x_of(picture, picture->moments[at]->time_ns) < next || strip == STRIPS - 1);
		     at++) {
			last = picture->moments[at];
			if (!high || last->total > high->total)
				high = last;
		}
		if (!high || !high->total)
			continue;
		buf_puts(picture->svg, "<rect class=\"at\"");
		add_attribute(picture->svg, "x", x);
		add_attribute(picture->svg, "y", (base_of(panel) - PLOT_HEIGHT) * 10);
		add_attribute(picture->svg, "width", next - x);
		add_attribute(picture->svg, "height", PLOT_HEIGHT * 10);
		buf_puts(picture->svg, "><title>");
		add_strip_text(picture, panel, high);
		buf_puts(picture->svg, "</title></rect>\n");
	}
}

static void draw_panel(const struct picture *picture, const struct panel *panel)
{
	draw_legend(picture, panel);
	draw_areas(picture, panel);
	draw_axes(picture, panel);
	draw_peak(picture, panel);
	draw_strips(picture, panel);
	draw_failures(picture, panel);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void add_cut(struct buf *out, const char *text)
{
	AT_END(buf_free) struct buf cut = { 0 };

	text_add_cut(&cut, text, 130);
	xml_add_text(out, cut.data ? cut.data : "");
}

static void add_title(const struct picture *picture)
{
	const struct memory_plot *plot = picture->plot;

	buf_puts(picture->svg, "CUDA memory over time: ");
	if (!plot->peak.total) {
		buf_puts(picture->svg, "no allocation was seen");
		return;
	}
	buf_puts(picture->svg, "peak ");
	axis_add_bytes(picture->svg, plot->peak.total);
	buf_puts(picture->svg, " after ");
	add_time(picture, plot->peak.time_ns);
	buf_puts(picture->svg, ", ");
	axis_add_bytes(picture->svg, plot->now.total);
	buf_puts(picture->svg, " live at the end");
}

static void draw_header(const struct picture *picture)
{
	uint64_t failures = picture->plot->failures;

	begin_text(picture->svg, "title", 160, 270, "start");
	add_title(picture);
	end_text(picture->svg);
	if (picture->frame->subject) {
		begin_text(picture->svg, "subject", 160, 460, "start");
		add_cut(picture->svg, picture->frame->subject);
		end_text(picture->svg);
	}
	if (!failures)
		return;
	begin_text(picture->svg, "failed", (LEFT + PLOT_WIDTH) * 10, HEADER * 10 + 60, "end");
	buf_puts(picture->svg, "&#9660; ");
	buf_u64(picture->svg, failures);
	buf_puts(picture->svg, failures == 1 ? " allocation failed" : " allocations failed");
	end_text(picture->svg);
}

/* Settles times and scales. */
static void measure(struct picture *picture)
{
	struct memory_plot *plot = picture->plot;
	uint64_t most;

	history_settle(plot);
	picture->n = history_moments(plot, picture->moments);
	picture->end_ns = picture->frame->end_ns;
	if (picture->end_ns < plot->now.time_ns)
		picture->end_ns = plot->now.time_ns;
	if (picture->end_ns - plot->zero_ns > MOST_NS)
		picture->end_ns = plot->zero_ns + MOST_NS;
	if (picture->end_ns == plot->zero_ns)
		picture->end_ns++;
	picture->left_ns = plot->zero_ns;
	if (plot->begin_ns - plot->zero_ns > (picture->end_ns - plot->zero_ns) / 2)
		picture->left_ns = plot->begin_ns - (picture->end_ns - plot->begin_ns) / 16;
	most = plot->peak.total < MOST_BYTES ? plot->peak.total : MOST_BYTES;
	picture->step_bytes = axis_step_bytes(most ? most : 1, 6);
	picture->most_bytes = (most / picture->step_bytes + 1) * picture->step_bytes;
}

static size_t count_processes(const struct memory_plot *plot)
{
	size_t n = plot->merged > 0;

	for (size_t i = 0; i < HISTORY_PROCESSES; i++)
		n += plot->owners[i].used;
	return n;
}

void memory_plot_draw(struct memory_plot *plot, const struct memory_plot_frame *frame,
                      struct buf *svg)
{
	AT_END(at_end_free) struct picture *picture = xcalloc(1, sizeof(*picture));
	struct panel panels[2];
	size_t n = 1;
	int height;

	*picture = (struct picture){ .plot = plot, .frame = frame, .svg = svg };
	measure(picture);
	choose_kinds(plot, &panels[0]);
	if (count_processes(plot) > 1)
		choose_processes(picture, &panels[n++]);
	panels[0].top = HEADER + 6;
	panels[1].top = base_of(&panels[0]) + AXIS_BELOW + PANEL_GAP;
	height = base_of(&panels[n - 1]) + AXIS_BELOW + FOOTER;
	buf_printf(svg,
	           "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
	           "viewBox=\"0 0 %d %d\" role=\"img\">\n<title>",
	           WIDTH, height, WIDTH, height);
	add_title(picture);
	buf_puts(svg, "</title>\n");
	buf_puts(svg, style);
	buf_printf(svg, "<rect class=\"bg\" width=\"%d\" height=\"%d\"/>\n", WIDTH, height);
	draw_header(picture);
	for (size_t i = 0; i < n; i++)
		draw_panel(picture, &panels[i]);
	if (frame->note) {
		begin_text(svg, "note", 160, (height - 12) * 10, "start");
		add_cut(svg, frame->note);
		end_text(svg);
	}
	buf_puts(svg, "</svg>\n");
	buf_free(&picture->others);
}
