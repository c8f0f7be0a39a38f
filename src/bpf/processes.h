/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/*
 * Birth, exec and death of processes. Raw tracepoints, because their arguments are the
 * tasks themselves: the classic sched_process_fork does not tell a thread from a process.
 */
#pragma once

#include "bpf/files.h"
#include "bpf/hooks.h"

enum seen_event { SEEN_FORK, SEEN_EXEC, SEEN_EXIT };

/*
 * Two programs are called for each fork, exec and end, since the kernel may leave one out: see
 * on_fork. The first leaves a mark for the second. Of a task `nth` tells events of one kind apart,
 * so that a mark that nobody took away means nothing for the next one. (Not by the tid: whoever
 * calls exec takes over the leader's, and when that began.) Without room both do the work.
 */
static __always_inline int seen_to_by_the_other(struct task_struct *task, enum seen_event event,
                                                __u64 nth)
{
	struct seen_key key = { .task = (__u64)task, .event = event };
	__u64 since = BPF_CORE_READ(task, start_time) + nth;
	__u64 *mark = bpf_map_lookup_elem(&seen_by_one, &key);

	if (mark && *mark == since) {
		bpf_map_delete_elem(&seen_by_one, &key);
		return 1;
	}
	bpf_map_update_elem(&seen_by_one, &key, &since, BPF_ANY);
	return 0;
}

static __always_inline void process_forked(struct task_struct *parent, struct task_struct *child)
{
	__u32 from = BPF_CORE_READ(parent, tgid), to = BPF_CORE_READ(child, tgid);
	__u32 *flags;

	if (from == to || seen_to_by_the_other(child, SEEN_FORK, 0)) /* a thread */
		return;
	process_cloned_into(parent, child);
	flags = bpf_map_lookup_elem(&targets, &from);
	if (!flags || !(*flags & TARGET_FOLLOW))
		return;
	target_make(to, *flags, user_of(child));
	emit_process(WIRE_FORK, bpf_get_current_pid_tgid(), to, 0, WAKE_IF_FULL);
}

/* The thread that calls exec takes over the leader's tid, and every other thread is gone by now. */
static __always_inline void process_execed(__u32 old_tid)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u64 id = bpf_get_current_pid_tgid();
	__u32 tgid = id >> 32, *flags;
	int named, held, told_of;

	if (seen_to_by_the_other(task, SEEN_EXEC, BPF_CORE_READ(task, self_exec_id)))
		return;
	named = target_by_exec(tgid);
	hooks_end(tgid, tgid);
	thread_end(tgid, tgid);
	if (old_tid != tgid) {
		hooks_end(old_tid, tgid);
		thread_end(old_tid, tgid);
	}
	told_of = process_is_told_of(tgid);
	process_over(tgid);
	if (settings.inside)
		bpf_map_delete_elem(&inside, &tgid);
	if (waker_over(tgid))
		emit_process(WIRE_EXIT, id, 0, 0, WAKE_IF_FULL);
	flags = bpf_map_lookup_elem(&targets, &tgid);
	held = flags && (*flags & TARGET_HOLD);
	if (!flags && !target_matches(tgid))
		return;
	if (told_of)
		emit_exec(id, old_tid, named, flags ? WAKE_NOW : WAKE_IF_FULL);
	file_used(BPF_CORE_READ(task, mm, exe_file), id, held, 1);
	if (settings.cuda_only) /* its program may have CUDA's runtime linked in */
		tell_mapped(id, tgid);
}

static __always_inline void thread_exited(struct task_struct *task)
{
	__u64 id = bpf_get_current_pid_tgid();
	__u32 tgid = id >> 32, tid = id;
	int live = BPF_CORE_READ(task, signal, live.counter);
	int known = bpf_map_lookup_elem(&targets, &tgid) != 0, told_of;

	if (seen_to_by_the_other(task, SEEN_EXIT, 0))
		return;
	if (known) /* killed on its way to the stop: the tid comes again */
		bpf_map_delete_elem(&held_threads, &tid);
	if (bpf_map_lookup_elem(&threads, &tid)) {
		hooks_end(tid, tgid);
		thread_end(tid, tgid);
		known = 1;
	}
	if (live > 0)
		return;
	call_share_over(tgid);
	known |= waker_over(tgid);
	told_of = (settings.all || settings.cgroup) && process_is_told_of(tgid);
	process_over(tgid);
	if (settings.inside)
		bpf_map_delete_elem(&inside, &tgid);
	/* With --all and --cgroup the last thread may have made no call: user space knows. */
	if (known || told_of)
		emit_process(WIRE_EXIT, id, 0, 0, known ? WAKE_NOW : WAKE_IF_FULL);
	target_drop(tgid);
}
