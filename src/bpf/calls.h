/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/*
 * Entry and return of API calls. What to record of a function stands in the hook's cookie, so one
 * pair of programs serves all functions of all modules.
 *
 * A return is matched with its entry by the stack pointer, not by counting, because longjmp and C++
 * exceptions skip returns. The frames that they leave on the stack of calls lie below the current
 * stack pointer, and are sent as unfinished.
 */
#pragma once

#include "bpf/fold_calls.h"
#include "bpf/names.h"
#include "bpf/call_stacks.h"
#include "bpf/trampoline.h"

/*
 * Whether a session is at its return. On entry the program counter is the probe's own place, which
 * is what bpf_get_func_ip tells in both; on return it is where the call came from. The kernel's
 * bpf_session_is_return would do, but changed its prototype in 7.0, and libbpf insists on one.
 */
static __always_inline int session_is_return(struct pt_regs *ctx)
{
	return PT_REGS_IP(ctx) != bpf_get_func_ip(ctx);
}

#ifdef __TARGET_ARCH_arm64
#define ARG_STACK(ctx) PT_REGS_SP(ctx)
#define RETURN_SP(ctx) PT_REGS_SP(ctx)
#else
#define ARG_STACK(ctx) (PT_REGS_SP(ctx) + 8) /* above the return address */
#define RETURN_SP(ctx) (PT_REGS_SP(ctx) - 8) /* ret has popped it */
#endif

/*
 * Whether a call that was entered is still under way, at another entry. One whose frame the stack
 * pointer has left is not. One whose frame lies above may have been left by longjmp or an exception
 * all the same. Then other functions use that stack now, and as a rule they have overwritten its
 * return address, which the return probe had replaced by the trampoline. At the same stack pointer
 * the address tells two cases apart: a hooked function that ended in a jump to this one (both will
 * return), and a longjmp back to a loop (the first never will).
 */
static __always_inline int frame_is_open(__u64 frame_sp, struct pt_regs *ctx, __u64 trampoline)
{
	__u64 sp = PT_REGS_SP(ctx);

	if (frame_sp < sp)
		return 0;
#ifdef __TARGET_ARCH_arm64
	/* the return address is in a register, and who knows where on the stack later */
	return frame_sp > sp || (trampoline && PT_REGS_RET(ctx) == trampoline);
#else
	__u64 back = 0;

	if (!trampoline || bpf_probe_read_user(&back, sizeof(back), (void *)frame_sp))
		return frame_sp > sp;
	return back == trampoline;
#endif
}

/*
 * Calls that were not looked at, and that a longjmp has left or whose returns were taken away
 * meanwhile, are waited for until the stack pointer shows that the outermost of them is over.
 */
static __always_inline void drop_stale_declined(struct wire_thread *thread, struct pt_regs *ctx)
{
	__u64 sp = PT_REGS_SP(ctx);

	if (!thread->declined || sp < thread->declined_sp)
		return;
	if (!frame_is_open(thread->declined_sp, ctx, return_trampoline()))
		thread->declined = 0;
}

static __always_inline void drop_stale_frames(struct wire_thread *thread, struct pt_regs *ctx,
                                              __u64 now)
{
	__u64 trampoline;

	if (!thread->depth)
		return;
	trampoline = return_trampoline();
	for (int i = 0; i < WIRE_DEPTH_MAX; i++) {
		__u32 top = thread->depth - 1;
		struct wire_frame *frame;

		if (top >= WIRE_DEPTH_MAX)
			return;
		frame = frame_at(thread, top);
		if (frame_is_open(frame->sp, ctx, trampoline))
			return;
		frame_abandon(frame, now);
		thread->depth = top;
		if (thread->declined_sp <= frame->sp)
			thread->declined = 0;
	}
}

