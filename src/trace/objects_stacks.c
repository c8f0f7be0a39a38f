// SPDX-License-Identifier: MIT
/*
 * Stacks and their frames as a file defines them. What a frame is in its source comes at the end of
 * a file (its parts, stack.h). Where frames were read ahead, stacks have the parts in their place.
 */
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "trace/format.h"
#include "trace/objects_inside.h"

#define FRAME_BYTES 256
#define STACK_BYTES 256

/* Frames of a stack in place of those that it was written with: most of them stay whole then. */
#define PARTED_MAX (STACK_PARTED_DEPTH + FORMAT_FRAMES_MAX)

static void frame_free(struct stack_frame *frame)
{
	if (!frame)
		return;
	free((char *)frame->function);
	free((char *)frame->module);
	free((char *)frame->file);
	free((char *)frame->build_id);
	free((void *)frame->parts);
	free(frame);
}

void objects_free_stacks(struct objects *objects)
{
	for (uint32_t i = 0; i < objects->n_frames; i++)
		frame_free(objects->frames[i]);
	for (uint32_t i = 0; i < objects->n_stacks; i++)
		free(objects->stacks[i]);
	free(objects->frames);
	free(objects->stacks);
}

/* ---- frames -------------------------------------------------------------------------------- */

static void pass_text(struct bytes *body)
{
	uint64_t len = bytes_varint(body);

	body->bad |= len > FORMAT_TEXT_MAX;
	bytes_take(body, len);
}

/* One that is known: whether it is damaged is found as when it was read. */
static bool pass_frame(struct objects *objects, struct bytes *body, uint64_t id)
{
	uint64_t texts;

	if (!objects_is_next(objects, OBJECT_FRAME, objects->n_passed, id))
		return false;
	objects->holes[OBJECT_FRAME] += id - objects->n_passed;
	objects->n_passed = (uint32_t)id + 1;
	for (size_t i = 0; i < 5; i++) /* from its kind to its offset */
		bytes_varint(body);
	texts = bytes_varint(body);
	for (uint64_t has = FRAME_HAS_FUNCTION; has <= FRAME_HAS_BUILD_ID; has <<= 1) {
		if (texts & has)
			pass_text(body);
	}
	return !body->bad;
}

bool objects_read_frame(struct objects *objects, struct bytes *body)
{
	uint64_t id = bytes_varint(body), kind, texts;
	struct stack_frame *frame;

	if (objects->frames_known)
		return pass_frame(objects, body, id);
	if (!objects_is_next(objects, OBJECT_FRAME, objects->n_frames, id))
		return false;
	if (!objects_afford_next(objects, OBJECT_FRAME, objects->n_frames, id, FRAME_BYTES, body))
		return true;
	objects->frames = objects_make_room(objects->frames, &objects->n_frames, id);
	objects->frames[id] = frame = xcalloc(1, sizeof(*frame));
	frame->id = objects_id(objects, OBJECT_FRAME, id);
	kind = bytes_varint(body);
	frame->kind = kind < FRAME_COUNT ? (enum frame_kind)kind : FRAME_NATIVE;
	frame->inlined = bytes_varint(body) & FRAME_INLINED;
	frame->line = (uint32_t)bytes_varint(body);
	frame->first_line = (uint32_t)bytes_varint(body);
	frame->offset = bytes_varint(body);
	texts = bytes_varint(body);
	frame->function = texts & FRAME_HAS_FUNCTION ? record_name(body) : NULL;
	frame->module = texts & FRAME_HAS_MODULE ? record_name(body) : NULL;
	frame->file = texts & FRAME_HAS_FILE ? record_name(body) : NULL;
	frame->build_id = texts & FRAME_HAS_BUILD_ID ? record_name(body) : NULL;
	return !body->bad;
}

