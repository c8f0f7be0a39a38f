// SPDX-License-Identifier: MIT
/*
 * A flame graph: each frame a box, below the one that called it, as wide as its share of all time.
 * The picture is whole without its script; with it, it can be zoomed and searched. Private to
 * src/profile.
 */
#include "profile/writers.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "page/page.h"
#include "profile/tree.h"

/* ---- svg ----------------------------------------------------------------------------------- */

/* A profile as one picture that a browser lets one zoom and search: see writers.h. */

void svg_write(const struct profile *profile, const struct profile_info *info, struct lines *lines)
{
	AT_END(tree_free) struct tree tree = { 0 };
	struct flame flame = { .tree = &tree, .info = info };

	tree_add(&tree, profile, 0, info_kinds(info));
	tree_finish(&tree);
	flame_draw(&flame, &lines->pending);
	lines_added(lines, NULL);
}

/* ---- flame words --------------------------------------------------------------------------- */

/* What stands in a flame graph: its title, its notes, what a frame tells. Private to src/profile.
 */

#define COLUMN_PIXELS 6.9 /* of a letter, on average */
#define SHORT_FROM    600 /* bytes of a name that are looked at: it can be all brackets */

/* ---- the header ------------------------------------------------------------------------------ */

void flame_add_title(const struct flame *flame, struct buf *out)
{
	const struct tree *tree = flame->tree;

	if (!flame->before) {
		words_add_title(tree->profiles[0], flame->info, out);
		return;
	}
	buf_printf(out, "Difference of two profiles: %s, then %s",
	           flame->before->subject ? flame->before->subject : "before",
	           flame->info->subject ? flame->info->subject : "after");
}

/* A line, its names made safe. */
static void add_line(struct buf *out, struct buf *text)
{
	if (text->len) {
		text_add_safe(out, text->data);
		buf_putc(out, '\n');
	}
	buf_reset(text);
}

static void add_sentence_end(struct buf *text)
{
	if (text->len && text->data[text->len - 1] != '.')
		buf_putc(text, '.');
}

static void add_one(const struct profile *profile, const struct profile_info *info, struct buf *out)
{
	AT_END(buf_free) struct buf text = { 0 };

	words_add_subject(info, &text);
	add_line(out, &text);
	buf_puts(&text, "Completeness: ");
	profile_completeness(profile, &text);
	add_sentence_end(&text);
	add_line(out, &text);
	for (size_t i = 0; i < info->n_notes; i++) {
		buf_puts(&text, info->notes[i]);
		add_sentence_end(&text);
		add_line(out, &text);
	}
}

static void add_widths(const struct flame *flame, const struct flame_layout *layout,
                       struct buf *out)
{
	const uint64_t *total = flame->tree->sums[0][0].total;
	AT_END(buf_free) struct buf text = { 0 };

	buf_puts(&text, flame->before ? "Width: the mean of a frame's two shares of all time"
	                : total[WEIGHT_GPU] && total[WEIGHT_CPU]
	                        ? "Width: time, of CPUs and GPUs alike"
	                        : "Width: time");
	if (layout->left_out) {
		buf_printf(&text, "; %lu frames narrower than ", layout->left_out);
		buf_fixed(&text, (uint64_t)(layout->least * 1000 + 0.5), 1);
		buf_puts(&text, " % are left out");
	}
	buf_putc(&text, '.');
	if (!flame->before)
		buf_puts(&text, " Colour: the kind of code, with the time that ends in it.");
	add_line(out, &text);
}

/* Safe text, in lines: what the profile is of, how whole it is, what is left out. */
static void flame_add_notes(const struct flame *flame, const struct flame_layout *layout,
                            struct buf *out)
{
	if (flame->before) {
		buf_puts(out, "Before: ");
		add_one(flame->tree->profiles[0], flame->before, out);
		buf_puts(out, "After: ");
		add_one(flame->tree->profiles[1], flame->info, out);
	} else {
		add_one(flame->tree->profiles[0], flame->info, out);
	}
	add_widths(flame, layout, out);
}

/* ---- a frame --------------------------------------------------------------------------------- */

