/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/* Which threads are traced, and the stack of calls that each of them is in. */
#pragma once

#include "bpf/fold_maps.h"
#include "bpf/users.h"
#ifdef STACKS
#include "bpf/blocked_sums.h"
#endif

static __always_inline void emit_process(__u8 type, __u64 id, __u32 other, __u64 born_ns,
                                         enum urgency urgency)
{
	struct wire_process record = {};

	head_fill(&record.head, type, id, bpf_ktime_get_ns());
	record.other = other;
	record.born_ns = born_ns;
	bpf_get_current_comm(record.comm, sizeof(record.comm));
	emit(&record, sizeof(record), urgency);
}

static __always_inline void emit_exec(__u64 id, __u32 old_tid, int named, enum urgency urgency)
{
	struct wire_process record = { .other = old_tid, .named = named };

	head_fill(&record.head, WIRE_EXEC, id, bpf_ktime_get_ns());
	bpf_get_current_comm(record.comm, sizeof(record.comm));
	emit(&record, sizeof(record), urgency);
}

static __always_inline int target_matches(__u32 tgid)
{
	if (bpf_map_lookup_elem(&targets, &tgid))
		return 1;
	if (tgid == settings.self_tgid)
		return 0;
	if (settings.all)
		return 1;
	return settings.cgroup && bpf_current_task_under_cgroup(&cgroups, 0) == 1;
}

static __always_inline void process_first_seen(__u32 tgid)
{
	struct fold_born born = { .born_ns = bpf_ktime_get_ns(), .user = user_current() };

	if (user_may_have_more(&state.born, born.user, FOLD_BORN_ROOM) &&
	    !bpf_map_update_elem(&fold_born, &tgid, &born, BPF_NOEXIST))
		user_rows_change(&state.born, born.user, 1);
}

/* When the current process was first seen: see wire_fold.h. */
static __always_inline __u64 process_born(__u32 tgid)
{
	struct fold_born *born;

	if (!FOLDING)
		return 0;
	born = bpf_map_lookup_elem(&fold_born, &tgid);
	if (born)
		return born->born_ns;
	process_first_seen(tgid);
	born = bpf_map_lookup_elem(&fold_born, &tgid); /* another thread's, if it was first */
	if (!born)
		count_lost(LOST_THREADS_FULL);
	return born ? born->born_ns : 0;
}

/*
 * Where all processes of a machine are targets and calls are summed up, user space is told of those
 * alone that have a CUDA library: a build starts hundreds of others in a second. Such a process is
 * known by the time that it was first seen at.
 */
static __always_inline int process_is_told_of(__u32 tgid)
{
	return !settings.cuda_only || (FOLDING && bpf_map_lookup_elem(&fold_born, &tgid));
}

static __always_inline void process_uses_cuda(__u32 tgid)
{
	if (settings.cuda_only)
		process_born(tgid);
}

static __always_inline void process_over(__u32 tgid)
{
	const struct fold_born *born = FOLDING ? bpf_map_lookup_elem(&fold_born, &tgid) : 0;
	__u32 user = born ? born->user : 0;

	if (born && !bpf_map_delete_elem(&fold_born, &tgid))
		user_rows_change(&state.born, user, -1ull);
}

/* Modules of a process of which an agent tells, a bit each; 0: of none, and never did. */
static __always_inline __u64 inside_modules(__u32 tgid)
{
	__u64 *modules = settings.inside ? bpf_map_lookup_elem(&inside, &tgid) : 0;

	return modules ? *modules : 0;
}

/* A free that a thread was in did not free: it failed, or will not return. */
static __always_inline void freed_put_back(struct wire_thread *thread)
{
	struct wire_freed *freed = &thread->freed;
	struct fold_memory_key key = { .address = freed->address,
		                       .born_ns = thread->born_ns,
		                       .tgid = thread->tgid,
		                       .space = freed->space };
	struct fold_allocation a = { .bytes = freed->bytes,
		                     .time_ns = freed->time_ns,
		                     .stack = freed->stack,
		                     .hook = freed->hook,
		                     .user = freed->user,
		                     .memory = freed->memory,
		                     .held = 1 };

	if (!FOLDING || !freed->time_ns)
		return;
	freed->time_ns = 0;
	if (bpf_map_update_elem(&fold_live, &key, &a, BPF_NOEXIST))
		user_rows_add(freed->user, -1ull);
}

/* The state of a thread that was seen before, a target's or not; NULL for others. */
static __always_inline struct wire_thread *thread_seen(__u64 id)
{
	__u32 tid = id;
	struct wire_thread *thread = bpf_map_lookup_elem(&threads, &tid);

	return thread && thread->tgid == id >> 32 ? thread : 0;
}

/* Of a target's. */
static __always_inline struct wire_thread *thread_known(__u64 id)
{
	struct wire_thread *thread = thread_seen(id);

	return thread && !thread->of_waker ? thread : 0;
}

/*
 * A process that targets wait for, and that is none: of it samples and blocked time are told, and
 * nothing else (capture/stacks/wakers.h).
 */
static __always_inline int process_is_waker(__u32 tgid)
{
#ifdef STACKS
	return state.wakers && bpf_map_lookup_elem(&wakers, &tgid);
#else
	return 0;
#endif
}

/* What it becomes by an exec is another program, which nobody has waited for. */
static __always_inline int waker_over(__u32 tgid)
{
#ifdef STACKS
	return state.wakers && !bpf_map_delete_elem(&wakers, &tgid);
#else
	return 0;
#endif
}

