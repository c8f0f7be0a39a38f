/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/*
 * The few kernel structures that the programs look into, by field name: CO-RE finds the offsets in
 * the running kernel's BTF, so only the fields that are used stand here, and no vmlinux.h is
 * needed.
 */
#ifndef CUSCOPE_BPF_KERNEL_H
#define CUSCOPE_BPF_KERNEL_H

#define __ksym_struct __attribute__((preserve_access_index))

struct super_block {
	__u32 s_dev;
} __ksym_struct;

struct inode {
	unsigned long i_ino;
	struct super_block *i_sb;
	unsigned short i_mode;
} __ksym_struct;

struct file {
	struct inode *f_inode;
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
} __ksym_struct;

struct seccomp {
	int mode;
} __ksym_struct;

struct task_struct {
	int pid;
	int tgid;
	struct mm_struct *mm;
	struct files_struct *files;
	struct signal_struct *signal;
	struct seccomp seccomp;
	struct {
		unsigned long sig[1];
	} blocked;
	char comm[16];
} __ksym_struct;

/* The layout of the syscalls:sys_enter_mmap tracepoint: stable since it is derived from the call.
 */
struct sys_enter_mmap {
	__u64 common;
	__s64 nr;
	__u64 addr, len, prot, flags, fd, off;
};

#endif