/* "libtorch_cpu.so, Addmm.cpp:290" */
static void add_source(const struct tree *tree, uint32_t at, struct buf *out)
{
	const struct tree_node *node = &tree->nodes[at];
	const struct profile *profile = tree->profiles[node->side];
	const struct profile_frame *frame;
	const char *comma = "";
	uint32_t line;

	if (node->frame == KEEP_NONE)
		return;
	frame = &profile->frames[node->frame];
	if (!frame->module && !frame->file)
		return;
	buf_putc(out, '\n');
	if (frame->module) {
		xml_add_text(out, profile_text(profile, frame->module));
		comma = ", ";
	}
	if (!frame->file)
		return;
	buf_puts(out, comma);
	xml_add_text(out, profile_text(profile, frame->file));
	line = profile_line_of(profile, frame);
	if (frame->kind != FRAME_PYTHON && frame->first_line) /* the node is of all its lines */
		line = frame->first_line;
	if (line)
		buf_printf(out, ":%u", line);
}

static void add_xml_share(struct buf *out, uint64_t part, uint64_t all)
{
	AT_END(buf_free) struct buf text = { 0 };

	words_add_share(&text, part, all);
	xml_add_text(out, text.data);
}

/* "45.120 ms, 12.3 % (CPU 40.000 ms, GPU 5.120 ms)" */
static void add_time(const struct tree *tree, unsigned side, uint32_t node, struct buf *out)
{
	const uint64_t *total = tree->sums[side][node].total;
	const char *comma = " (";
	unsigned kinds = 0;

	buf_duration(out, tree_total(tree, side, node));
	buf_puts(out, ", ");
	add_xml_share(out, tree_total(tree, side, node), tree_total(tree, side, 0));
	for (int kind = 0; kind < WEIGHT_KINDS; kind++)
		kinds += total[kind] > 0;
	for (int kind = 0; kind < WEIGHT_KINDS && kinds > 1; kind++) {
		if (!total[kind])
			continue;
		buf_printf(out, "%s%s ", comma, words_weight(kind));
		buf_duration(out, total[kind]);
		comma = ", ";
	}
	if (kinds > 1)
		buf_putc(out, ')');
}

static void add_self(const struct tree *tree, uint32_t node, struct buf *out)
{
	uint64_t self = tree_self(tree, 0, node);

	if (!self || self == tree_total(tree, 0, node))
		return;
	buf_puts(out, "\nitself ");
	buf_duration(out, self);
	buf_puts(out, ", ");
	add_xml_share(out, self, tree_total(tree, 0, 0));
}

static void add_change(const struct tree *tree, uint32_t node, struct buf *out)
{
	double share[TREE_SIDES] = { 0 }, points;

	for (unsigned side = 0; side < TREE_SIDES; side++) {
		uint64_t all = tree_total(tree, side, 0);

		buf_puts(out, side ? "\nafter: " : "\nbefore: ");
		add_time(tree, side, node, out);
		if (all)
			share[side] = (double)tree_total(tree, side, node) / (double)all;
	}
	points = (share[1] - share[0]) * 1000;
	buf_printf(out, "\n%c", points < 0 ? '-' : '+');
	buf_fixed(out, (uint64_t)((points < 0 ? -points : points) + 0.5), 1);
	buf_puts(out, " points");
}

/* In XML: the name, where it is from, its time and share, each in a line. */
static void flame_add_about(const struct flame *flame, uint32_t node, struct buf *out)
{
	const struct tree *tree = flame->tree;

	xml_add_text(out, node ? tree_label(tree, node) : "all");
	add_source(tree, node, out);
	if (flame->before) {
		add_change(tree, node, out);
		return;
	}
	buf_putc(out, '\n');
	add_time(tree, 0, node, out);
	add_self(tree, node, out);
}