static __always_inline void record_registers(struct wire_call *call, struct pt_regs *ctx)
{
	__u64 *reg = &call->word[WIRE_AT_REG];

	reg[0] = PT_REGS_PARM1(ctx);
	reg[1] = PT_REGS_PARM2(ctx);
	reg[2] = PT_REGS_PARM3(ctx);
	reg[3] = PT_REGS_PARM4(ctx);
	reg[4] = PT_REGS_PARM5(ctx);
#ifdef __TARGET_ARCH_arm64
	const volatile struct user_pt_regs *regs = (const volatile struct user_pt_regs *)ctx;

	reg[5] = regs->regs[5];
	reg[6] = regs->regs[6];
	reg[7] = regs->regs[7];
#else
	reg[5] = ctx->r9;
#endif
}

static __always_inline __u64 register_of(struct wire_call *call, __u32 index)
{
	return index < WIRE_REGS ? call->word[WIRE_AT_REG + index] : 0;
}

static __always_inline void record_blob(struct wire_call *call, __u64 cookie)
{
	__u32 bytes = cookie_blob_words(cookie) * 8;
	__u64 from = register_of(call, cookie_blob(cookie));

	if (bpf_probe_read_user(&call->word[WIRE_AT_BLOB], bytes, (void *)from))
		call->head.flags |= WIRE_UNREADABLE;
}

static __always_inline void record_arguments(struct wire_call *call, __u64 cookie,
                                             struct pt_regs *ctx)
{
	__u32 stack = cookie_stack(cookie);

	call->word[0] = 0;
	call->word[1] = 0;
	record_registers(call, ctx);
	if (stack > WIRE_STACK)
		stack = WIRE_STACK;
	if (stack &&
	    bpf_probe_read_user(&call->word[WIRE_AT_STACK], stack * 8, (void *)ARG_STACK(ctx)))
		call->head.flags |= WIRE_UNREADABLE;
	if (cookie_blob(cookie) != COOKIE_NONE && !cookie_blob_on_return(cookie))
		record_blob(call, cookie);
}

static __always_inline void record_output(struct wire_call *call, __u32 at, __u32 index, __u32 wide)
{
	__u64 from = register_of(call, index);
	__u32 narrow = 0;
	long failed;

	if (!from)
		return;
	if (wide) {
		failed = bpf_probe_read_user(&call->word[at], 8, (void *)from);
	} else {
		failed = bpf_probe_read_user(&narrow, 4, (void *)from);
		call->word[at] = narrow;
	}
	if (failed)
		call->head.flags |= WIRE_UNREADABLE;
}

static __always_inline void record_outputs(struct wire_call *call, __u64 cookie)
{
	if (cookie_out0(cookie) != COOKIE_NONE)
		record_output(call, 0, cookie_out0(cookie), cookie_out0_wide(cookie));
	if (cookie_out1(cookie) != COOKIE_NONE)
		record_output(call, 1, cookie_out1(cookie), cookie_out1_wide(cookie));
	if (cookie_blob(cookie) != COOKIE_NONE && cookie_blob_on_return(cookie))
		record_blob(call, cookie);
}

/* Strings that are known on entry: of the call itself, or of a register's value (host stubs). */
static __always_inline void send_entry_strings(struct wire_thread *thread, struct wire_call *call,
                                               __u64 cookie)
{
	__u32 string = cookie_string(cookie), key = cookie_name_key(cookie);

	if (cookie_kernel(cookie) != COOKIE_NONE && !(FOLDING & FOLD_TOOL_NO_KERNELS))
		kernel_seen(thread, call, register_of(call, cookie_kernel(cookie)));
	if (string == COOKIE_NONE)
		return;
	if (key != COOKIE_NONE)
		name_send(call, register_of(call, key), NAME_OF_CALL, register_of(call, string));
	else if (cookie_out0(cookie) == COOKIE_NONE)
		name_send(call, 0, NAME_OF_ARGUMENT, register_of(call, string));
}

/* A string that names what the call made: cuModuleGetFunction's. */
static __always_inline void send_return_strings(struct wire_call *call, __u64 cookie)
{
	if (cookie_string(cookie) != COOKIE_NONE && cookie_name_key(cookie) == COOKIE_NONE &&
	    cookie_out0(cookie) != COOKIE_NONE && call->word[0])
		name_send(call, call->word[0], NAME_OF_CALL,
		          register_of(call, cookie_string(cookie)));
}

