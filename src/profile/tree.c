// SPDX-License-Identifier: MIT
#include "profile/tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "profile/words.h"

struct node_key {
	uint32_t parent, label, line;
};

/* A profile that is being added. */
struct adding {
	struct tree *tree;
	const struct profile *profile;
	unsigned side, kinds;
	uint32_t *labels; /* of the tree, plus 1, by the profile's */
	uint32_t *lines;  /* the same of places in files, by frame */
	/* nodes of the tree, plus 1, by the profile's: of the task at hand; of the second, where
	 * the stack has a function of Python there or further in */
	uint32_t *nodes, *around_python;
	uint32_t *path; /* nodes of the profile on the way to one that is known */
	size_t cap_path;
	struct buf text;
};

/* ---- nodes ----------------------------------------------------------------------------------- */

static void add_sums(struct tree *tree, unsigned side)
{
	size_t cap = tree->cap_sums[side];

	if (cap == tree->by_key.fit)
		return;
	tree->sums[side] = xrealloc(tree->sums[side], tree->by_key.fit * sizeof(*tree->sums[side]));
	memset(tree->sums[side] + cap, 0, (tree->by_key.fit - cap) * sizeof(*tree->sums[side]));
	tree->cap_sums[side] = tree->by_key.fit;
}

static uint32_t find_node(struct tree *tree, unsigned side, const struct node_key *key,
                          unsigned kind, uint32_t frame)
{
	struct tree_node node = {
		.parent = key->parent,
		.label = key->label,
		.line = key->line,
		.frame = frame,
		.depth = key->parent == KEEP_NONE ? 0 : tree->nodes[key->parent].depth + 1,
		.kind = (uint8_t)kind,
		.side = (uint8_t)side,
	};

	if (node.depth > tree->deepest)
		tree->deepest = node.depth;
	return keep_element(&tree->room, &tree->by_key, &tree->nodes, &tree->n, &node, sizeof(node),
	                    offsetof(struct tree_node, frame));
}

static uint32_t label_of(struct adding *adding, uint32_t label)
{
	struct tree *tree = adding->tree;

	if (!adding->labels[label])
		adding->labels[label] = 1 + keep_text(&tree->room, &tree->labels,
		                                      profile_text(adding->profile, label));
	return adding->labels[label] - 1;
}

/* Of functions alone it is the function's own. */
static uint32_t line_of(struct adding *adding, const struct profile_frame *frame)
{
	struct tree *tree = adding->tree;
	uint32_t line = profile_line_of(adding->profile, frame);
	uint32_t *known = &adding->lines[frame - adding->profile->frames];

	if (!tree->by_line || !frame->file || !line)
		return 0;
	if (*known)
		return *known - 1;
	buf_reset(&adding->text);
	buf_printf(&adding->text, "%s:%u", profile_text(adding->profile, frame->file), line);
	*known = 1 + keep_text(&tree->room, &tree->labels, adding->text.data);
	return *known - 1;
}

static uint32_t add_child(struct adding *adding, uint32_t parent, const char *label, unsigned kind)
{
	struct tree *tree = adding->tree;
	struct node_key key = { parent, keep_text(&tree->room, &tree->labels, label), 0 };

	return find_node(tree, adding->side, &key, kind, KEEP_NONE);
}

/* "python3 (4242)", and below it "loader (4250)". */
static uint32_t add_task_part(struct adding *adding, uint32_t parent, uint32_t name,
                              uint32_t number)
{
	buf_reset(&adding->text);
	buf_puts(&adding->text, profile_text(adding->profile, name));
	if (number)
		buf_printf(&adding->text, "%s(%u)", adding->text.len ? " " : "", number);
	else if (!adding->text.len)
		buf_puts(&adding->text, "[process not known]");
	return add_child(adding, parent, adding->text.data, PROFILE_TASK);
}

