/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/*
 * What a thread waits for that is switched away from, and who has the CPU that it waits for. The
 * kernel keeps the number of the system call and its arguments with the registers of the user side,
 * so neither a tracepoint of system calls nor a probe is needed: a wait costs the reading of some
 * words, and a call that does not wait nothing.
 */
#pragma once

#include "bpf/files.h"
#include "bpf/stacks.h"

#ifdef __TARGET_ARCH_arm64
#define POLL  (-2) /* there is none */
#define PPOLL 73
#else
#define POLL  7
#define PPOLL 271
#endif

#define TASK_STOPPED 0x04
#define TASK_TRACED  0x08

#define LOOKED_NS 1000000ull /* so long the same wait is taken to be for the same file */

/* Where the current thread has left its program, and for what. */
struct left_at {
	__u64 pc, sp;
	__u64 first; /* argument */
	__s64 call;  /* -1: none, an exception */
};

#ifdef __TARGET_ARCH_arm64
struct pt_regs___waits {
	__u64 orig_x0;
	__s32 syscallno;
} __ksym_struct;

static __always_inline void left_at_read(struct left_at *at, struct task_struct *task)
{
	struct pt_regs___waits *regs = saved_user_regs();
	struct user_pt_regs *user = (void *)regs;
	__u64 words[2] = {}; /* sp, pc */

	bpf_probe_read_kernel(words, sizeof(words), &user->sp);
	at->sp = words[0];
	at->pc = words[1];
	at->first = BPF_CORE_READ(regs, orig_x0);
	at->call = BPF_CORE_READ(regs, syscallno);
}

static __always_inline __u64 second_argument(void)
{
	struct user_pt_regs *regs = saved_user_regs();
	__u64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), &regs->regs[1]);
	return value;
}
#else
/* As the kernel names them. */
struct pt_regs___typed {
	__u64 di, orig_ax, ip, sp;
} __ksym_struct;

/*
 * Of the current thread. From 5.15 on the kernel gives registers with their type, and a word costs
 * an instruction; before, reading costs by the call rather than by the byte, and they stand
 * together, by the names that user programs know.
 */
static __always_inline void left_at_read(struct left_at *at, struct task_struct *task)
{
	struct pt_regs *regs;
	struct {
		__u64 rdi, orig_rax, rip, cs, eflags, rsp;
	} words = {};

	_Static_assert(__builtin_offsetof(struct pt_regs, rsp) ==
	                       __builtin_offsetof(struct pt_regs, rdi) + sizeof(words) - 8,
	               "they stand together");
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs)) {
		struct pt_regs___typed *typed = (void *)bpf_task_pt_regs(task);

		at->sp = typed->sp;
		at->pc = typed->ip;
		at->first = typed->di;
		at->call = (__s32)typed->orig_ax; /* in an exception -1 */
		return;
	}
	regs = saved_user_regs();
	bpf_probe_read_kernel(&words, sizeof(words), &regs->rdi);
	at->sp = words.rsp;
	at->pc = words.rip;
	at->first = words.rdi;
	at->call = (__s32)words.orig_rax;
}

static __always_inline __u64 second_argument(void)
{
	struct pt_regs *regs = saved_user_regs();
	__u64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), &regs->rsi);
	return value;
}
#endif

/* The file that a call is about: its first argument, or the only one that is polled. */
static __always_inline struct file *file_waited_for(struct wire_wait *wait, __u64 first)
{
	__u64 n;
	__u32 fd;

	if (wait->call != POLL && wait->call != PPOLL)
		return first <= 0x7fffffff ? file_of(first) : 0;
	n = second_argument();
	if (!n)
		wait->flags |= WIRE_WAIT_NO_FILES;
	if (n != 1 || bpf_probe_read_user(&fd, sizeof(fd), (void *)first))
		return 0;
	return file_of(fd);
}

