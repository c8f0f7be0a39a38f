// SPDX-License-Identifier: (GPL-2.0 OR MIT)
/* The programs: each is a few lines that say where it is attached. */
#include <linux/types.h>
#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/ptrace.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "bpf/kernel.h"
#include "bpf/calls.h"
#include "bpf/processes.h"
#ifndef FOLD
#include "bpf/driver_calls.h"
#endif
#ifdef STACKS
#include "bpf/blocked.h"
#include "bpf/samples.h"
#endif

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/*
 * Since 6.13 the kernel gives kprobe programs a stack of their own, one a CPU, trusting that none
 * is entered twice on a CPU. Programs on uprobes have no such guard: on kernels with full or lazy
 * preemption another thread enters the same program while one is preempted in it, and both write
 * to one stack. Seen on 7.2.13: variables changed under way, and an oops on a write through one.
 * A program with a tail call keeps the ordinary stack, so there is one, on a path that the
 * verifier removes.
 */
static __always_inline void keep_ordinary_stack(void *ctx)
{
	if (settings.never)
		bpf_tail_call(ctx, &stub_exit, 0);
}

static __always_inline __u64 hook_cookie(void *ctx)
{
	__u32 zero = 0;
	struct scratch *s;

	if (settings.cookies)
		return bpf_get_attach_cookie(ctx);
	s = bpf_map_lookup_elem(&scratch, &zero);
	return s ? s->cookie : 0;
}

/* 6.13: one program for entry and return; the entry decides whether there will be a return. */
SEC("kprobe/session")
int call_session(struct pt_regs *ctx)
{
	keep_ordinary_stack(ctx);
	if (session_is_return(ctx))
		return call_returned(ctx);
	return call_entered(ctx, hook_cookie(ctx));
}

SEC("kprobe/enter")
int call_enter(struct pt_regs *ctx)
{
	__u64 cookie = hook_cookie(ctx);

	keep_ordinary_stack(ctx);
	if (call_entered(ctx, cookie))
		call_declined(ctx, cookie);
	return 0;
}

SEC("kprobe/return")
int call_return(struct pt_regs *ctx)
{
	keep_ordinary_stack(ctx);
	return call_returned(ctx);
}

/* ---- hooks that users ask for -------------------------------------------------------------- */

SEC("kprobe/hook_session")
int hook_session(struct pt_regs *ctx)
{
	if (settings.never) /* see keep_ordinary_stack() */
		bpf_tail_call(ctx, &hook_exit, 0);
	if (session_is_return(ctx))
		return hook_returned(ctx, 0, 0);
	return hook_entered(ctx, ctx, hook_cookie(ctx), 0);
}

SEC("kprobe/hook_enter")
int hook_enter(struct pt_regs *ctx)
{
	if (settings.never)
		bpf_tail_call(ctx, &hook_exit, 0);
	hook_entered(ctx, ctx, hook_cookie(ctx), 0);
	return 0;
}

SEC("kprobe/hook_return")
int hook_return(struct pt_regs *ctx)
{
	if (settings.never)
		bpf_tail_call(ctx, &hook_exit, 0);
	return hook_returned(ctx, 0, 0);
}

/* Of functions of the kernel, by the cookie at the return as well: nothing skips those. */
SEC("kprobe/khook_enter")
int khook_enter(struct pt_regs *ctx)
{
	if (settings.never)
		bpf_tail_call(ctx, &khook_exit, 0);
	hook_entered(ctx, ctx, hook_cookie(ctx), 1);
	return 0;
}

SEC("kprobe/khook_return")
int khook_return(struct pt_regs *ctx)
{
	if (settings.never)
		bpf_tail_call(ctx, &khook_return_exit, 0);
	return hook_returned(ctx, hook_cookie(ctx), 1);
}

SEC("tp/hook_tracepoint")
int hook_tracepoint(void *ctx)
{
	if (settings.never)
		bpf_tail_call(ctx, &trace_exit, 0);
	hook_entered(ctx, 0, hook_cookie(ctx), 1);
	return 0;
}

/* ---- processes ----------------------------------------------------------------------------- */

/*
 * Since 7.0 raw tracepoints run preemptible, and the kernel does not enter a program that is under
 * way on this CPU. A thread may be preempted in on_exit, most likely by the reader that it has just
 * woken. If another one ends there meanwhile, on_exit is left out for that one. Seen on 7.2.13 with
 * one CPU: on_exit up to 5 times a trace, in 11 of 57 traces, and on_fork once in one of them.
 *
 * So there are two programs for each event. The first that runs does the work, and an event is
 * missed when both are left out. The other one for ends goes by way of perf, which runs with
 * preemption off. It is left out only if a bpf() call for a map was preempted on this CPU, which
 * never happened in those traces. (Before 6.7 nobody counts that, but there the first is never left
 * out.)
 */
SEC("raw_tp/sched_process_fork")
int on_fork(struct bpf_raw_tracepoint_args *ctx)
{
	process_forked((void *)ctx->args[0], (void *)ctx->args[1]);
	return 0;
}

SEC("raw_tp/sched_process_fork")
int on_fork_again(struct bpf_raw_tracepoint_args *ctx)
{
	process_forked((void *)ctx->args[0], (void *)ctx->args[1]);
	return 0;
}

SEC("raw_tp/sched_process_exec")
int on_exec(struct bpf_raw_tracepoint_args *ctx)
{
	process_execed(ctx->args[1]);
	return 0;
}

SEC("raw_tp/sched_process_exec")
int on_exec_again(struct bpf_raw_tracepoint_args *ctx)
{
	process_execed(ctx->args[1]);
	return 0;
}

