/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/*
 * Birth, exec, death and mappings of processes. Raw tracepoints, because their arguments are the
 * tasks themselves: the classic sched_process_fork does not tell a thread from a process.
 */
#ifndef CUSCOPE_BPF_PROCESSES_H
#define CUSCOPE_BPF_PROCESSES_H

#include "bpf/threads.h"

#define PROT_EXEC     0x4
#define MAP_ANONYMOUS 0x20
#define SIGSTOP       19
#define SIGURG        23

static __always_inline void process_forked(struct task_struct *parent, struct task_struct *child)
{
	__u32 from = BPF_CORE_READ(parent, tgid), to = BPF_CORE_READ(child, tgid);
	__u32 *flags, inherited;

	if (from == to)
		return; /* a thread */
	flags = bpf_map_lookup_elem(&targets, &from);
	if (!flags || !(*flags & TARGET_FOLLOW))
		return;
	inherited = *flags;
	if (bpf_map_update_elem(&targets, &to, &inherited, BPF_ANY))
		count_lost(LOST_THREADS_FULL);
	emit_process(WIRE_FORK, bpf_get_current_pid_tgid(), to, 0, WAKE_IF_FULL);
}

/* The thread that calls exec takes over the leader's tid, and every other thread is gone by now. */
static __always_inline void process_execed(__u32 old_tid)
{
	__u64 id = bpf_get_current_pid_tgid();
	__u32 tgid = id >> 32;
	int target = bpf_map_lookup_elem(&targets, &tgid) != 0;

	thread_end(tgid, tgid);
	if (old_tid != tgid)
		thread_end(old_tid, tgid);
	process_over(tgid);
	if (target || settings.every_exec)
		emit_process(WIRE_EXEC, id, old_tid, 0, WAKE_NOW);
}

static __always_inline void thread_exited(struct task_struct *task)
{
	__u64 id = bpf_get_current_pid_tgid();
	__u32 tgid = id >> 32, tid = id;
	int live = BPF_CORE_READ(task, signal, live.counter);
	int known = bpf_map_lookup_elem(&targets, &tgid) != 0;

	if (bpf_map_lookup_elem(&threads, &tid)) {
		thread_end(tid, tgid);
		known = 1;
	}
	if (live > 0)
		return;
	process_over(tgid);
	/* With --all and --cgroup the last thread may have made no call: user space knows. */
	if (known || settings.all || settings.cgroup)
		emit_process(WIRE_EXIT, id, 0, 0, known ? WAKE_NOW : WAKE_IF_FULL);
	bpf_map_delete_elem(&targets, &tgid);
}

/* The file behind a descriptor of the current process. */
static __always_inline int file_key_of(__u64 fd, struct file_key *key)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **slots = BPF_CORE_READ(table, fd);
	struct file *file = 0;

	if (fd >= BPF_CORE_READ(table, max_fds))
		return 0;
	bpf_probe_read_kernel(&file, sizeof(file), slots + fd);
	if (!file)
		return 0;
	key->inode = BPF_CORE_READ(file, f_inode, i_ino);
	key->dev = BPF_CORE_READ(file, f_inode, i_sb, s_dev);
	return 1;
}

/*
 * The signal that stops the current thread for its tracer on the way out of the system call.
 * SIGURG, since its default is to be ignored if the tracer is gone by then. A thread that blocks it
 * gets SIGSTOP, which cannot be blocked, and which the tracer takes away as soon as it sees it.
 */
static __always_inline __u32 hold_signal(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	unsigned long blocked = BPF_CORE_READ(task, blocked.sig[0]);

	return blocked >> (SIGURG - 1) & 1 ? SIGSTOP : SIGURG;
}

/*
 * A file is about to be mapped for execution. One that was not seen before is reported at once; the
 * thread of a process that is held for it (ptrace, see src/probe/hold.h) is stopped by a signal,
 * before an instruction of the file can run. Nobody but the tracer sees that signal.
 */
static __always_inline void file_mapped(struct sys_enter_mmap *ctx)
{
	__u64 id = bpf_get_current_pid_tgid();
	__u32 tgid = id >> 32, *flags;
	struct wire_map record = {};
	struct file_key key = {};

	if (!(ctx->prot & PROT_EXEC) || (ctx->flags & MAP_ANONYMOUS))
		return;
	flags = bpf_map_lookup_elem(&targets, &tgid);
	if (!flags && !target_matches(tgid))
		return;
	if (!file_key_of(ctx->fd, &key) || bpf_map_lookup_elem(&known_files, &key))
		return;
	head_fill(&record.head, WIRE_MAP, id, bpf_ktime_get_ns());
	record.inode = key.inode;
	record.dev = key.dev;
	if (flags && (*flags & TARGET_HOLD) && bpf_send_signal_thread(hold_signal()) == 0)
		record.held = 1;
	emit(&record, sizeof(record), WAKE_NOW);
}

#endif
