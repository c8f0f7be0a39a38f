// SPDX-License-Identifier: MIT
#include "profile/profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "output/describe.h"
#include "profile/words.h"
#include "profile/profile_private.h"

/* ---- parts --------------------------------------------------------------------------------- */

/*
 * Frames are replaced by what they turned out to be in their source: the tree of nodes is gone
 * through from the outside, and what changes gets nodes of its own. The old ones stay, and nothing
 * leads to them.
 */

/* What stands for an old node, and the frames of a stack down to there: so many, or fewer. */
struct parts_successor {
	uint32_t node, depth;
};

static uint32_t profile_keep_node(struct profile *profile, uint32_t parent, uint32_t frame);

static uint32_t profile_keep_frame(struct profile *profile, const struct stack_frame *from);

/* The node that stands for an old one, below the one that stands for its parent. */
static uint32_t parts_replace(struct profile *profile, struct parts_successor *by_node,
                              uint32_t node)
{
	static const struct parts_successor none = { .node = KEEP_NONE };
	const struct profile_node old = profile->nodes[node];
	const struct parts_successor *parent =
		old.parent == KEEP_NONE ? &none : &by_node[old.parent];
	const struct stack_frame *from =
		old.frame < profile->cap_sources ? profile->sources[old.frame] : NULL;
	uint32_t at = parent->node;

	by_node[node].depth = parent->depth + 1;
	if (!from || !from->n_parts || parent->depth + from->n_parts > STACK_PARTED_DEPTH)
		return at == old.parent ? node : profile_keep_node(profile, at, old.frame);
	by_node[node].depth = parent->depth + (uint32_t)from->n_parts;
	for (size_t i = from->n_parts; i--;) {
		at = profile_keep_node(profile, at, profile_keep_frame(profile, from->parts[i]));
		if (at == KEEP_NONE)
			break;
	}
	return at;
}

static bool has_parts(const struct profile *profile)
{
	for (size_t i = 0; i < profile->cap_sources; i++)
		if (profile->sources[i] && profile->sources[i]->n_parts)
			return true;
	return false;
}

static struct profile_row *profile_keep_row(struct profile *profile,
                                            const struct profile_row_key *key);

/* Stacks that differed by their places in a function may be the same by now. */
static void replace_rows(struct profile *profile, const struct parts_successor *by_node)
{
	struct profile_row *rows = profile->rows;
	size_t n = profile->n_rows;

	keep_index_free(&profile->rows_by);
	profile->rows = NULL;
	profile->n_rows = 0;
	for (size_t i = 0; i < n; i++) {
		struct profile_row_key key = rows[i].key;
		struct profile_row *row;

		key.node = by_node[key.node].node;
		row = profile_keep_row(profile, &key);
		if (!row)
			row = &profile->rows[PROFILE_ROW_NOT_KEPT];
		for (int kind = 0; kind < WEIGHT_KINDS; kind++) {
			row->sums.ns[kind] += rows[i].sums.ns[kind];
			row->sums.count[kind] += rows[i].sums.count[kind];
		}
	}
	free(rows);
}

void profile_take_parts(struct profile *profile)
{
	size_t n = profile->n_nodes, most = profile->room.most;
	struct parts_successor *by_node;

	if (!has_parts(profile))
		return;
	by_node = xmalloc(n * sizeof(*by_node));
	for (size_t i = 0; i < n; i++) {
		by_node[i].node = parts_replace(profile, by_node, (uint32_t)i);
		if (by_node[i].node == KEEP_NONE) /* no room: it stays what it was */
			by_node[i].node = (uint32_t)i;
	}
	profile->room.most = SIZE_MAX; /* the same rows, or fewer */
	replace_rows(profile, by_node);
	profile->room.most = most > profile->room.used ? most : profile->room.used;
	free(by_node);
	free(profile->sources);
	profile->sources = NULL;
	profile->cap_sources = 0;
}

/* ---- profile ------------------------------------------------------------------------------- */

#define NOT_KEPT  "[stacks not kept]"
#define NOT_KNOWN "[stack not known]"
#define KNOWN_MAX (1u << 18) /* ids of stacks that are remembered, 16 bytes each */

/* ---- elements by their content --------------------------------------------------------------- */

static uint32_t keep_frame(struct profile *profile, const struct profile_frame *frame)
{
	return keep_element(&profile->room, &profile->frames_by, &profile->frames,
	                    &profile->n_frames, frame, sizeof(*frame), sizeof(*frame));
}

