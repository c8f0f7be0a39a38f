// SPDX-License-Identifier: MIT
#include "trace/stack.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/budget.h"
#include "base/map.h"
#include "base/xalloc.h"
#include "trace/format.h"

/* ---- stacks -------------------------------------------------------------------------------- */

struct kept_text {
	UT_hash_handle hh;
	char text[];
};

/* What makes two frames the same: texts are kept once, so their addresses do. No padding. */
struct frame_key {
	const char *function, *module, *file, *build_id;
	uint64_t offset;
	uint32_t line, first_line;
	uint32_t kind, inlined;
};

struct kept_frame {
	struct frame_key key;
	struct stack_frame frame;
	const struct stack_frame *moved; /* to others; NULL: it was not */
	UT_hash_handle hh;
};

/* Its frames, and after them its end and its mark: what makes two stacks the same. */
struct kept_stack {
	struct stack stack;
	const struct stack *moved; /* the same */
	UT_hash_handle hh;
	size_t n_words;
	uintptr_t words[];
};

struct stacks {
	struct kept_text *texts;
	struct kept_frame *frames;
	struct kept_stack *all;
	struct budget *budget;
	uint32_t owner;   /* on whose account it is what is kept now */
	uint64_t person;  /* and whose that one is */
	uintptr_t *words; /* of the stack that is asked for */
	size_t room;
};

struct stacks *stacks_new(size_t most_bytes)
{
	struct stacks *stacks = xcalloc(1, sizeof(*stacks));

	stacks->budget = budget_new(most_bytes / 2, most_bytes);
	return stacks;
}

void stacks_free(struct stacks *stacks)
{
	struct kept_frame *frame, *next_frame;

	if (!stacks)
		return;
	MAP_FREE(stacks->all, free);
	HASH_ITER (hh, stacks->frames, frame, next_frame) {
		HASH_DEL(stacks->frames, frame);
		free((void *)frame->frame.parts);
		free(frame);
	}
	MAP_FREE(stacks->texts, free);
	free(stacks->words);
	budget_free(stacks->budget);
	free(stacks);
}

void stacks_for(struct stacks *stacks, uint32_t owner, uint64_t person)
{
	stacks->owner = owner;
	stacks->person = person;
}

static bool has_room(struct stacks *stacks, size_t bytes)
{
	budget_person(stacks->budget, stacks->owner, stacks->person);
	return budget_take(stacks->budget, stacks->owner, bytes);
}

/* False where there is no room for it; NULL stays NULL. */
static bool keep_text(struct stacks *stacks, const char **text)
{
	size_t len = *text ? strlen(*text) : 0;
	struct kept_text *kept;

	if (!*text)
		return true;
	kept = MAP_FIND_BYTES(stacks->texts, *text, len);
	if (!kept) {
		if (!has_room(stacks, sizeof(*kept) + len + 1))
			return false;
		kept = xmalloc(sizeof(*kept) + len + 1);
		memcpy(kept->text, *text, len + 1);
		HASH_ADD_KEYPTR(hh, stacks->texts, kept->text, len, kept);
	}
	*text = kept->text;
	return true;
}

/*
 * Texts are kept once, but a file has those of each frame, and so has who reads it: that they pack
 * to nothing there makes them no smaller for him. He has 128 MiB for frames of 256 bytes each with
 * their texts (objects_stacks.c), and here are as many, and an eighth for small parts (budget.h).
 */
#define FRAME_BYTES 320
#define STACK_BYTES 288 /* of a stack, besides 8 a frame: 256 there */

_Static_assert(sizeof(struct kept_frame) < FRAME_BYTES && sizeof(struct kept_stack) < STACK_BYTES,
               "what is taken here is no less");

static size_t frame_bytes(const struct frame_key *key)
{
	const char *const texts[] = { key->function, key->module, key->file, key->build_id };
	size_t bytes = 0;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		bytes += texts[i] ? strnlen(texts[i], FORMAT_FRAME_TEXT_MAX) : 0;
	return FRAME_BYTES + bytes + bytes / 8;
}

const struct stack_frame *stacks_frame(struct stacks *stacks, const struct stack_frame *frame)
{
	struct frame_key key = { frame->function,   frame->module, frame->file,
		                 frame->build_id,   frame->offset, frame->line,
		                 frame->first_line, frame->kind,   frame->inlined };
	struct kept_frame *kept;

	if (!keep_text(stacks, &key.function) || !keep_text(stacks, &key.module) ||
	    !keep_text(stacks, &key.file) || !keep_text(stacks, &key.build_id))
		return NULL;
	kept = MAP_FIND(stacks->frames, &key);
	if (kept)
		return &kept->frame;
	if (!has_room(stacks, frame_bytes(&key)))
		return NULL;
	kept = xcalloc(1, sizeof(*kept));
	kept->key = key;
	kept->frame = *frame;
	kept->frame.parts = NULL;
	kept->frame.n_parts = 0;
	kept->frame.function = key.function;
	kept->frame.module = key.module;
	kept->frame.file = key.file;
	kept->frame.build_id = key.build_id;
	kept->frame.id = HASH_COUNT(stacks->frames);
	HASH_ADD(hh, stacks->frames, key, sizeof(kept->key), kept);
	return &kept->frame;
}