/* After this call a kernel handle may mean another kernel: names are read again. */
static __always_inline void forget_kernels(struct wire_frame *frame)
{
	if (!cookie_forgets_kernels(frame->cookie))
		return;
	__sync_fetch_and_add(kernels_generation(frame->call.head.tgid), 1);
	if (FOLDING)
		frame->call.generation = (__u16)*kernels_generation(frame->call.head.tgid);
}

static __always_inline int returns_wanted(__u64 cookie, __u32 mode, __u32 depth)
{
	if (!settings.returns || (mode & HOOK_ENTRY_ONLY))
		return 0;
	if (depth && !settings.nested_returns &&
	    !(cookie_proves_driver(cookie) && !state.driver_works))
		return 0;
	if (settings.seccomp_entry_only) {
		struct task_struct *task = (void *)bpf_get_current_task();

		return BPF_CORE_READ(task, seccomp.mode) == 0;
	}
	return 1;
}

/*
 * One file may be hooked as two modules: two containers of one image show it through overlayfs as
 * two inodes, and the kernel puts both probes into the one below. Their programs run one after the
 * other in the same trap; only the first is listened to. Between two, a processor may be taken away
 * for as long as others like, by its kernel or, for less, by its hypervisor; the thread itself does
 * nothing. A library that is loaded in the place of another one brings page faults to the thread
 * that does so, and others wait for it.
 *
 * To look at the thread costs some 3 % of a call: it is done for files that are alike
 * (HOOK_DOUBLE). Between others, and where the two became alike within a trap, their distance in
 * time has to do.
 */
#define SAME_TRAP_NS   2000000
#define SAME_UNSEEN_NS 50000

static __always_inline void trap_look(struct wire_trap *trap)
{
	struct task_struct *task;

	trap->looked = 1;
	if (bpf_core_enum_value_exists(enum bpf_func_id,
	                               BPF_FUNC_get_current_task_btf)) { /* 5.11 */
		task = bpf_get_current_task_btf();
		trap->stayed = task->min_flt + task->nvcsw;
		trap->preempted = task->nivcsw;
		return;
	}
	task = (void *)bpf_get_current_task();
	trap->stayed = BPF_CORE_READ(task, min_flt) + BPF_CORE_READ(task, nvcsw);
	trap->preempted = BPF_CORE_READ(task, nivcsw);
}

static __always_inline int trap_goes_on(const struct wire_trap *last, const struct wire_trap *trap)
{
	if (last->ip != trap->ip || last->sp != trap->sp || last->hook == trap->hook)
		return 0;
	if (!last->looked || !trap->looked)
		return trap->ns - last->ns < SAME_UNSEEN_NS;
	return last->stayed == trap->stayed &&
	       (trap->ns - last->ns < SAME_TRAP_NS || last->preempted != trap->preempted);
}

/* `look`: another module may be of the same file. */
static __always_inline int same_trap(struct wire_trap *last, struct pt_regs *ctx, __u32 hook,
                                     __u64 now, __u64 look)
{
	struct wire_trap trap = {
		.ip = PT_REGS_IP(ctx), .sp = PT_REGS_SP(ctx), .ns = now, .hook = hook
	};

	if (look)
		trap_look(&trap);
	if (trap_goes_on(last, &trap))
		return 1;
	*last = trap;
	return 0;
}

/* Whether an agent tells of the calls of this hook. */
static __always_inline int told_inside(__u64 modules, __u32 hook)
{
	__u32 bit = modules ? state.inside[hook & (WIRE_HOOKS_MAX - 1)] : 0;

	return bit && modules >> (bit & 63) & 1;
}

/* For a moment a hook has two links, of which one is to be looked at: see module_move_hooks. */
static __always_inline int is_other_link(__u64 cookie, __u32 mode)
{
	return cookie_moved(cookie) != !!(mode & HOOK_MOVED);
}

#define RETURNS_MAX 16 /* between the runtime's call and the driver's */