static uint32_t profile_keep_node(struct profile *profile, uint32_t parent, uint32_t frame)
{
	struct profile_node node = { parent, frame };

	if (frame == KEEP_NONE)
		return KEEP_NONE;
	return keep_element(&profile->room, &profile->nodes_by, &profile->nodes, &profile->n_nodes,
	                    &node, sizeof(node), sizeof(node));
}

static struct profile_row *profile_keep_row(struct profile *profile,
                                            const struct profile_row_key *key)
{
	struct profile_row row = { .key = *key };
	uint32_t at = keep_element(&profile->room, &profile->rows_by, &profile->rows,
	                           &profile->n_rows, &row, sizeof(row), sizeof(row.key));

	return at == KEEP_NONE ? NULL : &profile->rows[at];
}

/* By its numbers: a thread that is called otherwise later on keeps the name that it had first. */
static uint32_t keep_task(struct profile *profile, const struct profile_task *task)
{
	return keep_element(&profile->room, &profile->tasks_by, &profile->tasks, &profile->n_tasks,
	                    task, sizeof(*task), offsetof(struct profile_task, thread));
}

static uint32_t text_of(struct profile *profile, const char *text)
{
	return keep_text(&profile->room, &profile->texts, text);
}

/* ---- the profile ----------------------------------------------------------------------------- */

static uint32_t keep_label(struct profile *profile, uint32_t parent, const char *label,
                           unsigned kind)
{
	struct profile_frame frame;

	memset(&frame, 0, sizeof(frame)); /* padding is compared */
	frame.label = text_of(profile, label);
	frame.kind = (uint8_t)kind;
	if (frame.label == KEEP_NONE)
		return KEEP_NONE;
	return profile_keep_node(profile, parent, keep_frame(profile, &frame));
}

struct profile *profile_new(const struct profile_options *options)
{
	struct profile_row_key not_kept = { .end = STACK_END_COUNT };
	struct profile *profile = xcalloc(1, sizeof(*profile));
	struct profile_task nobody = { 0 };

	if (options)
		profile->options = *options;
	profile->room.most = SIZE_MAX; /* what follows has room in any case */
	not_kept.node = keep_label(profile, KEEP_NONE, NOT_KEPT, PROFILE_OTHER);
	keep_task(profile, &nobody);
	profile_keep_row(profile, &not_kept);
	profile->room.most = profile->options.bytes_most;
	if (!profile->room.most)
		profile->room.most = PROFILE_BYTES;
	if (profile->room.most < profile->room.used)
		profile->room.most = profile->room.used;
	return profile;
}

void profile_free(struct profile *profile)
{
	if (!profile)
		return;
	keep_texts_free(&profile->texts);
	keep_index_free(&profile->frames_by);
	keep_index_free(&profile->nodes_by);
	keep_index_free(&profile->rows_by);
	keep_index_free(&profile->tasks_by);
	free(profile->frames);
	free(profile->nodes);
	free(profile->rows);
	free(profile->tasks);
	free(profile->known);
	free(profile->known_frames);
	free(profile->sources);
	buf_free(&profile->label);
	free(profile);
}

/* ---- stacks ---------------------------------------------------------------------------------- */

/* Each once, by its content; KEEP_NONE, NULL: there is no room. */
static uint32_t profile_keep_frame(struct profile *profile, const struct stack_frame *from)
{
	struct profile_frame frame;

	memset(&frame, 0, sizeof(frame));
	buf_reset(&profile->label);
	frame_label(from, !profile->options.functions, &profile->label);
	frame.label = text_of(profile, profile->label.data);
	frame.function = text_of(profile, from->function);
	frame.module = text_of(profile, from->module);
	frame.file = text_of(profile, from->file);
	frame.build_id = text_of(profile, from->build_id);
	frame.line = from->line;
	frame.first_line = from->first_line;
	frame.offset = from->offset;
	frame.kind = (uint8_t)from->kind;
	frame.inlined = from->inlined;
	if (frame.label == KEEP_NONE || frame.function == KEEP_NONE || frame.module == KEEP_NONE ||
	    frame.file == KEEP_NONE || frame.build_id == KEEP_NONE)
		return KEEP_NONE;
	return keep_frame(profile, &frame);
}

