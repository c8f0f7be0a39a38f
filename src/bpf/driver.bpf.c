// SPDX-License-Identifier: (GPL-2.0 OR MIT)
/*
 * The programs on functions of NVIDIA's kernel modules. Each is there twice: for modules that have
 * types (fentry, fexit) and for those that have not (kprobes). User space loads those that it
 * attaches, when the module is there: see probe/driver_functions.h.
 */
#include <linux/types.h>
#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/ptrace.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "bpf/kernel.h"
#include "bpf/driver_rm.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define ENTRY(name, with_types, without)                                                           \
	SEC("fentry") int name##_types(__u64 *ctx)                                                 \
	{                                                                                          \
		with_types;                                                                        \
		return 0;                                                                          \
	}                                                                                          \
	SEC("kprobe") int name(struct pt_regs *ctx)                                                \
	{                                                                                          \
		without;                                                                           \
		return 0;                                                                          \
	}

#define RETURN(name, with_types, without)                                                          \
	SEC("fexit") int name##_types(__u64 *ctx)                                                  \
	{                                                                                          \
		with_types;                                                                        \
		return 0;                                                                          \
	}                                                                                          \
	SEC("kretprobe") int name(struct pt_regs *ctx)                                             \
	{                                                                                          \
		without;                                                                           \
		return 0;                                                                          \
	}

#define P(n) PT_REGS_PARM##n(ctx)

/* nvidia-uvm.ko */
ENTRY(notify, uvm_notified(ctx[0], ctx[1], ctx[2]), uvm_notified(P(1), P(2), P(3)))
ENTRY(opened, file_used(ctx[0]), file_used(P(1)))
ENTRY(released, file_released(ctx[1]), file_released(P(2)))
ENTRY(fault, cpu_fault_began((void *)ctx[0]), cpu_fault_began((void *)P(1)))
RETURN(fault_left, cpu_fault_ended(), cpu_fault_ended())
ENTRY(batch, batch_began(), batch_began())
RETURN(batch_left, batch_ended(), batch_ended())
ENTRY(thrashing, uvm_told(DRIVER_THRASHING, ctx[0], ctx[1], ctx[2], DRIVER_NOT_KNOWN),
      uvm_told(DRIVER_THRASHING, P(1), P(2), P(3), DRIVER_NOT_KNOWN))
ENTRY(throttling, uvm_told(DRIVER_THROTTLING, ctx[0], ctx[1], 0, ctx[2]),
      uvm_told(DRIVER_THROTTLING, P(1), P(2), 0, P(3)))
ENTRY(fatal, uvm_told(DRIVER_FATAL_FAULT, ctx[1], long_at(ctx[2], 0), 0, ctx[0]),
      uvm_told(DRIVER_FATAL_FAULT, P(2), long_at(P(3), 0), 0, P(1)))

/* nvidia.ko */
ENTRY(interrupt, interrupted(), interrupted())
ENTRY(post, post_began(), post_began())
RETURN(post_left, post_ended(), post_ended())
RETURN(poll_left, polled(ctx[2]), polled(PT_REGS_RC(ctx)))
ENTRY(xid, xid_reported((void *)ctx[0], ctx[1]), xid_reported((void *)P(1), P(2)))

SEC("tp/nvidia/nvidia_dev_xid")
int xid_event(struct xid_event *ctx)
{
	xid_traced(ctx);
	return 0;
}

SEC("raw_tp/sched_process_exit")
int thread_over(struct bpf_raw_tracepoint_args *ctx)
{
	thread_gone(bpf_get_current_pid_tgid());
	return 0;
}

/* The tid that the one who called exec had. */
SEC("raw_tp/sched_process_exec")
int thread_execed(struct bpf_raw_tracepoint_args *ctx)
{
	thread_gone(ctx->args[1]);
	return 0;
}

SEC("raw_tp/sched_waking")
int waking(struct bpf_raw_tracepoint_args *ctx)
{
	woken((void *)ctx->args[0]);
	return 0;
}
