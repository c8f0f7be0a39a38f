// SPDX-License-Identifier: MIT
/*
 * Stacks as the Trace Event Format has them: events say by "sf" at which node of a tree they are,
 * and "stackFrames" behind the events tells the nodes. Only there it is known which were needed,
 * so the tree is kept until then, within a bound; stacks beyond are counted.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "base/hash.h"
#include "base/lines.h"
#include "base/xalloc.h"
#include "output/chrome/chrome.h"
#include "output/format.h"
#include "output/describe.h"

/* A million nodes of short names, in the file 60 to 100 bytes each. */
#define NODES_MOST 1000000u
#define NODE_BYTES 64ull
#define NAMES_MOST ((size_t)64 << 20) /* bytes of their names, each as often as it is written */

#define NOWHERE UINT32_MAX /* a stack that there was no room for */

struct chrome_node {
	uint32_t parent; /* 1 for the first node; 0: none */
	const struct stack_frame *frame;
};

struct chrome_stacks {
	struct chrome_node *nodes;
	uint32_t n_nodes, cap_nodes;
	uint32_t *by_content, n_places; /* nodes, 1 for the first; a power of two of places */
	uint32_t *leaves;               /* by id of the stack; 0: not asked for yet */
	size_t n_leaves, name_bytes;
	uint64_t most_bytes; /* of nodes and names, in the file */
	uint64_t left_out;   /* calls and samples that are without their stacks */
};

struct chrome_stacks *chrome_stacks_new(void)
{
	struct chrome_stacks *stacks = xcalloc(1, sizeof(*stacks));

	/* They stand behind the events, so they have a part of the output's size for themselves. */
	stacks->most_bytes = lines_most() / 4;
	return stacks;
}

void chrome_stacks_free(struct chrome_stacks *stacks)
{
	FREE_ALL(stacks->nodes, stacks->by_content, stacks->leaves, stacks);
}

/* ---- the tree -------------------------------------------------------------------------------- */

/* The place of a node in the table, or the free one that it would have. */
static uint32_t *place_of(struct chrome_stacks *stacks, uint32_t parent, uint32_t frame)
{
	uint64_t key = (uint64_t)parent << 32 | frame;
	uint32_t at = hash_bytes(&key, sizeof(key)) & (stacks->n_places - 1);

	for (;; at = (at + 1) & (stacks->n_places - 1)) {
		uint32_t *place = &stacks->by_content[at];
		const struct chrome_node *node;

		if (!*place)
			return place;
		node = &stacks->nodes[*place - 1];
		if (node->parent == parent && node->frame->id == frame)
			return place;
	}
}

static void grow(struct chrome_stacks *stacks)
{
	stacks->cap_nodes = stacks->cap_nodes ? 2 * stacks->cap_nodes : 1024;
	stacks->nodes = xrealloc(stacks->nodes, stacks->cap_nodes * sizeof(struct chrome_node));
	stacks->n_places = 2 * stacks->cap_nodes;
	free(stacks->by_content);
	stacks->by_content = xcalloc(stacks->n_places, sizeof(*stacks->by_content));
	for (uint32_t i = 0; i < stacks->n_nodes; i++)
		*place_of(stacks, stacks->nodes[i].parent, stacks->nodes[i].frame->id) = i + 1;
}

static size_t text_bytes(const struct stack_frame *frame)
{
	return (frame->function ? strlen(frame->function) : 0) +
	       (frame->module ? strlen(frame->module) : 0) +
	       (frame->file ? strlen(frame->file) : 0);
}

/* The node of a frame below `parent`; 0 where there is no room. */
static uint32_t node_of(struct chrome_stacks *stacks, uint32_t parent,
                        const struct stack_frame *frame)
{
	uint32_t *place;

	if (stacks->n_nodes == stacks->cap_nodes)
		grow(stacks);
	place = place_of(stacks, parent, frame->id);
	if (*place)
		return *place;
	if (stacks->n_nodes == NODES_MOST || stacks->name_bytes + text_bytes(frame) > NAMES_MOST ||
	    NODE_BYTES * stacks->n_nodes + stacks->name_bytes > stacks->most_bytes)
		return 0;
	stacks->name_bytes += text_bytes(frame);
	stacks->nodes[stacks->n_nodes++] = (struct chrome_node){ parent, frame };
	return *place = stacks->n_nodes;
}

