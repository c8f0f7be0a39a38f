/* SPDX-License-Identifier: MIT */
/*
 * The inside of a profile, for what makes outputs of it. Private to src/profile.
 *
 * Stacks are a tree of nodes, the outermost frame first, so that those which begin alike share
 * memory. A node's parent has a smaller number than the node. A row is one stack with its weights.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

/* ---- keep ----------------------------------------------------------------------------------- */

#define KEEP_NONE UINT32_MAX

/* Bytes that all arrays and tables of one profile may take together. */
struct keep_room {
	size_t used, most;
};

/*
 * `array` of `element` bytes each, with room for one more than `n`; *cap is how many fit. NULL
 * where the room does not allow it: then the array is as it was.
 */
void *keep_grow(struct keep_room *room, void *array, size_t n, size_t *cap, size_t element);

/* Places by content. A zeroed one is empty. */
struct keep_index {
	struct keep_slot *slots;
	size_t n, cap; /* cap: a power of two */
	size_t fit;    /* elements that the array of keep_element() has room for */
};

void keep_index_free(struct keep_index *index);

/*
 * The place in an array, of *n elements of `bytes` each, of the one whose first `key` bytes are as
 * those of `element`; where there is none, that is added. `array`: the address of the pointer to
 * them, which may move. KEEP_NONE: there is no room.
 */
uint32_t keep_element(struct keep_room *room, struct keep_index *index, void *array, size_t *n,
                      const void *element, size_t bytes, size_t key);

/* ---- texts --------------------------------------------------------------------------------- */

#define KEEP_TEXT_MOST                                                                             \
	4096 /* bytes of a text; what is longer is cut there, and ends with "..."                  \
	      */

/* Each text once. Text 0 is "". */
struct keep_texts {
	struct keep_index index;
	const char **texts;
	size_t n, cap;
	struct keep_piece *pieces; /* of memory that texts lie in, the newest first */
};

void keep_texts_free(struct keep_texts *texts);

/* The number of a text; NULL is "". KEEP_NONE where there is no room. */
uint32_t keep_text(struct keep_room *room, struct keep_texts *texts, const char *text);

/* What a frame is of; beyond those of the model there are frames that stand for something else. */
enum profile_kind {
	PROFILE_OFF_CPU = FRAME_COUNT, /* the time a thread was blocked in the stack below it */
	PROFILE_TASK,                  /* a process or a thread */
	PROFILE_OTHER,                 /* stacks that are not known, or were not kept */
	PROFILE_KINDS
};

#define PROFILE_OFF_CPU_LABEL "[off_CPU]"

/* Texts by their numbers; 0: none. */
struct profile_frame {
	uint32_t label; /* what outputs show, and what makes two frames of stacks the same one */
	uint32_t function, module, file;
	uint32_t build_id; /* of the module's file */
	uint32_t line, first_line;
	uint64_t offset;
	uint8_t kind; /* enum profile_kind */
	bool inlined;
};

struct profile_node {
	uint32_t parent, frame; /* KEEP_NONE: the outermost */
};

struct profile_task {
	uint32_t pid, tid; /* 0: not known, or not asked for */
	uint32_t comm, thread;
};

struct profile_row_key {
	uint32_t node, task;
	uint8_t end; /* enum stack_end; STACK_END_COUNT: the stack is not known */
	uint8_t python_cut;
	uint16_t zero;
};

struct profile_row {
	struct profile_row_key key;
	struct profile_sums sums;
};

/* Which node a stack of the source is. */
/* A frame of the source, as it was, and which one of the profile it is. */
#define KNOWN_FRAMES 4096 /* a power of two */

struct known_frame {
	struct stack_frame frame;
	uint32_t at;
};

struct known_stack {
	const struct stack *stack;
	uint32_t node;
};

struct profile {
	const struct stack_frame **sources; /* by frame, until profile_take_parts(); NULL: none */
	size_t cap_sources;
	struct profile_options options;
	struct keep_room room;
	struct keep_texts texts;
	struct profile_frame *frames;
	struct profile_node *nodes;
	struct profile_row *rows;
	struct profile_task *tasks;
	size_t n_frames, n_nodes, n_rows, n_tasks;
	struct keep_index frames_by, nodes_by, rows_by, tasks_by;
	struct known_stack *known; /* by the id of the stack */
	size_t n_known;
	struct known_frame *known_frames; /* by their numbers; the last one that was asked for */
	uint64_t ends[STACK_END_COUNT];
	uint64_t python_cut, without_stack;
	bool ends_not_known; /* it was read from a file that does not tell */
	struct buf label;
};

/* Row 0, node 0: what was not kept. */
#define PROFILE_ROW_NOT_KEPT 0

static inline const char *profile_text(const struct profile *profile, uint32_t text)
{
	return profile->texts.texts[text];
}

/* Of frames that stand for a whole function of Python it is the function's own. */
static inline uint32_t profile_line_of(const struct profile *profile,
                                       const struct profile_frame *frame)
{
	bool whole = frame->kind == FRAME_PYTHON && profile->options.functions;

	return whole || !frame->line ? frame->first_line : frame->line;
}

static inline const struct profile_frame *profile_frame_of(const struct profile *profile,
                                                           uint32_t node)
{
	return &profile->frames[profile->nodes[node].frame];
}
