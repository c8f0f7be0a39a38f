// SPDX-License-Identifier: MIT
#include "agent/inject_trace.h"

#ifdef __x86_64__

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/inject_run.h"
#include "agent/inject_seccomp.h"
#include "agent/inject_stack.h"
#include "agent/inject_thread.h"
#include "base/array.h"
#include "base/clock.h"
#include "divert/divert_stop.h"

#define HELD_MAX_NS 40000000u   /* a thread is let go after this, whatever was reached */
#define UNKNOWN_NS  1000000000u /* one whose stack ends in the unknown is not taken before */
#define STILL_NS    200000000   /* in which a thread that waits for a lock has not moved */
#define RED_ZONE    128u
#define USER_CODE   0x33u /* cs of 64-bit code */

#ifndef NT_X86_SHSTK
#define NT_X86_SHSTK 0x204
#endif

/* What the kernel leaves in rax of a call that was interrupted, and the program never sees. */
#define ERESTARTSYS           512
#define ERESTARTNOINTR        513
#define ERESTARTNOHAND        514
#define ERESTART_RESTARTBLOCK 516

/* ---- where it is ----------------------------------------------------------------------------- */

/* How the thread's own call goes on afterwards. */
struct point {
	struct user_regs_struct regs;
	uint64_t rip, rax;
	unsigned interrupts;
};

/* Behind a `syscall` instruction, and in the program that was looked at. */
static bool is_behind_call(const struct inject_target *target, pid_t tid,
                           const struct user_regs_struct *regs)
{
	uint64_t there = 0;
	long now;

	if (regs->cs != USER_CODE || !target_read(target, regs->rip - 2, &there, sizeof(there)))
		return false;
	errno = 0;
	now = ptrace(PTRACE_PEEKTEXT, tid, regs->rip - 2, NULL);
	return errno == 0 && (uint64_t)now == there && (there & 0xffff) == 0x050f;
}

/* Whether a signal is about to be handled: the call that it ends is left to it. */
static bool has_signal(const struct inject_target *target, pid_t tid)
{
	struct thread_status status;

	return !thread_status_of(target->pid, tid, &status) || (status.pending & ~status.blocked);
}

static void again(struct point *point, uint64_t rax, unsigned interrupts)
{
	point->rip = point->regs.rip - 2;
	point->rax = rax;
	point->interrupts = interrupts;
}

/*
 * A call that was interrupted begins again. Most do so by themselves. Where the kernel keeps what
 * is left of a call's time, it is restart_syscall that goes on, and a handler's return makes an
 * EINTR of that. epoll_wait has no such way, and gives EINTR to a thread that was stopped and
 * continued. It is begun again as well, with all of its time.
 */
static void find_point(struct point *point)
{
	long result = (long)point->regs.rax;

	switch (-result) {
	case ERESTARTSYS:
		again(point, point->regs.orig_rax, INTERRUPTS_UNLESS_RESTART);
		break;
	case ERESTARTNOINTR:
		again(point, point->regs.orig_rax, INTERRUPTS_NEVER);
		break;
	case EINTR:
	case ERESTARTNOHAND:
		again(point, point->regs.orig_rax, INTERRUPTS_ALWAYS);
		break;
	case ERESTART_RESTARTBLOCK:
		again(point, SYS_restart_syscall, INTERRUPTS_NEVER);
		break;
	default: /* it just ended */
		point->rip = point->regs.rip;
		point->rax = point->regs.rax;
		point->interrupts = INTERRUPTS_NEVER;
	}
}

/*
 * Undoes an EINTR that only PTRACE_INTERRUPT has made, of a thread that it has stopped; all other
 * calls the kernel takes up again by itself.
 */
static void undo_eintr(const struct inject_target *target, pid_t tid)
{
	struct user_regs_struct regs;

	if (!stop_get_regs(tid, &regs) || (long)regs.rax != -EINTR ||
	    !is_harmless_wait((long)regs.orig_rax) || !is_behind_call(target, tid, &regs) ||
	    has_signal(target, tid))
		return;
	regs.rip -= 2;
	regs.rax = regs.orig_rax;
	regs.orig_rax = ~0ull;
	stop_set_regs(tid, &regs);
}