/* Whether samples and blocked time of a thread that was seen are told. */
static __always_inline int thread_is_sampled(const struct wire_thread *thread)
{
	return !thread->of_waker || process_is_waker(thread->tgid);
}

/* Out of the map; of one that is not in it nothing is counted. */
static __always_inline void thread_drop(__u32 tid)
{
	const struct wire_thread *thread = bpf_map_lookup_elem(&threads, &tid);
	__u32 user = thread ? thread->user : 0;

	if (thread && !bpf_map_delete_elem(&threads, &tid))
		user_threads_add(user, -1ull);
}

/* A new one's, which is not told of yet. NULL where there is no room. */
static __always_inline struct wire_thread *thread_make(__u64 id, __u32 user)
{
	__u32 tid = id, zero = 0;
	struct wire_thread *thread;
	void *blank;

	thread_drop(tid); /* another process's, whose end was missed */
	blank = bpf_map_lookup_elem(&blank_thread, &zero);
	if (!blank || !user_has_room(user) ||
	    bpf_map_update_elem(&threads, &tid, blank, BPF_NOEXIST)) {
		count_lost(LOST_THREADS_FULL);
		return 0;
	}
	user_threads_add(user, 1);
	thread = bpf_map_lookup_elem(&threads, &tid);
	if (!thread)
		return 0;
	thread->tgid = id >> 32;
	thread->user = user;
	return thread;
}

/* The current thread, which is met for the first time. */
static __always_inline struct wire_thread *thread_meet(__u64 id, int of_waker)
{
	struct wire_thread *thread = thread_make(id, user_current());

	if (!thread)
		return 0;
	thread->of_waker = of_waker;
	thread->born_ns = process_born(id >> 32);
	emit_process(WIRE_THREAD, id, 0, thread->born_ns, WAKE_IF_FULL);
	return thread;
}

/* The current thread's state; made at its first hit. NULL when its process is no target. */
static __always_inline struct wire_thread *thread_get(__u64 id)
{
	struct wire_thread *thread = thread_known(id);

	if (thread)
		return thread;
	if (!target_matches(id >> 32)) {
		state.filtered++; /* an estimate: not atomic, this is the path of bystanders */
		return 0;
	}
	return thread_meet(id, 0);
}

/* The same where its process may be a waker as well. */
static __always_inline struct wire_thread *thread_sampled(__u64 id)
{
	struct wire_thread *thread = thread_seen(id);
	int target;

	if (thread && thread_is_sampled(thread))
		return thread;
	target = target_matches(id >> 32);
	if (target || process_is_waker(id >> 32))
		return thread_meet(id, !target);
	state.filtered++;
	return 0;
}

static __always_inline struct wire_frame *frame_at(struct wire_thread *thread, __u32 depth)
{
	return &thread->frame[BOUNDED(depth, WIRE_DEPTH_MAX - 1)];
}

static __always_inline void frame_send(struct wire_frame *frame)
{
	__u64 words = frame->call.head.words;

	if (words > WIRE_WORDS)
		words = WIRE_WORDS;
	/* how full the ring is, is asked by one call in sixteen, chosen by the clock's low bits */
	emit_or_count(&frame->call, WIRE_CALL_BYTES(words),
	              frame->call.head.time_ns & 0x780 ? WAKE_NOBODY : WAKE_IF_FULL,
	              frame->call.head.type == WIRE_BEGIN ? LOST_RECORDS : LOST_RING_FULL);
}

/* Counts a call that is about to be sent without words that it should have. */
static __always_inline void frame_check(const struct wire_frame *frame)
{
	if (frame->call.head.flags & WIRE_UNREADABLE)
		count_lost(LOST_UNREADABLE);
}

/* Sends a call that will not return. One that is to be folded did nothing that counts, but where
 * its begin was told its end is, too. */
static __always_inline void frame_abandon(struct wire_frame *frame, __u64 now)
{
	if (fold_plan_of(frame->call.head.hook) && !(frame->call.head.flags & WIRE_BEGUN))
		return;
	frame->call.head.flags |= WIRE_UNFINISHED;
	frame->call.head.time_ns = now;
	frame_check(frame);
	frame_send(frame);
}

/* Nothing of the driver's was entered in the call of the runtime that the thread made last. */
static __always_inline void runtime_alone(struct wire_thread *thread)
{
	if (thread->runtime_sp)
		__sync_fetch_and_add(&state.alone[thread->runtime_hook & (WIRE_HOOKS_MAX - 1)], 1);
	thread->runtime_sp = 0;
}

/* Forgets a thread; calls that it is in are sent as unfinished. */
static __always_inline void thread_end(__u32 tid, __u32 tgid)
{
	struct wire_thread *thread = bpf_map_lookup_elem(&threads, &tid);
	__u64 now = bpf_ktime_get_ns();

	if (!thread)
		return;
	if (thread->tgid == tgid) {
		for (__u32 i = 0; i < WIRE_DEPTH_MAX; i++) {
			if (i < thread->depth)
				frame_abandon(frame_at(thread, i), now);
		}
		runtime_alone(thread);
		freed_put_back(thread);
#ifdef STACKS
		blocked_tell_sums(&thread->blocking, (__u64)tgid << 32 | tid, now);
#endif
	}
	thread_drop(tid);
}
