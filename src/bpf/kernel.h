/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/*
 * The few kernel structures that the programs look into, by field name. CO-RE finds the offsets in
 * the running kernel's BTF. So only the fields that are used stand here, and no vmlinux.h is
 * needed.
 */
#pragma once

#define __ksym_struct __attribute__((preserve_access_index))

struct super_block {
	__u32 s_dev;
} __ksym_struct;

struct timespec64 {
	long tv_sec, tv_nsec;
} __ksym_struct;

struct inode {
	unsigned long i_ino;
	__u32 i_rdev; /* of a device: major << 20 | minor */
	struct super_block *i_sb;
	unsigned short i_mode;
	long long i_size;
	long long i_ctime_sec; /* since 6.11 */
	__u32 i_ctime_nsec;
} __ksym_struct;

struct inode___6_6 {
	struct timespec64 __i_ctime;
} __ksym_struct;

struct inode___before {
	struct timespec64 i_ctime;
} __ksym_struct;

struct qstr {
	const unsigned char *name;
} __ksym_struct;

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
} __ksym_struct;

struct vfsmount {
	struct dentry *mnt_root;
} __ksym_struct;

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
} __ksym_struct;

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
} __ksym_struct;

struct file {
	void *private_data;
	struct inode *f_inode;
	struct path f_path;
} __ksym_struct;

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
} __ksym_struct;

struct files_struct {
	struct fdtable *fdt;
} __ksym_struct;

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live; /* threads that have not begun to exit */
} __ksym_struct;

struct xol_area {
	unsigned long vaddr; /* the page of out-of-line slots; the return trampoline is its first */
} __ksym_struct;

struct uprobes_state {
	struct xol_area *xol_area;
} __ksym_struct;

struct mm_struct {
	struct uprobes_state uprobes_state;
	struct file *exe_file;
} __ksym_struct;

struct seccomp {
	int mode;
} __ksym_struct;

struct kernfs_node {
	__u64 id;
} __ksym_struct;

struct cgroup;

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
} __ksym_struct;

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
} __ksym_struct;

struct css_set {
	struct cgroup *dfl_cgrp; /* of cgroup v2 */
} __ksym_struct;

/* Each architecture has a field of its own for where a thread's own data is. */
struct thread_struct {
	unsigned long fsbase; /* x86-64 */
	struct {
		unsigned long tp_value; /* AArch64 */
	} uw;
} __ksym_struct;

/* A return address that a return probe has replaced. */
struct return_instance {
	unsigned long stack; /* where that address lies */
	unsigned long orig_ret_vaddr;
	struct return_instance *next;
} __ksym_struct;

struct uprobe_task {
	unsigned long vaddr; /* of the instruction that is being executed elsewhere */
	struct return_instance *return_instances;
} __ksym_struct;

struct ns_common {
	unsigned int inum;
} __ksym_struct;

typedef struct {
	__u32 val; /* as the first user namespace has it */
} kuid_t;

struct user_namespace {
	struct user_namespace *parent;
	int level; /* 0: of the machine itself */
	kuid_t owner;
	struct ns_common ns;
} __ksym_struct;

struct cred {
	kuid_t uid;
	struct user_namespace *user_ns;
} __ksym_struct;

struct task_struct {
	struct thread_struct thread;
	struct uprobe_task *utask;
	void *stack; /* the kernel's */
	int pid;
	int tgid;
	unsigned int __state; /* since 5.14 */
	unsigned int flags;
	unsigned int in_iowait : 1;
	__u64 start_time;            /* CLOCK_MONOTONIC */
	unsigned long nvcsw, nivcsw; /* how often it slept, and was preempted */
	unsigned long min_flt;
	__u32 self_exec_id; /* how often it has called exec; 64 bits wide since 5.7 */
	struct task_struct *group_leader, *real_parent;
	struct mm_struct *mm;
	struct files_struct *files;
	struct signal_struct *signal;
	struct seccomp seccomp;
	struct cred *cred;
	struct css_set *cgroups;
	struct {
		unsigned long sig[1];
	} blocked;
	struct {
		struct {
			unsigned long sig[1];
		} signal;
	} pending;
	char comm[16];
} __ksym_struct;

struct task_struct___before {
	long state;
} __ksym_struct;

/* The layouts of syscalls:sys_enter_* and sys_exit_*. */
struct syscall_entered {
	__u64 common;
	__s64 nr;
	__u64 arg[6];
};

struct syscall_left {
	__u64 common;
	__s64 nr;
	__s64 result;
};

/* The layout of the syscalls:sys_enter_mmap tracepoint: stable since it is derived from
 * the call. */
struct sys_enter_mmap {
	__u64 common;
	__s64 nr;
	__u64 addr, len, prot, flags, fd, off;
};