/* Lets such a thread go, which is not wanted. */
static int let_go_on(const struct inject_target *target, pid_t tid)
{
	undo_eintr(target, tid);
	return thread_let_go(tid, 0);
}

/*
 * A thread that runs cannot be detached: it is stopped first, and if it takes until the deadline,
 * since one that stops later would stay so for as long as we live.
 */
static int stop_and_let_go(const struct inject_target *target, pid_t tid, uint64_t deadline_ns)
{
	enum inject_stop stop;
	int sig;

	ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	stop = thread_next_stop(tid, deadline_ns, &sig);
	if (stop == STOP_TRAP || stop == STOP_CALL)
		return let_go_on(target, tid);
	if (stop != STOP_GONE && stop != STOP_LATE)
		thread_let_go(tid, stop == STOP_SIGNAL ? sig : 0);
	return -EAGAIN;
}

/* ---- sending it to the code ------------------------------------------------------------------ */

static bool put_code(struct inject_target *target, pid_t tid)
{
	size_t bytes = (size_t)(inject_code_end - inject_code);

	if (target->code_is_there)
		return true;
	for (size_t at = 0; at < bytes; at += 8) {
		uint64_t word = 0;

		memcpy(&word, inject_code + at, bytes - at < 8 ? bytes - at : 8);
		if (ptrace(PTRACE_POKETEXT, tid, target->code + at, word))
			return false;
	}
	target->code_is_there = true;
	return true;
}

/* All but those that the kernel raises for what an instruction does: blocked, they kill. */
static uint64_t signals_to_block(void)
{
	static const int own[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS };
	uint64_t mask = ~0ull;

	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		mask &= ~(1ull << (own[i] - 1));
	return mask;
}

static struct inject_frame make_frame(const struct point *point)
{
	const struct user_regs_struct *regs = &point->regs;

	return (struct inject_frame){
		.block = signals_to_block(),
		.interrupts = point->interrupts,
		.flags = regs->eflags,
		.r15 = regs->r15,
		.r14 = regs->r14,
		.r13 = regs->r13,
		.r12 = regs->r12,
		.rbp = regs->rbp,
		.rbx = regs->rbx,
		.r11 = regs->r11,
		.r10 = regs->r10,
		.r9 = regs->r9,
		.r8 = regs->r8,
		.rax = point->rax,
		.rdx = regs->rdx,
		.rsi = regs->rsi,
		.rdi = regs->rdi,
		.rip = point->rip,
		.rsp = regs->rsp,
	};
}

static int send_to_code(struct inject_target *target, pid_t tid, const struct point *point,
                        uint64_t *frame_at)
{
	struct user_regs_struct regs = point->regs;
	struct inject_frame frame = make_frame(point);
	uint64_t at = (regs.rsp - RED_ZONE - sizeof(frame)) & ~15ull;

	*frame_at = at;
	if (!target_write(target, at, &frame, sizeof(frame)) || !put_code(target, tid))
		return -EAGAIN;
	regs.rip = target->code;
	regs.rsp = at;
	regs.orig_rax = ~0ull; /* no call that the kernel could start again */
	regs.rax = SYS_rt_sigprocmask;
	regs.rdi = SIG_BLOCK;
	regs.rsi = at + offsetof(struct inject_frame, block);
	regs.rdx = at + offsetof(struct inject_frame, mask);
	regs.r10 = 8;
	regs.r12 = AREA_BYTES;
	regs.eflags &= ~0x400ull; /* direction */
	return stop_set_regs(tid, &regs) ? 0 : -EAGAIN;
}

/* ---- following it ---------------------------------------------------------------------------- */

/*
 * Lets it run to its next stop at a system call. Signals that come before it has blocked them are
 * delivered, and their handlers' calls are stops as well.
 */