/* Whether a return probe of another tracer's has the return address of that call. */
static __always_inline int runtime_is_returned(const struct wire_thread *thread)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct return_instance *returns = BPF_CORE_READ(task, utask, return_instances);

	for (int i = 0; i < RETURNS_MAX && returns; i++) {
		if (BPF_CORE_READ(returns, stack) == thread->runtime_sp &&
		    BPF_CORE_READ(returns, orig_ret_vaddr) == thread->runtime_back)
			return 1;
		returns = BPF_CORE_READ(returns, next); /* that one is left from before a longjmp */
	}
	return returns != 0; /* more than were looked at */
}

/*
 * A call of the runtime that is left out, as the driver tells the same: only one that gets there.
 * The runtime refuses some by itself, and answers others. Without its return, what is entered next
 * tells: a call below its place on the stack is within it, as long as its return address is there,
 * or a return probe's trampoline, which stands in its place from the call's entry on.
 */
static __always_inline int runtime_is_open(const struct wire_thread *thread, struct pt_regs *ctx)
{
	if (PT_REGS_SP(ctx) >= thread->runtime_sp)
		return 0;
#ifndef __TARGET_ARCH_arm64 /* where it is in a register */
	__u64 back = 0;

	if (!bpf_probe_read_user(&back, sizeof(back), (void *)thread->runtime_sp))
		return back == thread->runtime_back ||
		       (back == return_trampoline() && runtime_is_returned(thread));
#endif
	return 1;
}

static __always_inline void runtime_note(struct wire_thread *thread, struct pt_regs *ctx,
                                         __u32 hook)
{
	if (thread->runtime_sp && runtime_is_open(thread, ctx))
		return; /* the runtime called itself */
	runtime_alone(thread);
	thread->runtime_sp = PT_REGS_SP(ctx);
	thread->runtime_hook = hook;
	thread->runtime_back = 0;
#ifndef __TARGET_ARCH_arm64
	bpf_probe_read_user(&thread->runtime_back, sizeof(thread->runtime_back),
	                    (void *)thread->runtime_sp);
#endif
}

/* A call of the driver. */
static __always_inline void runtime_settle(struct wire_thread *thread, struct pt_regs *ctx)
{
	if (!thread->runtime_sp)
		return;
	if (runtime_is_open(thread, ctx))
		thread->runtime_sp = 0;
	else
		runtime_alone(thread);
}

/*
 * An entry. Returns 1 when its return is of no interest: a session then leaves the return alone,
 * which saves the second trap.
 */
static __always_inline int call_entered(struct pt_regs *ctx, __u64 cookie)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct wire_thread *thread = thread_get(id);
	__u32 hook = cookie_hook(cookie), mode = state.mode[hook & (WIRE_HOOKS_MAX - 1)], depth;
	__u64 now = bpf_ktime_get_ns();
	const struct fold_plan *plan = fold_plan_of(hook);
	__u64 modules = inside_modules(id >> 32);
	struct wire_frame *frame;
	int returns;

	if (!thread || (mode & HOOK_IGNORE) || is_other_link(cookie, mode) ||
	    told_inside(modules, hook) ||
	    same_trap(&thread->entry, ctx, hook, now, mode & HOOK_DOUBLE))
		return 1;
	drop_stale_declined(thread, ctx);
	if (cookie_runtime_launch(cookie) && !wire_runtime_launches(&state))
		return 1;
	drop_stale_frames(thread, ctx, now);
	depth = thread->depth;
	returns = returns_wanted(cookie, mode, depth);
	if (!returns && !depth && cookie_runtime(cookie) && state.driver_tells) {
		runtime_note(thread, ctx, hook);
		return 1;
	}
	if (!cookie_runtime(cookie))
		runtime_settle(thread, ctx);
	if (fold_declines(plan, depth, modules))
		return 1;
	if (depth >= WIRE_DEPTH_MAX) {
		count_lost(LOST_TOO_DEEP);
		return 1;
	}
	frame = frame_at(thread, depth);
	frame->sp = PT_REGS_SP(ctx);
	frame->cookie = cookie;
	head_fill(&frame->call.head, WIRE_CALL, id, now);
	frame->call.head.depth = depth;
	frame->call.head.flags = depth ? WIRE_NESTED : 0;
	frame->call.head.hook = hook;
	frame->call.head.words = cookie_words(cookie);
	frame->call.begin_ns = now;
	frame->call.result = 0;
	frame->call.generation = 0;
	record_arguments(&frame->call, cookie, ctx);
	if (!depth && cookie_stack_kind(cookie))
		frame->call.begin_ns = frame->call.head.time_ns =
			call_stack_walk(ctx, thread, cookie_stack_kind(cookie), id, now);
	send_entry_strings(thread, &frame->call, cookie);
	if ((settings.begin_records || modules) && returns) { /* an agent's calls may lie within */
		frame->call.head.type = WIRE_BEGIN;
		frame->call.place = (__u32)frame->sp;
		frame_send(frame);
		frame->call.head.type = WIRE_CALL;
		frame->call.generation = 0;
		frame->call.head.flags |= WIRE_BEGUN;
	}
	if (returns) {
		if (plan && !depth) {
			fold_begin(thread, plan);
			allocation_walk(ctx, thread, plan, id, now);
		}
		thread->depth = depth + 1;
		return 0;
	}
	frame->call.head.flags |= WIRE_NO_RETURN;
	frame_check(frame);
	forget_kernels(frame);
	call_done(thread, frame);
	return 1;
}

