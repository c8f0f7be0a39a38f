// SPDX-License-Identifier: MIT
#include "agent/lib/probe_capture.h"

#include <stddef.h>
#include <string.h>

#ifdef __x86_64__ /* as thunks.S */

#define NAMED 4096 /* kernels of the process whose names were told; a power of two */

static uint64_t lost[AGENT_PROBE_LOSTS];
static uint64_t lost_before[AGENT_PROBE_LOSTS]; /* in former sessions */
static uint64_t kernels_generation = 1;
static uint64_t named[NAMED]; /* handles, mixed with the generation */

void capture_lost(uint32_t reason)
{
	__atomic_fetch_add(&lost[reason], 1, __ATOMIC_RELAXED);
}

void capture_begin(void)
{
	/* what was told of kernels a former session knows, and this one does not */
	__atomic_fetch_add(&kernels_generation, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < AGENT_PROBE_LOSTS; i++)
		lost_before[i] = __atomic_load_n(&lost[i], __ATOMIC_RELAXED);
}

void capture_tell_lost(struct agent_shared *shared)
{
	for (int i = 0; i < AGENT_PROBE_LOSTS; i++)
		__atomic_store_n(&shared->probe_lost[i],
		                 __atomic_load_n(&lost[i], __ATOMIC_RELAXED) - lost_before[i],
		                 __ATOMIC_RELAXED);
}

void capture_forked(void)
{
	memset(lost, 0, sizeof(lost));
	memset(lost_before, 0, sizeof(lost_before));
}

/* ---- records ------------------------------------------------------------------------------- */

static bool put(struct ring *ring, struct probe_thread *thread, const struct agent_head *record)
{
	uint32_t bytes = record->bytes;
	char *room = ring_room(ring, bytes, &thread->claim);

	if (!room)
		return false;
	ring_fill(room, record);
	ring_written(room, bytes, &thread->claim);
	return true;
}

void capture_close_room(struct ring *ring, struct probe_thread *thread)
{
	if (ring_settle(ring, &thread->claim))
		capture_lost(AGENT_PROBE_RING);
}

void capture_tell(struct ring *ring, struct probe_thread *thread, struct probe_call *call)
{
	struct agent_probed *record = &call->record;

	if (record->head.type == AGENT_PROBED && record->head.flags & WIRE_UNREADABLE)
		capture_lost(AGENT_PROBE_UNREADABLE);
	if (!put(ring, thread, &record->head))
		capture_lost(AGENT_PROBE_RING);
}

/* ---- texts --------------------------------------------------------------------------------- */

/* Whether it is told: by its address alone where it cannot be read, for cuscope to try. */
static bool tell_text(struct ring *ring, struct probe_thread *thread, struct probe_call *call,
                      uint64_t key, uint32_t source, uint64_t from)
{
	struct agent_probe_name *name = &thread->text.name;
	size_t bytes;
	bool cut;

	if (!from)
		return false;
	bytes = peek_text(name->text, from, WIRE_STRING_MAX, &cut);
	if (!bytes && source == NAME_OF_HANDLE)
		return false;
	if (!bytes)
		name->text[0] = '\0';
	/* what is told of a call before it begins has a time as well */
	if (!call->record.begin)
		call->record.begin = probe_thread_now(thread, ring->shared->probe_clock);
	*name = (struct agent_probe_name){
		.head = { .type = AGENT_PROBE_NAME,
		          .flags = cut ? WIRE_TRUNCATED : 0,
		          .lane = call->record.head.lane },
		.begin = call->record.begin,
		.key = key,
		.from = from,
		.tid = call->record.tid,
		.source = source,
	};
	bytes += offsetof(struct agent_probe_name, text) + !bytes;
	name->head.bytes = ring_rounded(bytes);
	memset(thread->text.bytes + bytes, 0, name->head.bytes - bytes);
	if (put(ring, thread, &name->head)) {
		if (cut)
			capture_lost(AGENT_PROBE_TEXT);
		return true;
	}
	capture_lost(AGENT_PROBE_TEXT);
	return false;
}

/* The first launch of a kernel tells the name that its handle leads to. */
static bool tell_kernel(struct ring *ring, struct probe_thread *thread, struct probe_call *call,
                        uint64_t handle, uint64_t generation)
{
	uint64_t at = __atomic_load_n(&ring->shared->name_offset, __ATOMIC_RELAXED), name;
	uint64_t key = handle ^ generation << 48;
	uint64_t *slot = &named[((handle >> 4) ^ (handle >> 14)) & (NAMED - 1)];

	if (__atomic_load_n(slot, __ATOMIC_RELAXED) == key)
		return true;
	if (!at || at == WIRE_NO_OFFSET ||
	    !peek_read(&thread->peek, UINT64_MAX, &name, handle + at, sizeof(name)) ||
	    !tell_text(ring, thread, call, handle, NAME_OF_HANDLE, name))
		return false;
	__atomic_store_n(slot, key, __ATOMIC_RELAXED);
	return true;
}