/* As much of a name as so many pixels of a usual 12 pixel font hold: "gemm" of "void gemm<...>". */
static void flame_add_short(const char *label, double pixels, struct buf *out)
{
	size_t columns = pixels > COLUMN_PIXELS ? (size_t)(pixels / COLUMN_PIXELS) : 0;
	const char *end = *label == '[' ? strchr(label, ']') : NULL;
	char start[SHORT_FROM];
	AT_END(buf_free) struct buf safe = { 0 };

	if (end && end[1]) /* "[GPU_Kernel]": the colour says it */
		label = end + 1;
	snprintf(start, sizeof(start), "%s", *label ? label : "all");
	text_add_safe(&safe, start);
	if (columns >= 3)
		words_add_frame(out, safe.data, columns);
}

/* ---- flame --------------------------------------------------------------------------------- */

#define WIDTH      1200 /* pixels, where no script fits it to the window */
#define SIDE       10
#define LINE       17
#define LINE_TEXT  165 /* characters of 1200 pixels */
#define CONTROLS   36  /* the script's bar */
#define ROW        18
#define FOOTER     12
#define LEAST_TEXT 20    /* pixels of a box with text */
#define STEPS      5     /* shades of red, and of blue */
#define AS_BEFORE  0.001 /* a smaller change of share is none: few samples make one */

/* Three shades of each kind, so that neighbours can be told apart. */
static const char *const colours[PROFILE_KINDS][3] = {
	[FRAME_PYTHON] = { "#6ea8e8", "#7db3ee", "#5f9ce0" },
	[FRAME_NATIVE] = { "#f3b27a", "#f6be8e", "#efa669" },
	[FRAME_JIT] = { "#6fcbbf", "#82d3c8", "#5dc2b5" },
	[FRAME_CUDA] = { "#c5dd8b", "#cfe39d", "#bad67a" },
	[FRAME_GPU] = { "#86bf1a", "#93ca2e", "#7ab40d" },
	[FRAME_DRIVER] = { "#b9a3e3", "#c4b1e8", "#ae95dd" },
	[FRAME_KERNEL_MODE] = { "#ee9090", "#f19f9f", "#ea8080" },
	[PROFILE_OFF_CPU] = { "#a9b7c6", "#b4c1ce", "#9eadbe" },
	[PROFILE_TASK] = { "#d5d9df", "#dce0e5", "#cdd2d9" },
	[PROFILE_OTHER] = { "#d9d2c5", "#e0dacf", "#d2cabb" },
};

/* From what grew most to what shrank most. */
static const char *const changes[2 * STEPS + 1] = {
	"#e0403a", "#ea6a60", "#f19288", "#f7b7b0", "#fadbd7", "#e6e6e3",
	"#d5e3f7", "#b2cdf1", "#8bb4ea", "#6499e2", "#3d7dd8",
};

/* ---- style ----------------------------------------------------------------------------------- */

void flame_add_colours(const struct flame *flame, struct buf *out)
{
	for (int kind = 0; kind < PROFILE_KINDS && !flame->before; kind++) {
		for (int shade = 0; shade < 3; shade++)
			buf_printf(out, ".k%d%c{fill:%s}", kind, 'a' + shade, colours[kind][shade]);
		buf_putc(out, '\n');
	}
	for (int step = 0; step <= 2 * STEPS && flame->before; step++)
		buf_printf(out, ".d%d{fill:%s}", step, changes[step]);
	buf_putc(out, '\n');
}

/* The share of a side that a node is. */
static double share_of(const struct tree *tree, unsigned side, uint32_t node)
{
	uint64_t all = tree_total(tree, side, 0);

	return all ? (double)tree_total(tree, side, node) / (double)all : 0;
}

/* Three times the share, or a third of it, has the darkest colour. */
static int step_of(const struct tree *tree, uint32_t node)
{
	double before = share_of(tree, 0, node), after = share_of(tree, 1, node);
	double sum = before + after, change = sum > 0 ? (after - before) / sum : 0;
	double steps = change * 2 * STEPS;
	int step = (int)(steps < 0 ? steps - 0.5 : steps + 0.5);

	if (after - before < AS_BEFORE && before - after < AS_BEFORE)
		step = 0;
	step = step > STEPS ? STEPS : step < -STEPS ? -STEPS : step;
	return STEPS - step;
}

