// SPDX-License-Identifier: MIT
#include "agent/lib/probe_capture.h"

#include <stddef.h>
#include <string.h>

/* ---- probe calls --------------------------------------------------------------------------- */

#ifdef __x86_64__

static struct thunk_frame *frame_at(uint64_t sp)
{
	return (struct thunk_frame *)(sp - offsetof(struct thunk_frame, back));
}

/*
 * Whether a call's frame is as it was. Of a call that was left, other functions have used the place
 * on the stack as a rule, and written over one of the words that are compared.
 */
static bool is_whole(struct probe_thread *thread, const struct probe_call *call, uint64_t sp)
{
	const struct thunk_frame *at = frame_at(call->sp);
	struct {
		uint64_t slot;
		const void *original;
		uint64_t words;
		const void *state;
		uint64_t mark, session, frame_pointer, back;
	} is;

	_Static_assert(sizeof(is) == sizeof(*at) - FRAME_SLOT, "the end of a thunk's frame");
	return peek_read(&thread->peek, sp, &is, (uint64_t)&at->slot, sizeof(is)) &&
	       is.mark == call->mark && is.state == thread && is.session == thread->session &&
	       is.slot == call->slot && is.back == call->back;
}

/* ---- stacks -------------------------------------------------------------------------------- */

/* The call lies below `sp`. The hole above its stack stays above it, whatever is mapped there. */
static bool is_of_lower_stack(struct probe_call *call, uint64_t sp)
{
	if (!call->hole)
		call->hole = peek_hole(call->sp, sp);
	return call->hole && sp >= call->hole;
}

/* The call lies above `sp`; *hole is the one above `sp`, looked for once. Most are near, on pages
 * that were seen. */
static bool is_of_higher_stack(struct probe_thread *thread, const struct probe_call *call,
                               uint64_t sp, uint64_t *hole)
{
	const struct thunk_frame *at = frame_at(call->sp);

	if (peek_is_stack(&thread->peek, sp, (uint64_t)&at->slot, sizeof(*at) - FRAME_SLOT))
		return false;
	if (!*hole)
		*hole = peek_hole(sp, call->sp);
	return *hole && call->sp >= *hole;
}

static bool is_of_other_stack(struct probe_thread *thread, struct probe_call *call, uint64_t sp,
                              uint64_t *hole)
{
	return call->sp < sp ? is_of_lower_stack(call, sp)
	                     : call->sp > sp && is_of_higher_stack(thread, call, sp, hole);
}

/* ---- calls --------------------------------------------------------------------------------- */

void probe_calls_over(struct probe_thread *thread, struct probe_call *call)
{
	size_t after = (size_t)(&thread->call[--thread->depth] - call);

	if (call->sp == thread->launching)
		__atomic_store_n(&thread->launching, 0, __ATOMIC_RELAXED);
	memmove(call, call + 1, after * sizeof(*call));
}

static void calls_abandon(struct probe_session *session, struct probe_thread *thread,
                          struct probe_call *call)
{
	call->record.head.flags |= WIRE_UNFINISHED;
	call->record.end = probe_thread_now(thread, session->clock);
	if (!call->untold)
		capture_tell(&session->ring, thread, call);
	probe_calls_over(thread, call);
}

struct probe_call *probe_calls_around(struct probe_session *session, struct probe_thread *thread,
                                      uint64_t sp)
{
	uint64_t hole = 0;

	for (uint32_t i = thread->depth; i-- > 0;) {
		struct probe_call *call = &thread->call[i];

		if (is_of_other_stack(thread, call, sp, &hole))
			continue;
		if (call->sp > sp && is_whole(thread, call, sp))
			return call;
		calls_abandon(session, thread, call);
	}
	return NULL;
}

/* Rather one that will not return, since its stack was used by others; else the oldest. */
struct probe_call *probe_calls_room(struct probe_session *session, struct probe_thread *thread,
                                    uint64_t sp, struct probe_call **around)
{
	struct probe_call *goes = NULL;
	uint64_t hole = 0;

	for (uint32_t i = 0; thread->depth == AGENT_PROBE_DEPTH_MAX && i < thread->depth; i++) {
		struct probe_call *call = &thread->call[i];

		if (!is_of_other_stack(thread, call, sp, &hole))
			continue;
		if (!goes)
			goes = call;
		if (!is_whole(thread, call, sp)) {
			goes = call;
			break;
		}
	}
	if (goes) {
		if (*around > goes)
			--*around;
		calls_abandon(session, thread, goes);
	}
	return thread->depth < AGENT_PROBE_DEPTH_MAX ? &thread->call[thread->depth] : NULL;
}