/* Of a frame that was defined before. Where it, or one of them, was lost, it stays as it is. */
bool objects_read_parts(struct objects *objects, struct bytes *body)
{
	const struct stack_frame *parts[FORMAT_PARTS_MAX], **copy;
	uint64_t id = bytes_varint(body), n = bytes_varint(body), part;
	struct stack_frame *frame = id < objects->n_frames ? objects->frames[id] : NULL;
	bool whole = frame != NULL;

	if (!n || n > FORMAT_PARTS_MAX || (!frame && !objects_lost(objects, OBJECT_FRAME, id)))
		return false;
	for (size_t i = 0; i < n; i++) {
		part = bytes_varint(body);
		parts[i] = part < objects->n_frames ? objects->frames[part] : NULL;
		if (!parts[i] && !objects_lost(objects, OBJECT_FRAME, part))
			return false;
		whole &= parts[i] != NULL;
	}
	if (body->bad)
		return false;
	if (!whole || frame->n_parts || objects->frames_known ||
	    !objects_afford(objects, n * sizeof(*copy), body))
		return true;
	copy = xmalloc(n * sizeof(*copy));
	memcpy(copy, parts, n * sizeof(*copy));
	frame->parts = copy;
	frame->n_parts = n;
	return true;
}

/* ---- stacks -------------------------------------------------------------------------------- */

/* False where one is not there. One that was lost, and a stack with it, is told by *lost. */
static bool read_frames(const struct objects *objects, struct bytes *body, size_t n,
                        const struct stack_frame **frames, bool *lost)
{
	uint64_t id = 0;

	*lost = false;
	for (size_t i = 0; i < n; i++) {
		id += unfold(bytes_varint(body));
		frames[i] = id < objects->n_frames ? objects->frames[id] : NULL;
		if (!frames[i] && !objects_lost(objects, OBJECT_FRAME, id))
			return false;
		*lost |= !frames[i];
	}
	return !body->bad;
}

/*
 * Puts parts in the place of their frames, from the outside on as a profile does it. They are the
 * last ones of `parted`; returns how many.
 */
static size_t with_parts(const struct stack_frame *const *frames, size_t n,
                         const struct stack_frame *parted[PARTED_MAX])
{
	size_t count = 0;

	for (size_t i = n; i-- > 0;) {
		const struct stack_frame *frame = frames[i];

		if (!frame->n_parts || count + frame->n_parts > STACK_PARTED_DEPTH) {
			parted[PARTED_MAX - ++count] = frame;
			continue;
		}
		for (size_t part = frame->n_parts; part-- > 0;)
			parted[PARTED_MAX - ++count] = frame->parts[part];
	}
	return count;
}

bool objects_read_stack(struct objects *objects, struct bytes *body)
{
	const struct stack_frame *frames[FORMAT_FRAMES_MAX], *parted[PARTED_MAX];
	uint64_t id = bytes_varint(body), end = bytes_varint(body), flags = bytes_varint(body);
	uint64_t n = bytes_varint(body);
	struct stack *stack;
	bool lost;

	if (!objects_is_next(objects, OBJECT_STACK, objects->n_stacks, id) || !n ||
	    n > FORMAT_FRAMES_MAX || !read_frames(objects, body, n, frames, &lost))
		return false;
	n = lost ? 0 : with_parts(frames, n, parted);
	if (!objects_afford_next(objects, OBJECT_STACK, objects->n_stacks, id,
	                         STACK_BYTES + n * sizeof(*parted), body))
		return true;
	objects->stacks = objects_make_room(objects->stacks, &objects->n_stacks, id);
	if (lost)
		return true;
	objects->stacks[id] = stack = xcalloc(1, sizeof(*stack) + n * sizeof(*parted));
	memcpy(stack + 1, &parted[PARTED_MAX - n], n * sizeof(*parted));
	stack->id = objects_id(objects, OBJECT_STACK, id);
	stack->end = end < STACK_END_COUNT ? (enum stack_end)end : STACK_BAD;
	stack->python_cut = flags & STACK_PYTHON_CUT;
	stack->n_frames = n;
	stack->frames = (const struct stack_frame *const *)(stack + 1);
	return true;
}