static uint32_t add_task(struct adding *adding, uint32_t at)
{
	const struct profile_options *options = &adding->profile->options;
	const struct profile_task *task = &adding->profile->tasks[at];
	uint32_t node = 0;

	if (!options->per_process && !options->per_thread)
		return node;
	node = add_task_part(adding, node, task->comm, task->pid);
	if (options->per_thread && task->tid)
		node = add_task_part(adding, node, task->thread, task->tid);
	return node;
}

/* A program that has the interpreter within itself has it in a file of another name: that stays. */
static bool is_of_interpreter(const struct profile *profile, const struct profile_frame *frame)
{
	const char *module = profile_text(profile, frame->module);

	if (frame->kind != FRAME_NATIVE || !frame->module)
		return false;
	if (!strncmp(module, "lib", 3))
		module += 3;
	return !strncmp(module, "python3", 7) && !strpbrk(module + 7, "-_");
}

/*
 * The tree's node for one of the profile, below that for the node `from`, which is `base`. Nodes
 * that were found before are in `known`. How a function of Python came to run another one is
 * nothing that the program does: within functions of Python, such frames are left out.
 */
static uint32_t add_path(struct adding *adding, uint32_t from, uint32_t base, uint32_t at,
                         uint32_t *known, bool within_python)
{
	const struct profile *profile = adding->profile;
	bool leave_out = within_python && !profile->options.interpreter;
	uint32_t node = base;
	size_t n = 0;

	for (; at != from && !known[at]; at = profile->nodes[at].parent) {
		if (n == adding->cap_path) {
			adding->cap_path = 2 * n + 64;
			adding->path =
				xrealloc(adding->path, adding->cap_path * sizeof(*adding->path));
		}
		adding->path[n++] = at;
	}
	if (at != from)
		node = known[at] - 1;
	while (n--) {
		uint32_t frame = profile->nodes[adding->path[n]].frame;
		const struct profile_frame *of = &profile->frames[frame];
		struct node_key key = { node, label_of(adding, of->label), line_of(adding, of) };

		if (!leave_out || !is_of_interpreter(profile, of))
			node = find_node(adding->tree, adding->side, &key, of->kind, frame);
		known[adding->path[n]] = node + 1;
	}
	return node;
}

/* The tree's node for one of the profile, below `outermost`. */
static uint32_t add_stack(struct adding *adding, uint32_t outermost, uint32_t at)
{
	const struct profile *profile = adding->profile;
	uint32_t python = at, node;

	while (python != KEEP_NONE && profile_frame_of(profile, python)->kind != FRAME_PYTHON)
		python = profile->nodes[python].parent;
	node = add_path(adding, KEEP_NONE, outermost, python, adding->around_python, true);
	return add_path(adding, python, node, at, adding->nodes, false);
}

static void add_weight(struct adding *adding, uint32_t node, const struct profile_row *row,
                       enum weight_kind kind)
{
	struct tree_sums *sums;

	add_sums(adding->tree, adding->side);
	sums = &adding->tree->sums[adding->side][node];
	sums->self[kind] = words_sum(sums->self[kind], row->sums.ns[kind]);
	sums->count = words_sum(sums->count, row->sums.count[kind]);
}

static void add_row(struct adding *adding, uint32_t outermost, const struct profile_row *row)
{
	uint32_t node;
	bool any = false;

	for (int kind = 0; kind < WEIGHT_KINDS; kind++)
		any |= adding->kinds & 1u << kind && row->sums.count[kind];
	if (!any)
		return;
	node = add_stack(adding, outermost, row->key.node);
	for (int kind = 0; kind < WEIGHT_KINDS; kind++) {
		if (!(adding->kinds & 1u << kind) || !row->sums.count[kind])
			continue;
		add_weight(adding,
		           kind == WEIGHT_OFF_CPU
		                   ? add_child(adding, node, PROFILE_OFF_CPU_LABEL, PROFILE_OFF_CPU)
		                   : node,
		           row, kind);
	}
}