SEC("raw_tp/task_rename")
int on_rename(struct bpf_raw_tracepoint_args *ctx)
{
	process_renamed((void *)ctx->args[0], (void *)ctx->args[1]);
	return 0;
}

/* Who is a target already is not made one: no mark is needed. */
SEC("raw_tp/task_rename")
int on_rename_again(struct bpf_raw_tracepoint_args *ctx)
{
	process_renamed((void *)ctx->args[0], (void *)ctx->args[1]);
	return 0;
}

SEC("raw_tp/cgroup_attach_task")
int on_cgroup(struct bpf_raw_tracepoint_args *ctx)
{
	process_moved((void *)ctx->args[0], (void *)ctx->args[2]);
	return 0;
}

SEC("raw_tp/sched_process_exit")
int on_exit(struct bpf_raw_tracepoint_args *ctx)
{
	thread_exited((void *)ctx->args[0]);
	return 0;
}

SEC("tp/sched/sched_process_exit")
int on_exit_by_perf(void *ctx)
{
	thread_exited((void *)bpf_get_current_task());
	return 0;
}

SEC("tp/syscalls/sys_enter_mmap")
int on_mmap(struct sys_enter_mmap *ctx)
{
	file_mapped(ctx);
	return 0;
}

#ifndef FOLD
#define DRIVER_SYSCALL(name, entered, left)                                                        \
	SEC("tp/syscalls/sys_enter_" #name)                                                        \
	int driver_##name(struct syscall_entered *ctx)                                             \
	{                                                                                          \
		entered;                                                                           \
		return 0;                                                                          \
	}                                                                                          \
	SEC("tp/syscalls/sys_exit_" #name)                                                         \
	int driver_##name##_left(struct syscall_left *ctx)                                         \
	{                                                                                          \
		left;                                                                              \
		return 0;                                                                          \
	}

DRIVER_SYSCALL(ioctl, ioctl_entered(ctx), ioctl_left(ctx))
DRIVER_SYSCALL(open, open_entered(ctx->arg[0]), open_left(ctx))
DRIVER_SYSCALL(openat, open_entered(ctx->arg[1]), open_left(ctx))
DRIVER_SYSCALL(openat2, open_entered(ctx->arg[1]), open_left(ctx))
DRIVER_SYSCALL(close, file_call_entered(ctx, SYSCALL_CLOSE, ctx->arg[0]),
               file_call_left(ctx, SYSCALL_CLOSE))
DRIVER_SYSCALL(mmap, file_call_entered(ctx, SYSCALL_MMAP, ctx->arg[4]),
               file_call_left(ctx, SYSCALL_MMAP))
DRIVER_SYSCALL(poll, poll_entered(ctx, (__s32)ctx->arg[2]), file_call_left(ctx, SYSCALL_POLL))
DRIVER_SYSCALL(ppoll, poll_entered(ctx, ctx->arg[2] ? 0 : -1), file_call_left(ctx, SYSCALL_POLL))

/* A thread that ends in a call never leaves it. */
SEC("raw_tp/sched_process_exit")
int driver_exit(struct bpf_raw_tracepoint_args *ctx)
{
	driver_thread_ended(bpf_get_current_pid_tgid());
	return 0;
}
#endif

#ifdef STACKS
/* At the entry of PyTorch's engine, in the thread that asks for a backward pass. */
SEC("kprobe/backward")
int on_backward(struct pt_regs *ctx)
{
	if (settings.never) /* see keep_ordinary_stack() */
		bpf_tail_call(ctx, &backward_exit, 0);
	backward_begun(ctx);
	return 0;
}

/* In the agent, in the thread that makes a call, or a node of a graph. */
SEC("kprobe/asked")
int on_asked(struct pt_regs *ctx)
{
	if (settings.never)
		bpf_tail_call(ctx, &backward_exit, 0);
	agent_asked(ctx);
	return 0;
}

/*
 * With the types of their arguments, so that each field of a thread that is read costs an
 * instruction instead of a call: these run whenever a thread is switched. 5.18 added the state of
 * who leaves as a fourth argument; nobody needs it.
 */
SEC("tp_btf/sched_switch")
int on_switch(__u64 *ctx)
{
	switched(ctx, (__u8)ctx[0], (void *)ctx[1], (void *)ctx[2]);
	return 0;
}

SEC("tp_btf/sched_waking")
int on_waking(__u64 *ctx)
{
	blocked_woken((void *)ctx[0]);
	return 0;
}

/* Interrupts of devices and timers, then those that are put off: the first can be in the second. */
SEC("raw_tp/irq_handler_entry")
int on_interrupt(void *ctx)
{
	interrupt_begun();
	return 0;
}

SEC("raw_tp/irq_handler_exit")
int on_interrupt_end(void *ctx)
{
	interrupt_ended();
	return 0;
}

SEC("raw_tp/hrtimer_expire_entry")
int on_timer(void *ctx)
{
	timer_begun();
	return 0;
}

SEC("raw_tp/hrtimer_expire_exit")
int on_timer_end(void *ctx)
{
	timer_ended();
	return 0;
}

SEC("raw_tp/softirq_entry")
int on_softirq(void *ctx)
{
	interrupt_begun();
	return 0;
}

SEC("raw_tp/softirq_exit")
int on_softirq_end(void *ctx)
{
	interrupt_ended();
	return 0;
}

/* At a rate of the CPU's clock; who is no target costs a look-up. */
SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	sample_taken(ctx);
	return 0;
}
#endif
