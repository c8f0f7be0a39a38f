/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/*
 * Processes that are targets by their name (--name): the kernel's name, and the last part of the
 * path of the program's file. Looked at when one of them changes, so that no call is made before.
 */
#pragma once

#include "bpf/threads.h"

#define MOUNTS_MAX  8  /* on each other */
#define CGROUPS_MAX 64 /* in each other */

static __always_inline struct mount *mount_of(struct vfsmount *mnt)
{
	return (void *)mnt - bpf_core_field_offset(struct mount, mnt);
}

static __always_inline struct map_scratch *map_scratch_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&map_scratch, &zero);
}

/*
 * The last part of a file's path, into the buffer of this CPU. A file that is mounted itself has
 * the name of the place that it is mounted on. Functions with a loop are global, so that the
 * verifier goes through each once, and not once for every way to it.
 */
__attribute__((noinline)) int file_name_read(__u64 address)
{
	struct file *file = (void *)address;
	struct map_scratch *s = map_scratch_get();

	struct dentry *dentry = BPF_CORE_READ(file, f_path.dentry);
	struct mount *mount = mount_of(BPF_CORE_READ(file, f_path.mnt));

	if (!s)
		return 0;
	for (int i = 0; i < MOUNTS_MAX; i++) {
		if (BPF_CORE_READ(mount, mnt.mnt_root) != dentry)
			break;
		dentry = BPF_CORE_READ(mount, mnt_mountpoint);
		mount = BPF_CORE_READ(mount, mnt_parent);
	}
	return bpf_probe_read_kernel_str(s->record.names, WIRE_NAME_MAX,
	                                 BPF_CORE_READ(dentry, d_name.name));
}

/* Whether the name in the buffer of this CPU is one that is meant. */
__attribute__((noinline)) int name_in_buffer_matches(__u32 bytes)
{
	__u64 at[WIRE_GLOB_WORDS] = { 1 };
	__u32 zero = 0;
	const struct wire_glob *glob = bpf_map_lookup_elem(&name_glob, &zero);
	struct map_scratch *s = map_scratch_get();

	if (!glob || !s)
		return 0;
	for (__u32 i = 0; i < WIRE_NAME_MAX - 1; i++) {
		__u8 byte = s->record.names[i];

		if (i >= bytes || !byte)
			break;
		wire_glob_step(glob, byte, at);
	}
	return wire_glob_ended(glob, at);
}

static __always_inline int file_name_matches(struct file *file)
{
	int bytes = file ? file_name_read((__u64)file) : 0;

	return bytes > 0 && name_in_buffer_matches(bytes);
}

static __always_inline int comm_matches(struct map_scratch *s, const char comm[16])
{
	__builtin_memcpy(s->record.names, comm, 16);
	return name_in_buffer_matches(16);
}

static __always_inline void target_drop(__u32 tgid)
{
	const __u32 *flags = bpf_map_lookup_elem(&targets, &tgid);
	__u32 user = flags ? *flags >> TARGET_USER_SHIFT : 0;

	if (flags && !bpf_map_delete_elem(&targets, &tgid))
		user_rows_change(&state.targets, user, -1ull);
}

/* What has the number from a process whose end was missed is dropped. False: there is no room. */
static __always_inline int target_make(__u32 tgid, __u32 flags, __u32 user)
{
	__u32 value = (flags & TARGET_FLAGS) | user << TARGET_USER_SHIFT;

	target_drop(tgid);
	if (!user_may_have_more(&state.targets, user, MAX_TARGETS) ||
	    bpf_map_update_elem(&targets, &tgid, &value, BPF_NOEXIST)) {
		count_lost(LOST_TARGETS_FULL);
		return 0;
	}
	user_rows_change(&state.targets, user, 1);
	return 1;
}

/* Whether the name of a process, which has just changed, makes it a target now. */
static __always_inline int target_by_name(struct task_struct *task, __u32 tgid, int matches)
{
	if (!matches || tgid == settings.self_tgid || bpf_map_lookup_elem(&targets, &tgid))
		return 0;
	return target_make(tgid, settings.follow ? TARGET_FOLLOW : 0, user_of(task));
}

/* Another program on this CPU has the buffer for a moment: rather one process too many. */
static __always_inline int target_by_exec(__u32 tgid)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct map_scratch *s = settings.name ? map_scratch_get() : 0;
	char comm[16] = "";
	int matches = 1;

	if (!s)
		return 0;
	bpf_get_current_comm(comm, sizeof(comm));
	if (buffer_claim(&s->busy)) {
		matches = comm_matches(s, comm) ||
		          file_name_matches(BPF_CORE_READ(task, mm, exe_file));
		buffer_release(&s->busy);
	}
	return target_by_name(task, tgid, matches);
}

/* A process has the name of its first thread; others may have names of their own. */
static __always_inline void process_renamed(struct task_struct *task, const char *name)
{
	__u32 tgid = BPF_CORE_READ(task, tgid), tid = BPF_CORE_READ(task, pid);
	struct map_scratch *s = settings.name ? map_scratch_get() : 0;
	char comm[16] = "";
	int matches = 1;

	if (!s || tid != tgid)
		return;
	bpf_probe_read_kernel_str(comm, sizeof(comm), name);
	if (buffer_claim(&s->busy)) {
		matches = comm_matches(s, comm);
		buffer_release(&s->busy);
	}
	if (target_by_name(task, tgid, matches))
		emit_process(WIRE_NAMED, (__u64)tgid << 32 | tgid, 0, 0, WAKE_NOW);
}

/* One in more than CGROUPS_MAX counts as below: user space looks, and tells calls that are. */
static __always_inline int is_below_ours(struct cgroup *cgroup)
{
	struct cgroup_subsys_state *css;

	for (int i = 0; i < CGROUPS_MAX && cgroup; i++) {
		if (BPF_CORE_READ(cgroup, kn, id) == settings.cgroup_id)
			return 1;
		css = BPF_CORE_READ(cgroup, self.parent);
		cgroup = css ? BPF_CORE_READ(css, cgroup) : 0;
	}
	return cgroup != 0;
}

/*
 * What a process had mapped when it came into the cgroup was nobody's business before: user space
 * looks into it now.
 */
static __always_inline void process_moved(struct cgroup *to, struct task_struct *task)
{
	__u32 tgid = BPF_CORE_READ(task, tgid);

	if (settings.cgroup && is_below_ours(to))
		emit_process(WIRE_MOVED, (__u64)tgid << 32 | tgid, 0, 0, WAKE_NOW);
}

/* clone3 can put a child into another cgroup than its parent's. */
static __always_inline void process_cloned_into(struct task_struct *parent,
                                                struct task_struct *child)
{
	struct cgroup *to = BPF_CORE_READ(child, cgroups, dfl_cgrp);

	if (settings.cgroup && BPF_CORE_READ(parent, cgroups, dfl_cgrp) != to)
		process_moved(to, child);
}