/* One of three shades, the same in each run: FNV-1a by words, with the end of murmur3. */
static char shade_of(const void *data, size_t bytes)
{
	const unsigned char *at = data;
	uint64_t hash = 0xcbf29ce484222325ull ^ bytes, word;

	for (; bytes >= sizeof(word); bytes -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
		hash ^= hash >> 29;
	}
	for (; bytes; bytes--)
		hash = (hash ^ *at++) * 0x100000001b3ull;
	hash ^= hash >> 33;
	hash *= 0xff51afd7ed558ccdull;
	return (char)('a' + (uint32_t)(hash ^ hash >> 33) % 3);
}

static void add_class(const struct flame *flame, uint32_t node, struct buf *out)
{
	const struct tree *tree = flame->tree;
	const char *label = tree_label(tree, node);

	if (flame->before)
		buf_printf(out, "d%d", step_of(tree, node));
	else
		buf_printf(out, "k%d%c", tree->nodes[node].kind, shade_of(label, strlen(label)));
}

/* ---- the header ------------------------------------------------------------------------------ */

static void add_text(struct buf *out, const char *class, int x, int y, const char *text)
{
	AT_END(buf_free) struct buf cut = { 0 };

	text_add_cut(&cut, text, LINE_TEXT);
	buf_printf(out, "<text class=\"%s\" x=\"%d\" y=\"%d\">", class, x, y);
	xml_add_text(out, cut.data ? cut.data : "");
	buf_puts(out, "</text>\n");
}

/* Lines of text below each other; returns where the next one stands. */
static int add_lines(struct buf *out, const char *class, int y, const char *text)
{
	AT_END(buf_free) struct buf lines = { 0 };
	char *at, *end;

	buf_puts(&lines, text);
	text_wrap_lines(&lines, 0, LINE_TEXT);
	for (at = lines.data; at && *at; at = end + 1) {
		end = at + strcspn(at, "\n");
		if (!*end) {
			add_text(out, class, SIDE, y, at);
			y += LINE;
			break;
		}
		*end = '\0';
		add_text(out, class, SIDE, y, at);
		y += LINE;
	}
	return y;
}

static int add_legend_entry(struct buf *out, int x, int y, const char *class, const char *text)
{
	buf_printf(out,
	           "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"11\" height=\"11\" rx=\"2\"/>"
	           "<text class=\"legend\" x=\"%d\" y=\"%d\">",
	           class, x, y - 10, x + 16, y);
	xml_add_text(out, text);
	buf_puts(out, "</text>\n");
	return x + 16 + 7 * (int)strlen(text) + 16;
}

/* The kinds that there are, with the share of the time that ends in them. */
static void add_kinds(const struct flame *flame, int y, struct buf *out)
{
	static const unsigned order[] = { FRAME_PYTHON, FRAME_NATIVE,    FRAME_JIT,
		                          FRAME_CUDA,   FRAME_DRIVER,    FRAME_KERNEL_MODE,
		                          FRAME_GPU,    PROFILE_OFF_CPU, PROFILE_TASK,
		                          PROFILE_OTHER };
	const struct tree *tree = flame->tree;
	uint64_t self[PROFILE_KINDS] = { 0 }, all = tree_total(tree, 0, 0);
	bool any[PROFILE_KINDS] = { false };
	AT_END(buf_free) struct buf text = { 0 };
	int x = SIDE;

	for (uint32_t node = 1; node < tree->n; node++) {
		unsigned kind = tree->nodes[node].kind;

		any[kind] = true;
		self[kind] = words_sum(self[kind], tree_self(tree, 0, node));
	}
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		char class[8];

		if (!any[order[i]])
			continue;
		buf_reset(&text);
		buf_puts(&text, words_kind(order[i]));
		if (order[i] != PROFILE_TASK) {
			buf_putc(&text, ' ');
			words_add_share(&text, self[order[i]], all);
		}
		snprintf(class, sizeof(class), "k%ua", order[i]);
		x = add_legend_entry(out, x, y, class, text.data);
	}
}

static void add_changes(int y, struct buf *out)
{
	int x = SIDE;

	x = add_legend_entry(out, x, y, "d0", "share three times or more, or new");
	x = add_legend_entry(out, x, y, "d3", "grew by half");
	x = add_legend_entry(out, x, y, "d5", "as before, within 0.1 %");
	x = add_legend_entry(out, x, y, "d7", "shrank by a third");
	add_legend_entry(out, x, y, "d10", "a third or less, or gone");
}