static enum inject_stop to_next_call(pid_t tid, uint64_t deadline_ns,
                                     struct __ptrace_syscall_info *info)
{
	enum inject_stop stop = STOP_CALL;
	int sig = 0, deliver = 0;

	do {
		if (ptrace(PTRACE_SYSCALL, tid, NULL, deliver))
			return STOP_GONE;
		stop = thread_next_stop(tid, deadline_ns, &sig);
		deliver = stop == STOP_SIGNAL ? sig : 0;
	} while (stop == STOP_SIGNAL || stop == STOP_TRAP);
	if (stop == STOP_CALL && ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof(*info), info) <= 0)
		return STOP_GONE;
	return stop;
}

static bool is_at(const struct inject_target *target, const struct __ptrace_syscall_info *info,
                  const uint8_t *place)
{
	return info->instruction_pointer == target->code + (uint64_t)(place - inject_code);
}

static bool write_steps(const struct inject_target *target, const struct plan *plan, uint64_t base)
{
	uint64_t first = plan_first(plan, target, base);

	return target_write(target, base, &plan->area, sizeof(plan->area)) &&
	       target_write(target, base + offsetof(struct area, head.first), &first,
	                    sizeof(first));
}

static int refused_memory(const struct inject_target *target, pid_t tid, int code, struct err *err)
{
	thread_let_go(tid, 0);
	return err_set(err, code, "process %d could not map %u KiB of memory: %s", target->pid,
	               AREA_BYTES >> 10, strerror(-code));
}

/* Until it has made its descriptors. Stopped then; or let go, or gone. */
static int follow(const struct inject_options *options, const struct inject_target *target,
                  pid_t tid, uint64_t until_ns, uint64_t deadline_ns, struct plan *plan,
                  uint64_t *base, struct err *err)
{
	struct __ptrace_syscall_info info;
	enum inject_stop stop;

	*base = 0;
	while ((stop = to_next_call(tid, until_ns, &info)) == STOP_CALL) {
		if (clock_now_ns() > until_ns)
			return thread_let_go(tid, 0);
		if (info.op == PTRACE_SYSCALL_INFO_EXIT && !*base &&
		    is_at(target, &info, inject_code_mapped)) {
			if (info.exit.is_error)
				return refused_memory(target, tid, (int)info.exit.rval, err);
			*base = (uint64_t)info.exit.rval;
			plan_make(plan, target, options, *base);
			if (!write_steps(target, plan, *base))
				return thread_let_go(tid, 0);
		}
		if (info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr == SYS_close && *base &&
		    is_at(target, &info, inject_code_stepped))
			return 0;
	}
	if (stop == STOP_GROUP)
		return thread_let_go(tid, 0);
	return stop == STOP_LATE ? stop_and_let_go(target, tid, deadline_ns) : -EAGAIN;
}

/* ---- borrowing ------------------------------------------------------------------------------ */

static void forget(struct borrowed *borrowed)
{
	if (borrowed->socket >= 0)
		close(borrowed->socket);
	if (borrowed->report >= 0)
		close(borrowed->report);
	borrowed->socket = borrowed->report = -1;
}

/* Whether a stopped thread holds no lock that loading a library takes. Else it is let go. */
static int check_stack(struct inject_target *target, pid_t tid, const struct point *point)
{
	const struct stack_registers registers = { .pc = point->regs.rip,
		                                   .sp = point->regs.rsp,
		                                   .fp = point->regs.rbp,
		                                   .r10 = point->regs.r10 };
	enum stack_tells tells = thread_stacks_look(target->stacks, target->memory, &registers);

	if (tells == STACK_FREE ||
	    (tells == STACK_UNKNOWN && clock_now_ns() - target->looked_ns >= UNKNOWN_NS))
		return 0;
	let_go_on(target, tid);
	if (tells == STACK_LATER)
		thread_stacks_read(target->stacks, target->alive);
	target->reads += tells == STACK_LATER;
	target->holding += tells != STACK_LATER;
	return -EAGAIN;
}