/* Which frame of the source it is: what comes to be known of that is looked for there. */
static uint32_t frame_from(struct profile *profile, const struct stack_frame *from)
{
	uint32_t frame = profile_keep_frame(profile, from);
	const struct stack_frame **grown;

	if (frame == KEEP_NONE || from->kind == FRAME_PYTHON)
		return frame;
	while (frame >= profile->cap_sources) {
		size_t cap = profile->cap_sources;

		grown = keep_grow(&profile->room, profile->sources, cap, &profile->cap_sources,
		                  sizeof(*grown));
		if (!grown)
			return frame;
		profile->sources = grown;
		memset(grown + cap, 0, (profile->cap_sources - cap) * sizeof(*grown));
	}
	profile->sources[frame] = from;
	return frame;
}

/* The source keeps each text once. */
static bool same_source(const struct stack_frame *a, const struct stack_frame *b)
{
	return a->id == b->id && a->function == b->function && a->module == b->module &&
	       a->file == b->file && a->build_id == b->build_id && a->line == b->line &&
	       a->first_line == b->first_line && a->offset == b->offset && a->kind == b->kind &&
	       a->inlined == b->inlined;
}

/* A stack has a thousand frames, and four texts of 4 KiB each: they are looked up once. */
static uint32_t known_frame(struct profile *profile, const struct stack_frame *from)
{
	struct known_frame *known;

	if (!profile->known_frames) {
		profile->known_frames = xcalloc(KNOWN_FRAMES, sizeof(*known));
		for (size_t i = 0; i < KNOWN_FRAMES; i++)
			profile->known_frames[i].at = KEEP_NONE;
	}
	known = &profile->known_frames[from->id % KNOWN_FRAMES];
	if (!same_source(&known->frame, from) || known->at == KEEP_NONE)
		*known = (struct known_frame){ *from, frame_from(profile, from) };
	return known->at;
}

static uint32_t walk(struct profile *profile, const struct stack *stack)
{
	uint32_t node = KEEP_NONE;

	for (size_t i = stack->n_frames; i--;) {
		const struct stack_frame *from = stack->frames[i];

		node = profile_keep_node(profile, node,
		                         stack->id < KNOWN_MAX ? known_frame(profile, from)
		                                               : frame_from(profile, from));
		if (node == KEEP_NONE)
			break;
	}
	return node;
}

static bool make_known(struct profile *profile, uint32_t id)
{
	size_t want = 2 * (size_t)id + 64,
	       more = (want - profile->n_known) * sizeof(*profile->known);

	if (id < profile->n_known)
		return true;
	if (id >= KNOWN_MAX || more > profile->room.most - profile->room.used)
		return false;
	profile->room.used += more;
	profile->known = xrealloc(profile->known, want * sizeof(*profile->known));
	memset(profile->known + profile->n_known, 0, more);
	profile->n_known = want;
	return true;
}

static uint32_t node_of(struct profile *profile, const struct stack *stack)
{
	struct known_stack *known;
	uint32_t node;

	if (!stack || !stack->n_frames)
		return keep_label(profile, KEEP_NONE, NOT_KNOWN, PROFILE_OTHER);
	if (!make_known(profile, stack->id))
		return walk(profile, stack);
	known = &profile->known[stack->id];
	if (known->stack == stack)
		return known->node;
	node = walk(profile, stack);
	*known = (struct known_stack){ stack, node };
	return node;
}

static uint32_t task_of(struct profile *profile, const struct profile_sample *sample)
{
	bool threads = profile->options.per_thread;
	struct profile_task task = { 0 };

	if (!threads && !profile->options.per_process)
		return 0;
	if (sample->process) {
		task.pid = sample->process->pid;
		task.comm = text_of(profile, sample->process->comm);
	}
	if (threads) {
		task.tid = sample->tid;
		task.thread = text_of(profile, sample->thread);
	}
	if (task.comm == KEEP_NONE || task.thread == KEEP_NONE)
		return KEEP_NONE;
	return keep_task(profile, &task);
}

static void count_end(struct profile *profile, const struct profile_row_key *key, uint64_t count)
{
	if (key->end == STACK_END_COUNT)
		profile->without_stack += count;
	else
		profile->ends[key->end] += count;
	if (key->python_cut)
		profile->python_cut += count;
}

static bool is_sum(const struct profile_sample *sample)
{
	return sample->blocked && !sample->stack;
}

static struct profile_row *row_of(struct profile *profile, const struct profile_sample *sample,
                                  struct profile_row_key *key)
{
	bool sum = is_sum(sample);
	uint32_t node = sum ? KEEP_NONE : node_of(profile, sample->stack);

