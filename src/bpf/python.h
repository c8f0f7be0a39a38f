/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/*
 * The frames of Python of the current thread, by the offsets of its version. They are walked apart
 * from the native ones, and put between them by user space: each invocation of the evaluator has
 * something of Python's in its own C frame, whose address is sent as an anchor.
 */
#pragma once

#include "bpf/stacks.h"

#define TSD_BLOCK             32 /* thread-specific keys in a block of glibc's */
#define TSD_KEYS_MAX          1024
#define OWNER_TAGS            3ull /* low bits of a tagged reference: 3.14 */
#define FIELD(walk, type, at) (*(type *)&(walk)->frame[BOUNDED(at, PYTHON_FRAME_BYTES - 1)])

static __always_inline __u64 thread_pointer(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();

#ifdef __TARGET_ARCH_arm64
	return BPF_CORE_READ(task, thread.uw.tp_value);
#else
	return BPF_CORE_READ(task, thread.fsbase);
#endif
}

/*
 * The state that Python keeps for this thread, by pthread_getspecific: also where the thread has
 * given up the interpreter's lock, as it has in each launch of PyTorch's. 0: it has none.
 */
static __always_inline int python_state(const struct wire_python *python, __u64 *state)
{
	__u32 made_key[2] = {}, key;
	__u64 block = 0;

	*state = 0;
	if (user_read(made_key, sizeof(made_key), python->key_address - 4))
		return -1;
	if (!made_key[0]) /* Python has yet to begin */
		return 0;
	key = made_key[1];
	if (made_key[0] != PYTHON_KEY_MADE || key >= TSD_KEYS_MAX ||
	    user_read(&block, sizeof(block),
	              thread_pointer() + python->specific + 8 * (key / TSD_BLOCK)))
		return -1;
	if (!block) /* a thread that has set no such key */
		return 0;
	return user_read(state, sizeof(*state), block + 16 * (key % TSD_BLOCK) + 8);
}

/* Finds the innermost frame. WALK_OVER where there is none. */
__attribute__((noinline)) int python_begin(__u32 slot)
{
	struct walk *walk = walk_of(slot);
	const struct wire_python *python;
	__u64 state, frame = 0;
	__u32 tgid;

	if (!walk)
		return WALK_OVER;
	tgid = walk->tgid;
	python = bpf_map_lookup_elem(&unwind_python, &tgid);
	if (!python)
		return WALK_OVER;
	if (python_state(python, &state))
		goto cut;
	if (!state)
		return WALK_OVER;
	if (python->state_cframe &&
	    user_read(&walk->python_cframe, 8, state + python->state_cframe))
		goto cut;
	if (python->has_cframe)
		state = walk->python_cframe + python->cframe_frame;
	else
		state += python->state_frame;
	if (user_read(&frame, sizeof(frame), state))
		goto cut;
	walk->python_frame = frame;
	return frame ? WALK_ON : WALK_OVER;
cut:
	walk->out.python_cut = 1;
	return WALK_OVER;
}

static __always_inline int python_cut(struct walk *walk)
{
	walk->out.python_cut = 1;
	return WALK_OVER;
}

/* The invocation of the evaluator that ran the frames so far is at an end: where its own is. */
static __always_inline int python_anchor(struct walk *walk, const struct wire_python *python,
                                         __u64 anchor)
{
	if (python->state_cframe) {
		anchor = walk->python_cframe;
		if (anchor && user_read(&walk->python_cframe, 8, anchor + python->cframe_previous))
			walk->python_cframe = 0;
	}
	return walk_push(walk, ENTRY_ANCHOR, anchor, 0) ? python_cut(walk) : WALK_ON;
}

/* The first line of a code object, to tell it from a later one at the same address. */
static __always_inline __u32 python_line(const struct wire_python *python, __u64 code)
{
	__u32 line = 0;

	user_read(&line, sizeof(line), code + python->code_first_line);
	return line;
}

/* One frame. */
__attribute__((noinline)) int python_step(__u32 slot)
{
	struct walk *walk = walk_of(slot);
	const struct wire_python *python;
	__u64 frame, code, instruction;
	__u32 tgid, line, entry;

	if (!walk)
		return WALK_OVER;
	tgid = walk->tgid;
	frame = walk->python_frame;
	python = bpf_map_lookup_elem(&unwind_python, &tgid);
	if (!python || !frame)
		return WALK_OVER;
	/* not more: the last frame of a chunk may end with its pages */
	if (user_read(walk->frame, BOUNDED(python->frame_bytes, PYTHON_FRAME_BYTES - 1), frame))
		return python_cut(walk);
	walk->python_frame = FIELD(walk, __u64, python->frame_previous);
	if (python->style == PYTHON_OWNER &&
	    FIELD(walk, __u8, python->frame_owner) >= python->owner_entry)
		return python_anchor(walk, python, frame);
	code = FIELD(walk, __u64, python->frame_code) & ~OWNER_TAGS;
	instruction = python->lasti_short ? FIELD(walk, __u32, python->frame_instruction)
	                                  : FIELD(walk, __u64, python->frame_instruction) - code;
	line = python_line(python, code) & 0x3fffffff;
	walk_number(walk, code ^ (instruction & 0xffffffff) << 20 ^ (__u64)line << 40);
	if (walk_push(walk, ENTRY_PYTHON, code,
	              (__u64)line << ENTRY_LINE_AT | (instruction & 0xffffffff)))
		return python_cut(walk);
	entry = python->style == PYTHON_EVERY_FRAME ||
	        (python->style == PYTHON_IS_ENTRY && FIELD(walk, __u8, python->frame_entry));
	return entry ? python_anchor(walk, python, 0) : WALK_ON;
}