/* Of the current thread. */
static __attribute__((noinline)) int wait_look(struct wire_wait *wait, const struct left_at *at)
{
	struct file *file;

	if (!wait || !at)
		return 0;
	wait->flags = WIRE_WAIT_KNOWN;
	wait->mode = 0;
	wait->call = at->call;
	file = wait->call >= 0 ? file_waited_for(wait, at->first) : 0;
	if (file) {
		wait->mode = BPF_CORE_READ(file, f_inode, i_mode);
		wait->flags |= WIRE_WAIT_FILE;
	}
	return 0;
}

/*
 * A thread that waits thousands of times a second waits for the same again: the file is then looked
 * at once in a while. One that has another with the same number meanwhile is told as what that was
 * before, for so long.
 */
static __always_inline void wait_begun(struct wire_blocking *blocking, const struct left_at *at,
                                       struct task_struct *task, __u64 state_of, __u64 now)
{
	__u64 looked_at = (at->pc * 31 + at->sp) * 31 + at->first;

	if (now - blocking->looked_ns > LOOKED_NS || blocking->looked_at != looked_at ||
	    blocking->wait.call != at->call) {
		blocking->looked_ns = now;
		blocking->looked_at = looked_at;
		wait_look(&blocking->wait, at);
	}
	blocking->wait.flags &= ~(WIRE_WAIT_IO | WIRE_WAIT_STOPPED);
	if (BPF_CORE_READ_BITFIELD(task, in_iowait))
		blocking->wait.flags |= WIRE_WAIT_IO;
	if (state_of & (TASK_STOPPED | TASK_TRACED))
		blocking->wait.flags |= WIRE_WAIT_STOPPED;
}

/* ---- who has the CPU meanwhile --------------------------------------------------------------- */

#define RUNNERS 8 /* a power of two */

/* Who ran on this CPU last, the idle thread as process 0. */
struct runners {
	__u64 on_ns; /* since when the current one does */
	__u32 at;
	struct {
		__u64 from_ns, to_ns;
		__u32 pid;
		char comm[16];
	} last[RUNNERS];
};

MAP(PERCPU_ARRAY, 1, __u32, struct runners) runners SEC(".maps");

/* The current thread leaves the CPU. */
static __always_inline void runner_leaves(struct task_struct *task, __u64 now)
{
	__u32 zero = 0, at;
	struct runners *of = bpf_map_lookup_elem(&runners, &zero);

	if (!of)
		return;
	at = of->at++ & (RUNNERS - 1);
	of->last[at].from_ns = of->on_ns;
	of->last[at].to_ns = now;
	of->last[at].pid = task->tgid;
	__builtin_memcpy(of->last[at].comm, task->comm, sizeof(of->last[at].comm));
	of->on_ns = now;
}

static __always_inline __u64 ran_since(const struct runners *of, __u32 i, __u64 since_ns)
{
	__u64 from_ns = of->last[i].from_ns > since_ns ? of->last[i].from_ns : since_ns;

	return of->last[i].to_ns > from_ns ? of->last[i].to_ns - from_ns : 0;
}

/*
 * Of the last that ran where a thread goes on now, who ran longest while it could have: who came
 * last can be a thread of the kernel that ran for a moment.
 */
static __always_inline void rival_tell(struct wire_blocked *record, __u64 now)
{
	__u64 since_ns = now - record->runnable_ns, longest_ns = 0;
	__u32 zero = 0, rival = 0;
	struct runners *of = bpf_map_lookup_elem(&runners, &zero);

	if (!of)
		return;
#pragma unroll
	for (__u32 i = 0; i < RUNNERS; i++) {
		__u64 ns = ran_since(of, i, since_ns);

		rival = ns > longest_ns ? i : rival;
		longest_ns = ns > longest_ns ? ns : longest_ns;
	}
	rival = BOUNDED(rival, RUNNERS - 1);
	record->rival_pid = longest_ns ? of->last[rival].pid : 0;
	if (record->rival_pid)
		__builtin_memcpy(record->rival, of->last[rival].comm, sizeof(record->rival));
}