/* Returns how high it is. */
static int add_header(const struct flame *flame, const struct flame_layout *layout, struct buf *out)
{
	AT_END(buf_free) struct buf text = { 0 };
	int y = flame->in_page ? LINE : 28;

	if (!flame->in_page) {
		flame_add_title(flame, &text);
		add_text(out, "title", SIDE, y, text.data);
		y += LINE + 4;
	}
	buf_reset(&text);
	flame_add_notes(flame, layout, &text);
	y = add_lines(out, "note", y, text.data);
	y += 8;
	if (flame->before)
		add_changes(y, out);
	else
		add_kinds(flame, y, out);
	return y + CONTROLS;
}

/* ---- the boxes ------------------------------------------------------------------------------- */

static void add_percent(struct buf *out, const char *name, double share)
{
	uint64_t value = share > 0 ? (uint64_t)(share * 1e8 + 0.5) : 0;

	buf_printf(out, " %s=\"", name);
	buf_fixed(out, value, 6);
	buf_puts(out, "%\"");
}

static void add_box(const struct flame *flame, const struct flame_box *box, struct buf *out)
{
	const struct tree *tree = flame->tree;
	int depth = (int)tree->nodes[box->node].depth;
	double pixels = box->width * (WIDTH - 2 * SIDE);
	struct buf text = { 0 };

	buf_puts(out, "<g><title>");
	flame_add_about(flame, box->node, out);
	buf_puts(out, "</title><rect class=\"");
	add_class(flame, box->node, out);
	buf_putc(out, '"');
	add_percent(out, "x", box->x);
	buf_printf(out, " y=\"%d\"", depth * ROW);
	add_percent(out, "width", box->width);
	buf_printf(out, " height=\"%d\"/>", ROW);
	if (pixels >= LEAST_TEXT) {
		flame_add_short(tree_label(tree, box->node), pixels - 8, &text);
		buf_puts(out, "<text");
		add_percent(out, "x", box->x);
		buf_printf(out, " y=\"%d\" dx=\"4\">", depth * ROW + 13);
		xml_add_text(out, text.data ? text.data : "");
		buf_puts(out, "</text>");
		buf_free(&text);
	}
	buf_puts(out, "</g>\n");
}

/* ---- the whole ------------------------------------------------------------------------------- */

void flame_draw(const struct flame *flame, struct buf *out)
{
	struct flame_layout layout = { 0 };
	AT_END(buf_free) struct buf header = { 0 }, title = { 0 };
	int top, rows, height;

	flame_lay_out(flame->tree, flame->before != NULL, &layout);
	flame_add_title(flame, &title);
	top = add_header(flame, &layout, &header);
	rows = (int)layout.deepest + 1;
	height = top + rows * ROW + FOOTER;
	buf_printf(out,
	           "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"flame\" width=\"%d\" "
	           "height=\"%d\" viewBox=\"0 0 %d %d\">\n",
	           WIDTH, height, WIDTH, height);
	if (!flame->in_page) {
		buf_puts(out, "<title>");
		xml_add_text(out, title.data);
		buf_printf(out, "</title>\n<style>\n%s", report_flame_style);
		flame_add_colours(flame, out);
		buf_puts(out, "</style>\n");
	}
	buf_puts(out, "<rect class=\"bg\" width=\"100%\" height=\"100%\"/>\n");
	buf_add(out, header.data, header.len);
	buf_printf(out, "<svg class=\"graph\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\">\n",
	           SIDE, top, WIDTH - 2 * SIDE, rows * ROW);
	for (size_t i = 0; i < layout.n; i++)
		add_box(flame, &layout.boxes[i], out);
	buf_puts(out, "</svg>\n");
	if (!flame->in_page)
		buf_printf(out, "<script><![CDATA[\n%s]]></script>\n", report_flame_script);
	buf_puts(out, "</svg>\n");
	flame_layout_free(&layout);
}