struct probe_call *probe_calls_return(struct probe_session *session, struct probe_thread *thread,
                                      const struct thunk_frame *frame)
{
	uint64_t sp = (uint64_t)&frame->back;

	for (uint32_t i = thread->depth; i-- > 0;) {
		struct probe_call *call = &thread->call[i];

		if (call->sp == sp && call->mark == frame->mark)
			return call;
		if (call->sp <= sp && !is_of_lower_stack(call, sp))
			calls_abandon(session, thread, call);
	}
	return NULL;
}

void probe_calls_tell_open(struct probe_session *session, struct probe_thread *thread)
{
	capture_close_room(&session->ring, thread);
	while (thread->depth) {
		capture_correlate(thread, &thread->call[thread->depth - 1]);
		calls_abandon(session, thread, &thread->call[thread->depth - 1]);
	}
}

#endif

/* ---- probe capture ------------------------------------------------------------------------- */

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

/* ---- launches of which CUPTI tells as well ------------------------------------------------- */

static uint32_t round_now;

void correlations_begin(void)
{
	__atomic_fetch_add(&round_now, 1, __ATOMIC_RELAXED);
}

/* A launch of the runtime that is looked at for failing is the driver's to tell. */
void capture_launch_begins(struct probe_thread *thread, const struct probe_call *call)
{
	if (cookie_kernel(call->cookie) == COOKIE_NONE || cookie_runtime_launch(call->cookie) ||
	    thread->launching > call->sp)
		return;
	__atomic_store_n(&thread->correlation, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&thread->launching, call->sp, __ATOMIC_RELAXED);
}

static bool is_of_round(const struct probe_thread *thread)
{
	return __atomic_load_n(&thread->round, __ATOMIC_RELAXED) ==
	       __atomic_load_n(&round_now, __ATOMIC_RELAXED);
}

void capture_correlate(const struct probe_thread *thread, struct probe_call *call)
{
	if (call->sp == thread->launching && is_of_round(thread))
		call->record.correlation = __atomic_load_n(&thread->correlation, __ATOMIC_RELAXED);
}

/*
 * The thread is not taken, since a callback comes with each launch. It may be stopped meanwhile,
 * and the launch told without the number: at the end of a session, of which the kernel is not told
 * of, either. What a longjmp has left is launching, too, and told without its number.
 */
bool correlation_tell(uint32_t correlation)
{
	struct probe_thread *thread = probe_thread_own();
	uint32_t was;

	if (!thread || !correlation ||
	    __atomic_load_n(&thread->launching, __ATOMIC_RELAXED) <= (uint64_t)&was)
		return false;
	was = __atomic_load_n(&thread->correlation, __ATOMIC_RELAXED);
	if (was && was != correlation)
		return false;
	__atomic_store_n(&thread->round, __atomic_load_n(&round_now, __ATOMIC_RELAXED),
	                 __ATOMIC_RELAXED);
	__atomic_store_n(&thread->correlation, correlation, __ATOMIC_RELAXED);
	return true;
}

bool correlation_is_told(uint32_t correlation)
{
	const struct probe_thread *thread = probe_thread_own();

	return thread && correlation &&
	       __atomic_load_n(&thread->correlation, __ATOMIC_RELAXED) == correlation &&
	       is_of_round(thread);
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
	/* in parts whose lengths are known here, for which no loop is made */
	memset(call->word, 0, WIRE_AT_REG * sizeof(*call->word));
	memset(&call->word[WIRE_AT_STACK], 0, WIRE_STACK * sizeof(*call->word));
	if (words > WIRE_AT_BLOB)
		memset(&call->word[WIRE_AT_BLOB], 0, WIRE_BLOB * sizeof(*call->word));
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

#else

bool correlation_tell(uint32_t correlation)
{
	return false;
}

bool correlation_is_told(uint32_t correlation)
{
	return false;
}

void correlations_begin(void)
{
}

#endif
