// SPDX-License-Identifier: MIT
#include "profile/flame_words.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/xml.h"

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
	struct buf text = { 0 };

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
	buf_free(&text);
}

static void add_widths(const struct flame *flame, const struct flame_layout *layout,
                       struct buf *out)
{
	const uint64_t *total = flame->tree->sums[0][0].total;
	struct buf text = { 0 };

	buf_puts(&text, flame->before ? "Width: the mean of a frame's two shares of all time"
	                : total[WEIGHT_GPU] && total[WEIGHT_CPU]
	                        ? "Width: time, of CPUs and GPUs alike"
	                        : "Width: time");
	if (layout->left_out) {
		buf_printf(&text, "; %llu frames narrower than ",
		           (unsigned long long)layout->left_out);
		buf_fixed(&text, (uint64_t)(layout->least * 1000 + 0.5), 1);
		buf_puts(&text, " % are left out");
	}
	buf_putc(&text, '.');
	if (!flame->before)
		buf_puts(&text, " Colour: the kind of code, with the time that ends in it.");
	add_line(out, &text);
	buf_free(&text);
}

void flame_add_notes(const struct flame *flame, const struct flame_layout *layout, struct buf *out)
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
	struct buf text = { 0 };

	words_add_share(&text, part, all);
	xml_add_text(out, text.data);
	buf_free(&text);
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

void flame_add_about(const struct flame *flame, uint32_t node, struct buf *out)
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

void flame_add_short(const char *label, double pixels, struct buf *out)
{
	size_t columns = pixels > COLUMN_PIXELS ? (size_t)(pixels / COLUMN_PIXELS) : 0;
	const char *end = *label == '[' ? strchr(label, ']') : NULL;
	char start[SHORT_FROM];
	struct buf safe = { 0 };

	if (end && end[1]) /* "[GPU_Kernel]": the colour says it */
		label = end + 1;
	snprintf(start, sizeof(start), "%s", *label ? label : "all");
	text_add_safe(&safe, start);
	if (columns >= 3)
		words_add_frame(out, safe.data, columns);
	buf_free(&safe);
}