/* Without sessions the return comes all the same of an entry that was not looked at. */
static __always_inline void call_declined(struct pt_regs *ctx, __u64 cookie)
{
	__u64 id = bpf_get_current_pid_tgid();
	__u32 tid = id, mode = state.mode[cookie_hook(cookie) & (WIRE_HOOKS_MAX - 1)];
	struct wire_thread *thread = bpf_map_lookup_elem(&threads, &tid);

	if (!settings.returns || (mode & HOOK_RETURN_GONE) || !thread || thread->tgid != id >> 32)
		return;
	if (!thread->declined || thread->declined_sp < PT_REGS_SP(ctx))
		thread->declined_sp = PT_REGS_SP(ctx);
	thread->declined++;
}

/* The frame of the call that returns now; frames above it were skipped and are sent as such. */
static __always_inline struct wire_frame *frame_of_return(struct wire_thread *thread, __u64 sp,
                                                          __u64 now)
{
	for (int i = 0; i < WIRE_DEPTH_MAX; i++) {
		__u32 top = thread->depth - 1;
		struct wire_frame *frame;

		if (top >= WIRE_DEPTH_MAX)
			return 0;
		frame = frame_at(thread, top);
		if (frame->sp > sp)
			return 0;
		thread->depth = top;
		if (frame->sp == sp)
			return frame;
		frame_abandon(frame, now);
	}
	return 0;
}

static __always_inline int call_returned(struct pt_regs *ctx)
{
	__u64 id = bpf_get_current_pid_tgid(), now = bpf_ktime_get_ns();
	__u32 tid = id;
	struct wire_thread *thread = bpf_map_lookup_elem(&threads, &tid);
	struct wire_trap trap = { .sp = RETURN_SP(ctx), .ns = now };
	struct wire_frame *frame;

	if (!thread || thread->tgid != id >> 32)
		return 0;
	if (thread->declined_sp < RETURN_SP(ctx))
		thread->declined = 0;
	frame = frame_of_return(thread, RETURN_SP(ctx), now);
	if (frame ? state.mode[frame->call.head.hook & (WIRE_HOOKS_MAX - 1)] & HOOK_DOUBLE
	          : thread->returned.looked)
		trap_look(&trap);
	if (!frame) {
		if (thread->declined)
			thread->declined--;
		else if (!trap_goes_on(&thread->returned, &trap))
			count_lost(LOST_NO_ENTRY);
		return 0;
	}
	thread->returned = trap;
	thread->returned.hook = 1; /* it was this one's: another is none's */
	thread->entry.ip = 0;      /* what comes now is in another trap */
	frame->call.result = PT_REGS_RC(ctx);
	frame->call.head.time_ns = now;
	if (frame->call.result == 0) {
		if (cookie_proves_driver(frame->cookie))
			state.driver_works = 1;
		record_outputs(&frame->call, frame->cookie);
		send_return_strings(&frame->call, frame->cookie);
	}
	frame_check(frame);
	forget_kernels(frame);
	call_done(thread, frame);
	return 0;
}