/* Where there is no room for all of it, none of it is told: half a stack would be another one. */
static uint32_t leaf_of(struct chrome_stacks *stacks, const struct stack *stack)
{
	uint32_t node = 0;

	for (size_t i = stack->n_frames; i--;) {
		node = node_of(stacks, node, stack->frames[i]);
		if (!node)
			return NOWHERE;
	}
	return node;
}

uint32_t chrome_stack(struct chrome_stacks *stacks, const struct stack *stack)
{
	uint32_t *leaf;

	if (!stack)
		return 0;
	leaf = BY_ID(stacks->leaves, stacks->n_leaves, stack->id);
	if (!*leaf)
		*leaf = leaf_of(stacks, stack);
	if (*leaf != NOWHERE)
		return *leaf;
	stacks->left_out++;
	return 0;
}

uint64_t chrome_stacks_left_out(const struct chrome_stacks *stacks)
{
	return stacks->left_out;
}

/* ---- what is written ------------------------------------------------------------------------- */

/* Who ended it, or of what it is the sum. */
static void add_blocked(struct buf *out, const struct sample *sample)
{
	buf_printf(out, ", \"how\": \"%s\"", blocked_name(sample->blocked));
	if (sample->waker) {
		buf_puts(out, ", \"woken by\": ");
		buf_json_string(out, sample->waker);
	}
	if (sample->waker_tid)
		buf_printf(out, ", \"woken by thread\": %u", sample->waker_tid);
	if (!sample_is_stretch(sample))
		buf_printf(out, ", \"stretches\": %" PRIu64, sample->count);
	if (sample->wait)
		buf_printf(out, ", \"waited for\": \"%s\"", wait_kind_name(sample->wait));
	if (sample->runnable_ns)
		buf_printf(out, ", \"ns runnable\": %" PRIu64, sample->runnable_ns);
	if (sample->rival) {
		buf_puts(out, ", \"rival\": ");
		buf_json_string(out, sample->rival);
	}
	if (sample->rival_pid)
		buf_printf(out, ", \"rival's process\": %u", sample->rival_pid);
}

/*
 * An event of its own kind, "P", which has no length: HTA leaves it out, and Perfetto passes over
 * one that has no id. What a sample stands for is in its args.
 */
void chrome_add_sample(struct chrome_writer *writer, struct chrome_stacks *stacks,
                       const struct event *event)
{
	const struct sample *sample = event->sample;
	bool blocked = sample->kind == SAMPLE_OFF_CPU;
	uint32_t leaf = chrome_stack(stacks, sample->stack);
	struct buf *out = writer->out;

	chrome_begin_event(writer);
	buf_printf(out, "\"ph\": \"P\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %u, ",
	           blocked ? "off_cpu" : "cpu_sample", blocked ? "blocked" : "sample",
	           event->process->pid);
	buf_printf(out, "\"tid\": %u, \"ts\": ", event->tid);
	chrome_add_time(writer, event->time_ns);
	if (leaf)
		buf_printf(out, ", \"sf\": %u", leaf);
	buf_puts(out, ", \"args\": {\"weight_us\": ");
	buf_fixed(out, sample->weight_ns, 3);
	if (blocked)
		add_blocked(out, sample);
	buf_puts(out, "}}");
}

static void add_node(struct buf *out, const struct chrome_node *node)
{
	const struct stack_frame *frame = node->frame;
	AT_END(buf_free) struct buf name = { 0 };

	frame_add_words(frame, &name);
	if (frame->file && *frame->file && frame->line)
		buf_printf(&name, " (%s:%u)", frame->file, frame->line);
	else if (frame->file && *frame->file)
		buf_printf(&name, " (%s)", frame->file);
	buf_puts(out, "{\"name\": ");
	buf_json_string(out, name.data);
	buf_puts(out, ", \"category\": ");
	buf_json_string(out, frame->module && *frame->module ? frame->module
	                                                     : frame_kind_name(frame->kind));
	if (node->parent)
		buf_printf(out, ", \"parent\": %u", node->parent);
	buf_putc(out, '}');
}

void chrome_add_stacks(struct chrome_stacks *stacks, struct sink *sink)
{
	struct buf *out = &sink->lines.pending;

	if (!stacks->n_nodes)
		return;
	buf_puts(out, "  \"stackFrames\": {\n");
	for (uint32_t i = 0; i < stacks->n_nodes; i++) {
		buf_printf(out, "    \"%u\": ", i + 1);
		add_node(out, &stacks->nodes[i]);
		buf_puts(out, i + 1 < stacks->n_nodes ? ",\n" : "\n");
		lines_added(&sink->lines, NULL);
	}
	buf_puts(out, "  },\n");
}