bool stacks_set_parts(struct stacks *stacks, const struct stack_frame *frame,
                      const struct stack_frame *const *parts, size_t n)
{
	/* Who has made it may change it. */
	struct stack_frame *ours = (struct stack_frame *)frame;
	const struct stack_frame **copy;

	if (ours->n_parts || !n)
		return true;
	if (!has_room(stacks, n * sizeof(*copy)))
		return false;
	copy = xmalloc(n * sizeof(*copy));
	memcpy(copy, parts, n * sizeof(*copy));
	ours->parts = copy;
	ours->n_parts = n;
	return true;
}

static size_t list_words(struct stacks *stacks, const struct stack *stack)
{
	size_t n = stack->n_frames + 1;

	if (n > stacks->room) {
		stacks->room = 2 * n;
		stacks->words = xrealloc(stacks->words, stacks->room * sizeof(*stacks->words));
	}
	for (size_t i = 0; i < stack->n_frames; i++)
		stacks->words[i] = (uintptr_t)stack->frames[i];
	stacks->words[n - 1] = (uintptr_t)stack->end << 1 | stack->python_cut;
	return n;
}

const struct stack *stacks_stack(struct stacks *stacks, const struct stack *stack)
{
	size_t n = list_words(stacks, stack), bytes = n * sizeof(*stacks->words);
	struct kept_stack *kept = MAP_FIND_BYTES(stacks->all, stacks->words, bytes);

	if (kept)
		return &kept->stack;
	if (!has_room(stacks, STACK_BYTES + bytes))
		return NULL;
	kept = xcalloc(1, sizeof(*kept) + bytes);
	memcpy(kept->words, stacks->words, bytes);
	kept->n_words = n;
	kept->stack = *stack;
	kept->stack.id = HASH_COUNT(stacks->all);
	kept->stack.frames = (const struct stack_frame *const *)kept->words;
	HASH_ADD_KEYPTR(hh, stacks->all, kept->words, bytes, kept);
	return &kept->stack;
}

/* Of one that is in others. */
#define KEPT_OF(type, member, at) ((struct type *)((char *)(at)-offsetof(struct type, member)))

static const struct stack_frame *move_frame(struct stacks *stacks, const struct stack_frame *frame)
{
	struct kept_frame *kept = KEPT_OF(kept_frame, frame, frame);

	if (!kept->moved)
		kept->moved = stacks_frame(stacks, frame);
	return kept->moved;
}

const struct stack *stacks_move(struct stacks *stacks, const struct stack *stack)
{
	struct kept_stack *kept = KEPT_OF(kept_stack, stack, stack);
	const struct stack_frame **frames;
	struct stack moved = *stack;

	if (kept->moved)
		return kept->moved;
	frames = xmalloc(stack->n_frames * sizeof(*frames));
	moved.frames = frames;
	for (size_t i = 0; i < stack->n_frames && moved.n_frames; i++) {
		frames[i] = move_frame(stacks, stack->frames[i]);
		moved.n_frames = frames[i] ? stack->n_frames : 0;
	}
	if (moved.n_frames)
		kept->moved = stacks_stack(stacks, &moved);
	free(frames);
	return kept->moved;
}

bool stacks_are_worn(const struct stacks *stacks)
{
	return budget_is_worn(stacks->budget);
}

void stacks_as_new(struct stacks *stacks)
{
	budget_as_new(stacks->budget);
}

size_t stacks_count(const struct stacks *stacks)
{
	return HASH_COUNT(stacks->all);
}

uint64_t stacks_refused(const struct stacks *stacks)
{
	return budget_refused(stacks->budget);
}

/* ---- stack --------------------------------------------------------------------------------- */

const char *stack_end_text(enum stack_end end)
{
	static const char *const texts[STACK_END_COUNT] = {
		[STACK_WHOLE] = "",
		[STACK_TOO_DEEP] = "deeper than is kept",
		[STACK_NO_MAPPING] = "code that no file is known for",
		[STACK_NO_TABLE] = "a file without unwind tables",
		[STACK_NO_RULE] = "a place without an unwind rule",
		[STACK_UNREADABLE] = "stack memory that could not be read",
		[STACK_BAD] = "a frame that led nowhere",
		[STACK_BY_POINTERS] = "frame pointers where code has no unwind tables",
	};

	return end < STACK_END_COUNT ? texts[end] : "";
}

const char *blocked_name(enum blocked blocked)
{
	static const char *const names[BLOCKED_COUNT] = {
		[BLOCKED_UNKNOWN] = "unknown",     [BLOCKED_WOKEN] = "woken",
		[BLOCKED_INTERRUPT] = "interrupt", [BLOCKED_STILL] = "still",
		[BLOCKED_BEFORE] = "before",       [BLOCKED_BRIEF] = "brief",
		[BLOCKED_SKIPPED] = "skipped",     [BLOCKED_PREEMPTED] = "preempted",
	};

	return blocked < BLOCKED_COUNT ? names[blocked] : "";
}

const char *wait_kind_name(enum wait_kind wait)
{
	static const char *const names[WAIT_COUNT] = {
		[WAIT_CPU] = "cpu",       [WAIT_DISK] = "disk",   [WAIT_NETWORK] = "network",
		[WAIT_PIPE] = "pipe",     [WAIT_LOCK] = "lock",   [WAIT_SLEEP] = "sleep",
		[WAIT_FAULT] = "fault",   [WAIT_SWAP] = "swap",   [WAIT_DEVICE] = "device",
		[WAIT_EVENTS] = "events", [WAIT_CHILD] = "child", [WAIT_STOP] = "stop",
		[WAIT_CALL] = "call",
	};

	return wait < WAIT_COUNT ? names[wait] : NULL;
}