/* The thread is stopped at `point`; comes back with it let go. */
static int borrow(const struct inject_options *options, struct inject_target *target,
                  const struct point *point, uint64_t deadline_ns, struct borrowed *borrowed,
                  struct err *err)
{
	uint64_t until_ns = borrowed->since_ns + HELD_MAX_NS, base;
	pid_t tid = borrowed->tid;
	struct thread_status status;
	struct plan plan;
	int rc;

	borrowed->socket = borrowed->report = -1;
	rc = check_stack(target, tid, point);
	if (rc)
		return rc;
	rc = thread_status_of(target->pid, tid, &status)
	             ? seccomp_check(target->pid, tid, status.seccomp, err)
	             : -EAGAIN;
	if (rc) {
		let_go_on(target, tid);
		return rc;
	}
	borrowed->may_read = seccomp_may_read(tid, status.seccomp);
	borrowed->looked_ns = clock_now_ns();
	rc = send_to_code(target, tid, point, &borrowed->frame);
	if (rc)
		return let_go_on(target, tid);
	rc = follow(options, target, tid, until_ns, deadline_ns, &plan, &base, err);
	if (rc)
		return rc;
	borrowed->opened_ns = clock_now_ns();
	rc = handover(options, target, tid, &plan, base, borrowed, err);
	borrowed->mark = plan.mark;
	borrowed->base = base;
	borrowed->free_ns = clock_now_ns();
	if (ptrace(PTRACE_DETACH, tid, NULL, NULL) && !rc)
		rc = -EAGAIN; /* killed */
	if (rc)
		forget(borrowed);
	return rc;
}

/* ---- the two ways ---------------------------------------------------------------------------- */

int borrow_waiting(const struct inject_options *options, struct inject_target *target,
                   const struct waiting *waiting, uint64_t deadline_ns, struct borrowed *borrowed,
                   struct err *err)
{
	pid_t tid = waiting->tid;
	struct point point;
	enum inject_stop stop;
	int rc, sig;

	*borrowed = (struct borrowed){ .tid = tid, .socket = -1, .report = -1 };
	rc = thread_seize(target, tid, err);
	if (rc)
		return rc;
	borrowed->since_ns = clock_now_ns();
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL))
		return -EAGAIN;
	stop = thread_next_stop(tid, deadline_ns, &sig);
	if (stop == STOP_GONE || stop == STOP_LATE)
		return -EAGAIN;
	if (stop != STOP_TRAP)
		return thread_let_go(tid, stop == STOP_SIGNAL ? sig : 0);
	if (!stop_get_regs(tid, &point.regs) || point.regs.rip != waiting->pc ||
	    point.regs.rsp != waiting->sp || (long)point.regs.orig_rax != waiting->call ||
	    !is_behind_call(target, tid, &point.regs) || has_signal(target, tid))
		return let_go_on(target, tid);
	find_point(&point);
	return borrow(options, target, &point, deadline_ns, borrowed, err);
}

/* The thread stands at the entry of a call; `point` is how it would make it again. */
static bool can_borrow_here(const struct inject_target *target, pid_t tid,
                            const struct __ptrace_syscall_info *info, struct point *point)
{
	struct thread_status status;
	uint64_t arg[6];

	for (int i = 0; i < 6; i++)
		arg[i] = info->entry.args[i];
	if (!is_harmless_entry(target->pid, tid, (long)info->entry.nr, arg) ||
	    !stop_get_regs(tid, &point->regs) || !is_behind_call(target, tid, &point->regs) ||
	    !thread_status_of(target->pid, tid, &status) || may_be_in_handler(&status))
		return false;
	again(point, point->regs.orig_rax, INTERRUPTS_NEVER);
	return true;
}

int borrow_running(const struct inject_options *options, struct inject_target *target, pid_t tid,
                   uint64_t until_ns, uint64_t deadline_ns, struct borrowed *borrowed,
                   struct err *err)
{
	struct __ptrace_syscall_info info;
	struct point point;
	enum inject_stop stop;
	int rc, sig;