static int by_task(const void *left, const void *right)
{
	const struct profile_row *const *a = left, *const *b = right;

	if ((*a)->key.task != (*b)->key.task)
		return (*a)->key.task < (*b)->key.task ? -1 : 1;
	return (*a < *b) ? -1 : *a > *b;
}

static void add_rows(struct adding *adding)
{
	const struct profile *profile = adding->profile;
	const struct profile_row **rows =
		xcalloc(profile->n_rows, sizeof(const struct profile_row *));
	uint32_t task = KEEP_NONE, outermost = 0;

	for (size_t i = 0; i < profile->n_rows; i++)
		rows[i] = &profile->rows[i];
	qsort(rows, profile->n_rows, sizeof(*rows), by_task);
	for (size_t i = 0; i < profile->n_rows; i++) {
		if (rows[i]->key.task != task) {
			task = rows[i]->key.task;
			outermost = task || rows[i]->key.node ? add_task(adding, task) : 0;
			memset(adding->nodes, 0, profile->n_nodes * sizeof(*adding->nodes));
			memset(adding->around_python, 0,
			       profile->n_nodes * sizeof(*adding->around_python));
		}
		add_row(adding, outermost, rows[i]);
	}
	free(rows);
}

void tree_add(struct tree *tree, const struct profile *profile, unsigned side, unsigned kinds)
{
	struct adding adding = { .tree = tree, .profile = profile, .side = side, .kinds = kinds };
	struct node_key all = { .parent = KEEP_NONE };

	if (!tree->n) {
		tree->room.most = SIZE_MAX;
		all.label = keep_text(&tree->room, &tree->labels, "");
		find_node(tree, side, &all, PROFILE_OTHER, KEEP_NONE);
	}
	tree->profiles[side] = profile;
	adding.labels = xcalloc(profile->texts.n, sizeof(*adding.labels));
	adding.lines = xcalloc(profile->n_frames, sizeof(*adding.lines));
	adding.nodes = xcalloc(profile->n_nodes, sizeof(*adding.nodes));
	adding.around_python = xcalloc(profile->n_nodes, sizeof(*adding.around_python));
	add_rows(&adding);
	for (unsigned i = 0; i < TREE_SIDES; i++) {
		if (tree->profiles[i])
			add_sums(tree, i);
	}
	free(adding.labels);
	free(adding.lines);
	free(adding.nodes);
	free(adding.around_python);
	free(adding.path);
	buf_free(&adding.text);
}

/* ---- totals and order ------------------------------------------------------------------------ */

static void add_up(struct tree *tree, struct tree_sums *sums)
{
	for (size_t i = tree->n; i--;) {
		uint32_t parent = tree->nodes[i].parent;

		for (int kind = 0; kind < WEIGHT_KINDS; kind++) {
			uint64_t *total = &sums[i].total[kind];

			*total = words_sum(*total, sums[i].self[kind]);
			if (parent != KEEP_NONE)
				sums[parent].total[kind] =
					words_sum(sums[parent].total[kind], *total);
		}
	}
}

static uint64_t tree_width(const struct tree *tree, uint32_t node)
{
	return words_sum(tree_total(tree, 0, node), tree_total(tree, 1, node));
}

static int by_place(const void *left, const void *right, void *data)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	const struct tree *tree = data;
	const struct tree_node *x = &tree->nodes[a], *y = &tree->nodes[b];
	uint64_t wide, wider;
	int names;

	if (x->parent != y->parent) /* node 0 is the first: + 1 makes its KEEP_NONE 0 */
		return x->parent + 1 < y->parent + 1 ? -1 : 1;
	wide = tree_width(tree, a);
	wider = tree_width(tree, b);
	if (wide != wider)
		return wide > wider ? -1 : 1;
	names = strcmp(tree_label(tree, a), tree_label(tree, b));
	return names ? names : (a > b) - (a < b);
}