	if (node != KEEP_NONE && sample->gpu)
		node = keep_label(profile, node, sample->gpu,
		                  sample->kind == WEIGHT_HOOK ? FRAME_NATIVE : FRAME_GPU);
	if (node != KEEP_NONE && sample->stall)
		node = keep_label(profile, node, sample->stall, FRAME_GPU);
	if (sample->blocked && (sum || node != KEEP_NONE))
		node = keep_label(profile, node, sample->blocked, PROFILE_OFF_CPU);
	key->node = node;
	key->task = task_of(profile, sample);
	if (key->node == KEEP_NONE || key->task == KEEP_NONE)
		return NULL;
	return profile_keep_row(profile, key);
}

void profile_add(struct profile *profile, const struct profile_sample *sample)
{
	const struct stack *stack = sample->stack;
	struct profile_row_key key = { .end = STACK_END_COUNT };
	uint64_t count = sample->count ? sample->count : 1;
	struct profile_row *row;

	if (stack && stack->n_frames) {
		key.end = (uint8_t)stack->end;
		key.python_cut = stack->python_cut;
	}
	row = row_of(profile, sample, &key);
	if (!row)
		row = &profile->rows[PROFILE_ROW_NOT_KEPT];
	row->sums.ns[sample->kind] += sample->ns;
	row->sums.count[sample->kind] += count;
	if (!is_sum(sample))
		count_end(profile, &key, count);
}

void profile_gpu_name(const struct activity *activity, struct buf *name)
{
	buf_reset(name);
	buf_printf(name, "[%s]", activity_words[activity->kind].profile);
	if (activity->kind == ACTIVITY_KERNEL)
		buf_puts(name, activity->kernel ? activity->kernel->name : "unknown kernel");
	else if (activity->kind == ACTIVITY_COPY)
		buf_puts(name, activity_direction_name(activity->direction));
	else if (activity_is_transfer(activity))
		buf_puts(name, activity_memory_name(activity->destination));
	else /* its number says nothing, and there can be any number of them */
		buf_puts(name, activity_words[activity->kind].op);
}

static void add_brief(struct buf *name, uint64_t ns)
{
	buf_puts(name, "[shorter than ");
	if (ns % 1000 || ns >= 10000000)
		buf_duration(name, ns);
	else
		buf_printf(name, "%lu us", ns / 1000);
	buf_putc(name, ']');
}

const char *profile_blocked_name(const struct sample *sample, uint64_t brief_ns, bool per_thread,
                                 struct buf *name)
{
	buf_reset(name);
	switch (sample->blocked) {
	case BLOCKED_WOKEN:
		buf_printf(name, "[woken by %s", sample->waker ? sample->waker : "?");
		if (per_thread)
			buf_printf(name, " (%u)", sample->waker_tid);
		buf_putc(name, ']');
		break;
	case BLOCKED_INTERRUPT:
		buf_puts(name, "[woken by an interrupt]");
		break;
	case BLOCKED_STILL:
		buf_puts(name, "[still blocked at the end]");
		break;
	case BLOCKED_BEFORE:
		buf_puts(name, "[blocked since before the begin]");
		break;
	case BLOCKED_BRIEF:
		add_brief(name, brief_ns);
		break;
	case BLOCKED_SKIPPED:
		buf_puts(name, "[stack not walked]");
		break;
	case BLOCKED_PREEMPTED:
		buf_puts(name, "[waiting for a CPU]");
		break;
	case BLOCKED_UNKNOWN:
	case BLOCKED_COUNT:
		return NULL;
	}
	return name->data;
}

/* ---- sums ------------------------------------------------------------------------------------ */

void profile_total(const struct profile *profile, struct profile_sums *sums)
{
	memset(sums, 0, sizeof(*sums));
	for (size_t i = 0; i < profile->n_rows; i++) {
		for (int kind = 0; kind < WEIGHT_KINDS; kind++) {
			sums->ns[kind] += profile->rows[i].sums.ns[kind];
			sums->count[kind] += profile->rows[i].sums.count[kind];
		}
	}
}

void profile_not_kept(const struct profile *profile, struct profile_sums *sums)
{
	*sums = profile->rows[PROFILE_ROW_NOT_KEPT].sums;
}

uint64_t profile_without_stack(const struct profile *profile)
{
	return profile->without_stack;
}

size_t profile_stacks(const struct profile *profile)
{
	return profile->n_rows - 1;
}

size_t profile_bytes(const struct profile *profile)
{
	return profile->room.used;
}
