// SPDX-License-Identifier: MIT
/*
 * speedscope's own format: frames, each once, and for each kind of time a profile of stacks with
 * their ns, the outermost frame first. Where there is more than one kind, all of them together are
 * the first profile.
 */
#include <stdlib.h>

#include "base/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "profile/words.h"
#include "profile/writers.h"

#define EXPORTER "cuscope@" CUSCOPE_VERSION

struct scope {
	const struct tree *tree;
	const struct profile_info *info;
	struct lines *lines;
	struct json json;
	uint32_t *frames; /* of the file, by node; the same for nodes that are the same frame */
	uint32_t *path;
};

static uint64_t self_of(const struct tree *tree, uint32_t node, unsigned kinds)
{
	uint64_t sum = 0;

	for (int kind = 0; kind < WEIGHT_KINDS; kind++) {
		if (kinds & 1u << kind)
			sum = words_sum(sum, tree->sums[0][node].self[kind]);
	}
	return sum;
}

/* ---- frames ---------------------------------------------------------------------------------- */

static void add_text(struct json *json, const char *key, const char *text)
{
	AT_END(buf_free) struct buf safe = { 0 };

	text_add_safe(&safe, text);
	json_string(json, key, safe.data ? safe.data : "");
}

static void add_frame(struct scope *scope, uint32_t node)
{
	const struct tree *tree = scope->tree;
	const struct profile *profile = tree->profiles[0];
	const struct profile_frame *frame = NULL;
	struct json *json = &scope->json;

	if (tree->nodes[node].frame != KEEP_NONE)
		frame = &profile->frames[tree->nodes[node].frame];
	json_open(json, NULL, '{');
	add_text(json, "name", tree_label(tree, node));
	if (frame && (frame->file || frame->module))
		add_text(json, "file",
		         profile_text(profile, frame->file ? frame->file : frame->module));
	if (frame && frame->file && profile_line_of(profile, frame))
		json_u64(json, "line", profile_line_of(profile, frame));
	json_close(json, '}');
	lines_added(scope->lines, NULL);
}

static int by_frame(const void *left, const void *right, void *data)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	const struct tree_node *x = &((const struct tree *)data)->nodes[a];
	const struct tree_node *y = &((const struct tree *)data)->nodes[b];

	if (x->label != y->label)
		return x->label < y->label ? -1 : 1;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return a < b ? -1 : a > b;
}

/* A frame is its name and line: of its nodes, the first one. By node. */
static uint32_t *first_nodes(const struct tree *tree)
{
	uint32_t *order = xcalloc(tree->n, sizeof(*order)), *first;

	for (uint32_t node = 0; node < tree->n; node++)
		order[node] = node;
	qsort_r(order, tree->n, sizeof(*order), by_frame, (void *)tree);
	first = xcalloc(tree->n, sizeof(*first));
	for (uint32_t i = 0; i < tree->n; i++) {
		const struct tree_node *at = &tree->nodes[order[i]];
		const struct tree_node *before = &tree->nodes[order[i ? i - 1 : 0]];
		bool same = i && at->label == before->label && at->line == before->line;

		first[order[i]] = same ? first[order[i - 1]] : order[i];
	}
	free(order);
	return first;
}

static void add_frames(struct scope *scope)
{
	const struct tree *tree = scope->tree;
	uint32_t *first = first_nodes(tree), n = 0;

	json_open(&scope->json, "shared", '{');
	json_open(&scope->json, "frames", '[');
	for (uint32_t node = 1; node < tree->n; node++) {
		if (first[node] == node) {
			add_frame(scope, node);
			scope->frames[node] = n++;
		} else {
			scope->frames[node] = scope->frames[first[node]];
		}
	}
	json_close(&scope->json, ']');
	json_close(&scope->json, '}');
	free(first);
}

/* ---- profiles -------------------------------------------------------------------------------- */