void tree_finish(struct tree *tree)
{
	for (unsigned side = 0; side < TREE_SIDES; side++) {
		if (tree->sums[side])
			add_up(tree, tree->sums[side]);
	}
	tree->order = xcalloc(tree->n, sizeof(*tree->order));
	for (uint32_t i = 0; i < tree->n; i++)
		tree->order[i] = i;
	qsort_r(tree->order, tree->n, sizeof(*tree->order), by_place, tree);
	for (uint32_t i = 0; i < tree->n; i++) {
		struct tree_node *node = &tree->nodes[tree->order[i]];

		node->place = i;
		if (node->parent == KEEP_NONE)
			continue;
		if (!tree->nodes[node->parent].n_children++)
			tree->nodes[node->parent].first = i;
	}
}

void tree_free(struct tree *tree)
{
	keep_texts_free(&tree->labels);
	keep_index_free(&tree->by_key);
	free(tree->nodes);
	for (unsigned side = 0; side < TREE_SIDES; side++)
		free(tree->sums[side]);
	free(tree->order);
	memset(tree, 0, sizeof(*tree));
}

/* ---- reading --------------------------------------------------------------------------------- */

const char *tree_label(const struct tree *tree, uint32_t node)
{
	return tree->labels.texts[tree->nodes[node].label];
}

static uint64_t sum_of(const uint64_t weights[WEIGHT_KINDS])
{
	uint64_t sum = 0;

	for (int kind = 0; kind < WEIGHT_KINDS; kind++)
		sum = words_sum(sum, weights[kind]);
	return sum;
}

uint64_t tree_self(const struct tree *tree, unsigned side, uint32_t node)
{
	return tree->sums[side] ? sum_of(tree->sums[side][node].self) : 0;
}

uint64_t tree_total(const struct tree *tree, unsigned side, uint32_t node)
{
	return tree->sums[side] ? sum_of(tree->sums[side][node].total) : 0;
}

static uint32_t tree_skip(const struct tree *tree, uint32_t node)
{
	const struct tree_node *nodes = tree->nodes;

	while (nodes[node].parent != KEEP_NONE) {
		const struct tree_node *parent = &nodes[nodes[node].parent];

		if (nodes[node].place + 1 < parent->first + parent->n_children)
			return tree->order[nodes[node].place + 1];
		node = nodes[node].parent;
	}
	return KEEP_NONE;
}

uint32_t tree_next(const struct tree *tree, uint32_t node)
{
	if (tree->nodes[node].n_children)
		return tree->order[tree->nodes[node].first];
	return tree_skip(tree, node);
}

/* Functions are told apart by their label, as nodes are. */
struct walk {
	const struct tree *tree;
	struct function_time *by_label; /* node 0: not seen yet */
	uint32_t *active;               /* frames of that label on the path */
	uint32_t *path;                 /* labels, by depth */
	uint32_t depth;
};

static void go_to(struct walk *walk, uint32_t node)
{
	const struct tree_node *at = &walk->tree->nodes[node];

	while (walk->depth >= at->depth)
		walk->active[walk->path[walk->depth--]]--;
	walk->depth = at->depth;
	walk->path[at->depth] = at->label;
	walk->active[at->label]++;
}

static void count(struct walk *walk, uint32_t node)
{
	uint32_t label = walk->tree->nodes[node].label;
	struct function_time *time = &walk->by_label[label];

	if (!time->node)
		time->node = node;
	for (unsigned side = 0; side < TREE_SIDES; side++) {
		time->self[side] = words_sum(time->self[side], tree_self(walk->tree, side, node));
		if (walk->active[label] == 1)
			time->total[side] =
				words_sum(time->total[side], tree_total(walk->tree, side, node));
	}
}

struct function_time *functions_of(const struct tree *tree, size_t *n)
{
	struct walk walk = { .tree = tree };