	*borrowed = (struct borrowed){ .tid = tid, .socket = -1, .report = -1 };
	rc = thread_seize(target, tid, err);
	if (rc)
		return rc;
	ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	stop = thread_next_stop(tid, deadline_ns, &sig);
	if (stop == STOP_GONE || stop == STOP_LATE)
		return -EAGAIN;
	if (stop != STOP_TRAP)
		return thread_let_go(tid, stop == STOP_SIGNAL ? sig : 0);
	undo_eintr(target, tid);
	while ((stop = to_next_call(tid, until_ns, &info)) == STOP_CALL) {
		borrowed->since_ns = clock_now_ns();
		if (info.op == PTRACE_SYSCALL_INFO_ENTRY &&
		    can_borrow_here(target, tid, &info, &point))
			return borrow(options, target, &point, deadline_ns, borrowed, err);
		if (borrowed->since_ns > until_ns)
			return thread_let_go(tid, 0);
	}
	if (stop == STOP_GROUP)
		return thread_let_go(tid, 0);
	return stop == STOP_LATE ? stop_and_let_go(target, tid, deadline_ns) : -EAGAIN;
}

/* ---- giving up ------------------------------------------------------------------------------- */

/* On our stack, in one and the same wait for a lock. */
static bool waits_for_lock(const struct inject_target *target, const struct borrowed *borrowed)
{
	const struct timespec pause = { .tv_nsec = STILL_NS };
	struct waiting first, then;

	if (!thread_call(target->pid, borrowed->tid, &first) || first.call != SYS_futex ||
	    first.sp - borrowed->base >= AREA_BYTES)
		return false;
	nanosleep(&pause, NULL);
	return thread_call(target->pid, borrowed->tid, &then) && then.call == first.call &&
	       then.sp == first.sp && then.pc == first.pc;
}

/* Its calls are counted apart, and would not agree with its stack any more. */
static bool has_shadow_stack(pid_t tid)
{
	uint64_t pointer = 0;
	struct iovec io = { &pointer, sizeof(pointer) };

	return ptrace(PTRACE_GETREGSET, tid, NT_X86_SHSTK, &io) == 0 && pointer;
}

/* What closes its descriptors is the way that a library goes which is refused. */
static bool send_back(const struct inject_target *target, const struct borrowed *borrowed)
{
	struct user_regs_struct regs;

	if (has_shadow_stack(borrowed->tid) || !stop_get_regs(borrowed->tid, &regs) ||
	    regs.rsp - borrowed->base >= AREA_BYTES || regs.orig_rax != SYS_futex)
		return false;
	regs.rip = target->code + (uint64_t)(inject_code_step - inject_code);
	regs.rsp = borrowed->base + AREA_BYTES;
	regs.rbx = borrowed->base;
	regs.rbp = borrowed->frame;
	regs.r12 = AREA_BYTES;
	regs.r14 = borrowed->base + offsetof(struct area, step) +
	           STEP_CLOSE_MEMFD_UNUSED * sizeof(struct step);
	regs.orig_rax = ~0ull;
	regs.eflags &= ~0x400ull; /* direction */
	return stop_set_regs(borrowed->tid, &regs);
}

bool give_back(const struct inject_target *target, const struct borrowed *borrowed)
{
	enum inject_stop stop;
	bool sent;
	int sig;

	if (!waits_for_lock(target, borrowed) || thread_seize(target, borrowed->tid, NULL))
		return false;
	ptrace(PTRACE_INTERRUPT, borrowed->tid, NULL, NULL);
	stop = thread_next_stop(borrowed->tid, clock_now_ns() + STILL_NS, &sig);
	sent = stop == STOP_TRAP && send_back(target, borrowed);
	ptrace(PTRACE_DETACH, borrowed->tid, NULL, stop == STOP_SIGNAL ? sig : 0);
	return sent;
}

#endif