/* As kernel_seen of bpf/names.h. */
static void kernel_seen(struct ring *ring, struct probe_thread *thread, struct probe_call *call,
                        uint64_t handle)
{
	uint64_t now = __atomic_load_n(&kernels_generation, __ATOMIC_RELAXED);
	uint64_t *slot = &thread->recent[((handle >> 4) ^ (handle >> 8) ^ (handle >> 12)) &
	                                 (WIRE_RECENT - 1)];

	if (thread->recent_generation != now) {
		memset(thread->recent, 0, sizeof(thread->recent));
		thread->recent_generation = now;
	}
	if (*slot == handle)
		return;
	if (tell_kernel(ring, thread, call, handle, now))
		*slot = handle;
}

void capture_forget_kernels(uint64_t cookie)
{
	if (cookie_forgets_kernels(cookie))
		__atomic_fetch_add(&kernels_generation, 1, __ATOMIC_RELAXED);
}

/* ---- words --------------------------------------------------------------------------------- */

static uint64_t register_of(const struct probe_call *call, uint32_t index)
{
	return index < WIRE_REGS ? call->word[WIRE_AT_REG + index] : 0;
}

static void blob(struct probe_thread *thread, struct probe_call *call, uint64_t sp)
{
	if (!peek_read(&thread->peek, sp, &call->word[WIRE_AT_BLOB],
	               register_of(call, cookie_blob(call->cookie)),
	               cookie_blob_words(call->cookie) * sizeof(*call->word)))
		call->record.head.flags |= WIRE_UNREADABLE;
}

static void output(struct probe_thread *thread, struct probe_call *call, uint64_t sp, uint32_t at,
                   uint32_t index, bool wide)
{
	uint64_t from = register_of(call, index);

	if (from && !peek_written(&thread->peek, sp, &call->word[at], from, wide ? 8 : 4))
		call->record.head.flags |= WIRE_UNREADABLE;
}

static void entry_texts(struct ring *ring, struct probe_thread *thread, struct probe_call *call)
{
	uint32_t string = cookie_string(call->cookie), key = cookie_name_key(call->cookie);

	if (cookie_kernel(call->cookie) != COOKIE_NONE)
		kernel_seen(ring, thread, call, register_of(call, cookie_kernel(call->cookie)));
	if (string == COOKIE_NONE)
		return;
	if (key != COOKIE_NONE)
		tell_text(ring, thread, call, register_of(call, key), NAME_OF_CALL,
		          register_of(call, string));
	else if (cookie_out0(call->cookie) == COOKIE_NONE)
		tell_text(ring, thread, call, 0, NAME_OF_ARGUMENT, register_of(call, string));
}

uint32_t capture_stack_words(struct probe_thread *thread, uint32_t words,
                             const struct thunk_frame *frame)
{
	const uint32_t most = THUNK_STACK_MOST;
	uint64_t sp = (uint64_t)&frame->back, stack = (uint64_t)frame->stack;

	if (words != AGENT_STACK_WORDS_UNKNOWN)
		return words;
	if (peek_is_stack(&thread->peek, sp, stack, most * sizeof(uint64_t)))
		return most;
	/* the end of the stack may be nearer than that */
	if (thread->peek.top > stack && thread->peek.top - stack < most * sizeof(uint64_t) &&
	    peek_is_stack(&thread->peek, sp, stack, thread->peek.top - stack))
		return (uint32_t)((thread->peek.top - stack) / sizeof(uint64_t));
	return UINT32_MAX;
}

void capture_entry(struct ring *ring, struct probe_thread *thread, struct probe_call *call,
                   const struct thunk_frame *frame)
{
	uint64_t cookie = call->cookie, sp = (uint64_t)&frame->back;
	uint32_t stack = cookie_stack(cookie), words = cookie_words(cookie);

	if (words > WIRE_WORDS)
		words = WIRE_WORDS;
	call->record.head.bytes = (uint32_t)(sizeof(call->record) + words * sizeof(*call->word));
	memset(call->word, 0, words * sizeof(*call->word));
	memcpy(&call->word[WIRE_AT_REG], frame->general, WIRE_REGS * sizeof(*call->word));
	if (stack > WIRE_STACK)
		stack = WIRE_STACK;
	if (stack && !peek_read(&thread->peek, sp, &call->word[WIRE_AT_STACK],
	                        (uint64_t)frame->stack, stack * sizeof(*call->word)))
		call->record.head.flags |= WIRE_UNREADABLE;
	if (cookie_blob(cookie) != COOKIE_NONE && !cookie_blob_on_return(cookie))
		blob(thread, call, sp);
	entry_texts(ring, thread, call);
}

/* Of a call that succeeded. */
void capture_return(struct ring *ring, struct probe_thread *thread, struct probe_call *call,
                    uint64_t sp)
{
	uint64_t cookie = call->cookie;

	if (cookie_out0(cookie) != COOKIE_NONE)
		output(thread, call, sp, 0, cookie_out0(cookie), cookie_out0_wide(cookie));
	if (cookie_out1(cookie) != COOKIE_NONE)
		output(thread, call, sp, 1, cookie_out1(cookie), cookie_out1_wide(cookie));
	if (cookie_blob(cookie) != COOKIE_NONE && cookie_blob_on_return(cookie))
		blob(thread, call, sp);
	if (cookie_string(cookie) != COOKIE_NONE && cookie_name_key(cookie) == COOKIE_NONE &&
	    cookie_out0(cookie) != COOKIE_NONE && call->word[0])
		tell_text(ring, thread, call, call->word[0], NAME_OF_CALL,
		          register_of(call, cookie_string(cookie)));
}

#endif
