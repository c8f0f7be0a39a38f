/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/* Files that targets map for execution: those that are not known yet are told of, with
 * their path. */
#pragma once

#include "bpf/targets.h"

#define PROT_EXEC     0x4
#define MAP_ANONYMOUS 0x20
#define SIGSTOP       19
#define SIGWINCH      28

#define CTIME_QUERIED (1u << 31) /* the kernel's own mark in the nanoseconds, since 6.13 */

/* The file behind a descriptor of the current process. */
static __always_inline struct file *file_of(__u64 fd)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **slots = BPF_CORE_READ(table, fd);
	struct file *file = 0;

	if (fd < BPF_CORE_READ(table, max_fds))
		bpf_probe_read_kernel(&file, sizeof(file), slots + fd);
	return file;
}

/* When the inode was last changed, in seconds and nanoseconds: its name has changed twice. */
static __always_inline void file_changed(struct inode *inode, __u64 *seconds, __u64 *ns)
{
	struct inode___6_6 *newer = (void *)inode;
	struct inode___before *older = (void *)inode;

	if (bpf_core_field_exists(inode->i_ctime_sec)) {
		*seconds = BPF_CORE_READ(inode, i_ctime_sec);
		*ns = BPF_CORE_READ(inode, i_ctime_nsec) & ~CTIME_QUERIED;
	} else if (bpf_core_field_exists(newer->__i_ctime)) {
		*seconds = BPF_CORE_READ(newer, __i_ctime.tv_sec);
		*ns = BPF_CORE_READ(newer, __i_ctime.tv_nsec);
	} else {
		*seconds = BPF_CORE_READ(older, i_ctime.tv_sec);
		*ns = BPF_CORE_READ(older, i_ctime.tv_nsec);
	}
}

static __always_inline void file_identify(struct file *file, struct wire_file *id)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	__u64 seconds, ns;

	file_changed(inode, &seconds, &ns);
	id->inode = BPF_CORE_READ(inode, i_ino);
	id->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	id->stamp = wire_file_stamp(BPF_CORE_READ(inode, i_size), seconds, ns);
}

enum { STEP_ON, STEP_ROOT, STEP_NOWHERE };

/*
 * One step up a path, with what it stands on in the buffer of this CPU. A global function, and what
 * it changes in a map: so the verifier goes through it once, and not once for every way there.
 */
__attribute__((noinline)) int file_path_step(void)
{
	struct map_scratch *s = map_scratch_get();
	struct dentry *dentry = s ? s->dentry : 0, *up;
	struct mount *mount = s ? s->mount : 0, *below;
	long read;

	if (!s)
		return STEP_NOWHERE;
	if (BPF_CORE_READ(mount, mnt.mnt_root) == dentry) {
		below = BPF_CORE_READ(mount, mnt_parent);
		if (below == mount)
			return STEP_ROOT;
		s->dentry = BPF_CORE_READ(mount, mnt_mountpoint);
		s->mount = below;
		return STEP_ON;
	}
	up = BPF_CORE_READ(dentry, d_parent);
	if (up == dentry || s->at > WIRE_PATH_MAX - WIRE_NAME_MAX)
		return STEP_NOWHERE; /* of no mount: a memfd, or unmounted */
	read = bpf_probe_read_kernel_str(s->record.names + BOUNDED(s->at, WIRE_PATH_MAX - 1),
	                                 WIRE_NAME_MAX, BPF_CORE_READ(dentry, d_name.name));
	s->at += read > 0 ? read : 0;
	s->dentry = up;
	return read > 0 ? STEP_ON : STEP_NOWHERE;
}

/* Names from the file up to the root of the process's mounts; returns their bytes. */
static __always_inline __u32 file_path_read(struct map_scratch *s, struct file *file)
{
	int step = STEP_ON;

	s->dentry = BPF_CORE_READ(file, f_path.dentry);
	s->mount = mount_of(BPF_CORE_READ(file, f_path.mnt));
	s->at = 0;
	for (int i = 0; i < WIRE_PATH_DEPTH && step == STEP_ON; i++)
		step = file_path_step();
	return step == STEP_ROOT ? s->at : 0;
}

/*
 * Stops the current thread for its tracer on the way out of the system call; returns 1 if it is to
 * stop. The signal is SIGWINCH. It is ignored by default, if the tracer is gone by then. A program
 * that gets one too many looks at its terminal's size once more. And terminals send it to
 * processes, not to threads, so that theirs and ours are not made one. (SIGURG is what Go sends its
 * threads all the time.) A thread that blocks it gets SIGSTOP, which cannot be blocked, and which
 * the tracer takes away as soon as it sees it. That a signal is ours is written down, because the
 * kernel's own look the same.
 */