	walk.by_label = xcalloc(tree->labels.n, sizeof(*walk.by_label));
	walk.active = xcalloc(tree->labels.n, sizeof(*walk.active));
	walk.path = xcalloc(tree->deepest + 1, sizeof(*walk.path));
	for (uint32_t node = tree_next(tree, 0); node != KEEP_NONE; node = tree_next(tree, node)) {
		go_to(&walk, node);
		count(&walk, node);
	}
	*n = 0;
	for (size_t i = 0; i < tree->labels.n; i++) {
		if (walk.by_label[i].node)
			walk.by_label[(*n)++] = walk.by_label[i];
	}
	free(walk.active);
	free(walk.path);
	return walk.by_label;
}

static bool is_heavier(const struct tree *tree, uint32_t a, uint32_t b)
{
	uint64_t x = tree_self(tree, 0, a), y = tree_self(tree, 0, b);

	return x != y ? x > y : tree->nodes[a].place < tree->nodes[b].place;
}

size_t functions_heaviest_stacks(const struct tree *tree, uint32_t *nodes, size_t most)
{
	size_t n = 0;

	for (uint32_t at = 1; at < tree->n; at++) {
		size_t place = n;

		if (!tree_self(tree, 0, at))
			continue;
		while (place && is_heavier(tree, at, nodes[place - 1]))
			place--;
		if (place == most)
			continue;
		n += n < most;
		memmove(nodes + place + 1, nodes + place, (n - place - 1) * sizeof(*nodes));
		nodes[place] = at;
	}
	return n;
}

static double width_of(const struct tree *tree, bool mean, uint32_t node)
{
	double sum = 0;

	for (unsigned side = 0; side < (mean ? TREE_SIDES : 1); side++) {
		uint64_t all = tree_total(tree, side, 0);

		if (all)
			sum += (double)tree_total(tree, side, node) / (double)all;
	}
	return mean ? sum / 2 : sum;
}

/* How many nodes are at least so wide; a child is no wider than its parent. */
static size_t count_wide(const struct tree *tree, bool mean, double least)
{
	size_t n = 1;

	for (uint32_t at = tree_next(tree, 0); at != KEEP_NONE;) {
		bool wide = width_of(tree, mean, at) >= least;

		n += wide;
		at = wide ? tree_next(tree, at) : tree_skip(tree, at);
	}
	return n;
}

/* `ends`: for each level, where the next box on it begins. */
static void place_boxes(const struct tree *tree, bool mean, double *ends,
                        struct flame_layout *layout)
{
	for (uint32_t at = tree_next(tree, 0); at != KEEP_NONE;) {
		uint32_t depth = tree->nodes[at].depth;
		double width = width_of(tree, mean, at);

		if (width < layout->least || !(width > 0)) {
			ends[depth] += width;
			at = tree_skip(tree, at);
			continue;
		}
		layout->boxes[layout->n++] = (struct flame_box){ at, ends[depth], width };
		if (depth > layout->deepest)
			layout->deepest = depth;
		if (depth < tree->deepest)
			ends[depth + 1] = ends[depth];
		ends[depth] += width;
		at = tree_next(tree, at);
	}
}

void flame_lay_out(const struct tree *tree, bool mean, struct flame_layout *layout)
{
	AT_END(at_end_free) double *ends = xcalloc(tree->deepest + 2, sizeof(*ends));
	size_t n;

	layout->least = FLAME_LEAST_SHARE;
	for (n = count_wide(tree, mean, layout->least); n > FLAME_BOXES_MOST;
	     n = count_wide(tree, mean, layout->least))
		layout->least *= 2;
	layout->boxes = xcalloc(n, sizeof(*layout->boxes));
	layout->boxes[layout->n++] = (struct flame_box){ 0, 0, 1 };
	place_boxes(tree, mean, ends, layout);
	layout->left_out = tree->n - layout->n;
}

void flame_layout_free(struct flame_layout *layout)
{
	free(layout->boxes);
	memset(layout, 0, sizeof(*layout));
}