static void add_stack(struct scope *scope, uint32_t node)
{
	struct buf *out = scope->json.out;
	size_t n = 0;

	for (; node; node = scope->tree->nodes[node].parent)
		scope->path[n++] = scope->frames[node];
	json_open(&scope->json, NULL, '[');
	while (n--) {
		buf_u64(out, scope->path[n]);
		if (n)
			buf_putc(out, ',');
	}
	json_close(&scope->json, ']');
	lines_added(scope->lines, NULL);
}

static void add_profile(struct scope *scope, const char *name, unsigned kinds)
{
	const struct tree *tree = scope->tree;
	struct json *json = &scope->json;
	uint64_t all = 0;

	for (uint32_t node = 1; node < tree->n; node++)
		all = words_sum(all, self_of(tree, node, kinds));
	json_open(json, NULL, '{');
	json_string(json, "type", "sampled");
	json_string(json, "name", name);
	json_string(json, "unit", "nanoseconds");
	json_u64(json, "startValue", 0);
	json_u64(json, "endValue", all);
	json_open(json, "samples", '[');
	for (uint32_t node = tree_next(tree, 0); node != KEEP_NONE; node = tree_next(tree, node)) {
		if (self_of(tree, node, kinds))
			add_stack(scope, node);
	}
	json_close(json, ']');
	json_open(json, "weights", '[');
	for (uint32_t node = tree_next(tree, 0); node != KEEP_NONE; node = tree_next(tree, node)) {
		uint64_t self = self_of(tree, node, kinds);

		json_u64_if(json, NULL, self);
		lines_added(scope->lines, NULL);
	}
	json_close(json, ']');
	json_close(json, '}');
}

static void add_profiles(struct scope *scope)
{
	static const char *const names[WEIGHT_KINDS] = {
		[WEIGHT_CPU] = "CPU time",
		[WEIGHT_OFF_CPU] = "blocked",
		[WEIGHT_GPU] = "GPU time",
		[WEIGHT_HOOK] = "hooked calls",
	};
	const uint64_t *total = scope->tree->sums[0][0].total;
	unsigned n = 0;

	for (int kind = 0; kind < WEIGHT_KINDS; kind++)
		n += total[kind] > 0;
	json_open(&scope->json, "profiles", '[');
	if (n != 1)
		add_profile(scope, "all time", WEIGHTS_ALL);
	for (int kind = 0; kind < WEIGHT_KINDS; kind++) {
		if (total[kind])
			add_profile(scope, names[kind], 1u << kind);
	}
	json_close(&scope->json, ']');
}

static void add_name(struct scope *scope)
{
	const struct profile *profile = scope->tree->profiles[0];
	AT_END(buf_free) struct buf text = { 0 };

	words_add_title(profile, scope->info, &text);
	buf_puts(&text, "; ");
	profile_completeness(profile, &text);
	for (size_t i = 0; i < scope->info->n_notes; i++)
		buf_printf(&text, "; %s", scope->info->notes[i]);
	add_text(&scope->json, "name", text.data);
}

void speedscope_write(const struct profile *profile, const struct profile_info *info,
                      struct lines *lines)
{
	AT_END(tree_free) struct tree tree = { .by_line = true };
	struct scope scope = { .tree = &tree,
		               .info = info,
		               .lines = lines,
		               .json = { .out = &lines->pending, .lines = 4 } };

	tree_add(&tree, profile, 0, info_kinds(info));
	tree_finish(&tree);
	lines->binary = true; /* a piece need not end with a line */
	scope.frames = xcalloc(tree.n, sizeof(*scope.frames));
	scope.path = xcalloc(tree.deepest + 1, sizeof(*scope.path));
	json_open(&scope.json, NULL, '{');
	json_string(&scope.json, "$schema", "https://www.speedscope.app/file-format-schema.json");
	json_string(&scope.json, "exporter", EXPORTER);
	add_name(&scope);
	add_frames(&scope);
	add_profiles(&scope);
	json_close(&scope.json, '}');
	buf_putc(&lines->pending, '\n');
	free(scope.frames);
	free(scope.path);
}