static __always_inline int hold_thread(__u32 tid)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	unsigned long blocked = BPF_CORE_READ(task, blocked.sig[0]);
	unsigned long pending = BPF_CORE_READ(task, pending.signal.sig[0]);
	__u32 sig = blocked >> (SIGWINCH - 1) & 1 ? SIGSTOP : SIGWINCH;
	__u8 held = pending >> (sig - 1) & 1 ? HELD_OURS_AND_THEIRS : HELD_OURS;

	if (bpf_map_update_elem(&held_threads, &tid, &held, BPF_ANY))
		return 0;
	if (bpf_send_signal_thread(sig) == 0)
		return 1;
	bpf_map_delete_elem(&held_threads, &tid);
	return 0;
}

/* Sends the record, with the file's path where there is a buffer for it. */
static __always_inline void map_send(struct wire_map *map, struct file *file)
{
	struct map_scratch *s = map_scratch_get();
	__u32 bytes;

	if (!s || !buffer_claim(&s->busy)) {
		emit(map, sizeof(*map), WAKE_NOW);
		return;
	}
	bytes = BOUNDED(file_path_read(s, file), WIRE_PATH_MAX - 1);
	map->head.bytes = bytes;
	s->record.map = *map;
	emit(&s->record, sizeof(*map) + bytes, WAKE_NOW);
	buffer_release(&s->busy);
}

/* Whether nothing has to be told of a mapping. A file known beforehand is told of once. */
static __always_inline int file_is_known(const struct wire_file *id, struct wire_map *map,
                                         __u32 tgid)
{
	struct file_key key = { .inode = id->inode, .dev = id->dev };
	struct wire_known *known = bpf_map_lookup_elem(&known_files, &key);

	if (!known || known->stamp != id->stamp)
		return 0;
	if (known->flags & KNOWN_CUDA)
		process_uses_cuda(tgid);
	if (!(known->flags & KNOWN_TELL))
		return 1;
	known->flags &= ~(__u64)KNOWN_TELL;
	map->known = 1;
	return 0;
}

/*
 * A target maps a file for execution, or executes it. One that was not seen before is reported at
 * once; the thread of a process that is held for it (ptrace, see src/probe/hold.h) is stopped by a
 * signal, before an instruction of the file can run. Nobody but the tracer sees that signal. One
 * that executes is stopped by ptrace itself.
 */
static __always_inline void file_used(struct file *file, __u64 id, int hold, int program)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct wire_map map = {};
	__u32 tid = id;

	if (!file)
		return;
	file_identify(file, &map.file);
	if (file_is_known(&map.file, &map, id >> 32))
		return;
	head_fill(&map.head, WIRE_MAP, id, bpf_ktime_get_ns());
	map.born_ns = BPF_CORE_READ(task, group_leader, start_time);
	map.parent = BPF_CORE_READ(task, real_parent, tgid);
	map.uid = bpf_get_current_uid_gid();
	map.program = program;
	if (hold && !map.known) {
		bpf_map_update_elem(&held_for, &tid, &map.file, BPF_ANY);
		map.held = program || hold_thread(tid);
	}
	map_send(&map, file);
}

/* What the process has mapped has changed: its stacks go through that. */
static __always_inline void tell_mapped(__u64 id, __u32 tgid)
{
#ifdef STACKS
	if (process_is_told_of(tgid))
		emit_process(WIRE_MAPPED, id, 0, 0, WAKE_IF_FULL);
#endif
}

/*
 * A library may come anew, where nothing of it is left to an agent: from now on the process is
 * looked at as all are, until user space has seen what it is.
 */
static __always_inline void inside_left(__u64 id)
{
	__u32 tgid = id >> 32;
	__u64 *modules = settings.inside ? bpf_map_lookup_elem(&inside, &tgid) : 0;

	if (!modules)
		return;
	*modules = INSIDE_ANY;
#ifndef STACKS /* else all are told of */
	emit_process(WIRE_MAPPED, id, 0, 0, WAKE_NOW);
#endif
}

static __always_inline void file_mapped(struct sys_enter_mmap *ctx)
{
	__u64 id = bpf_get_current_pid_tgid();
	__u32 tgid = id >> 32, *flags;

	if (!(ctx->prot & PROT_EXEC) || (ctx->flags & MAP_ANONYMOUS))
		return;
	flags = bpf_map_lookup_elem(&targets, &tgid);
	if (!flags && !target_matches(tgid)) {
		if (process_is_waker(tgid))
			tell_mapped(id, tgid);
		return;
	}
	inside_left(id);
	if (!settings.cuda_only)
		tell_mapped(id, tgid);
	file_used(file_of(ctx->fd), id, flags && (*flags & TARGET_HOLD), 0);
	if (settings.cuda_only) /* this file may be what makes it one to tell of */
		tell_mapped(id, tgid);
}
